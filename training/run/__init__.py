"""Everything a run writes: its directory, checkpoints, logs and summary."""

"""What a run writes and reads again: its directory, checkpoints, logs and summary."""

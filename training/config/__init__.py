"""Settings of a run: defaults, presets, checks before any model is loaded."""

"""Settings of a run: defaults, presets, and checks before any model is loaded."""

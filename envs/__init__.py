"""Multi-agent environments whose observations and actions are token sequences."""

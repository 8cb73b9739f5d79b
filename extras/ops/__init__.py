"""Plan, check and track a run; push and serve models."""

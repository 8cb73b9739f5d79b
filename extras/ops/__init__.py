"""Tools around a run: plan its memory, check its health, track it, push and serve its models."""

"""Models in separate processes, here or on a cluster."""

"""Run models in separate processes, on this machine or on the nodes of a cluster."""

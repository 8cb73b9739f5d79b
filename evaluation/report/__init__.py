"""A run as one HTML page: ``coterie report runs/x``."""

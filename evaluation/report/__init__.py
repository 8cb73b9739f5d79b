"""One HTML file that tells what a run did: ``coterie report runs/x``."""

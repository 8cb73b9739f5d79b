"""One HTML file that tells what a run did: ``python -m evaluation.report runs/x``."""

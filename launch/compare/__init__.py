"""Comparisons of systems, as ``benchmark.py`` runs them."""

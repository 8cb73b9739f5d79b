"""Engines and learners of every base in processes of their own, on the nodes of a Ray cluster."""

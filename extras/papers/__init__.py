"""Benchmarks, baselines and tables of the papers."""

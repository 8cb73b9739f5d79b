"""Tools for the papers' benchmarks: comparisons of systems, baselines, tables, LeaP."""

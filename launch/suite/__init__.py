"""Agents on a suite: ``benchmark.py --agents ... --suite ...``."""

"""Metrics, and what is measured in each environment."""

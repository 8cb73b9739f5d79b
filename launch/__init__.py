"""Presets and the tables of sweeps."""

"""Causal language models: load, adapt, encode, save."""

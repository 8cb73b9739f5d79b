"""Policies: what answers when an environment asks."""

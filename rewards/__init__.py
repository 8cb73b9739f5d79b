"""Reward terms as pure functions, and their scorer."""

"""Reward terms as pure functions, and the scorer that feeds them."""

"""Judging answers: by comparison, by tests that run, by a model; and embedding texts."""

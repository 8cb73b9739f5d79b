"""Judging answers: by comparison, by tests that run, by a model; and embedding texts.

A broken-off response is wrong because it states no answer: `Checker._draft` in
`answers/checker.py` decides this.
"""

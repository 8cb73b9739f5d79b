"""Judging answers: by comparison, by tests that run, by a model; and embedding texts.

Nothing here knows the token limit. A response that is cut off before it states an answer is wrong
because it states none (`_draft` and, for multiple choice, `_check_choice` in `answers/checker.py`);
one that is cut off within its last line `Answer: 128` is judged by what stands there.
"""

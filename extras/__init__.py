"""What the core does without: a folder each, which registers what it adds.

:mod:`coterie.datatypes.extras` says what that may be.
"""

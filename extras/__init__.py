"""What the core does without: a folder each, which registers what it adds.

:mod:`coterie.cli.extras` says what that may be.
"""

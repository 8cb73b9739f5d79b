"""What the core does without, a folder each.

The table of :mod:`coterie.cli.extras` names what they add.
"""

"""Environments of other packages, by name: ``pettingzoo:classic/tictactoe_v3`` and so on.

``discrete:`` loads the user's own environment, by the name that ``--env`` takes.
"""

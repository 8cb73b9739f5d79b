"""Games and environments of other packages: ``--env pettingzoo:classic/tictactoe_v3``.

``discrete:`` loads an environment of the user.
"""

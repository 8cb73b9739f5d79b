"""Games and environments of other packages.

``--env`` names them: ``pettingzoo:classic/tictactoe_v3``. ``discrete:`` loads the user's own.
"""

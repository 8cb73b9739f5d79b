"""Games and environments of other packages.

``--env`` names them: ``pettingzoo:classic/tictactoe_v3``. ``discrete:`` loads the user's own.
"""

from coterie.cli.extras import EnvironmentKind, Extra

_HERE = "coterie.extras.games"

EXTRA = Extra(
    "games",
    environments={
        "pettingzoo": EnvironmentKind("pygame", "games", f"{_HERE}.pettingzoo_game"),
        "gymnasium": EnvironmentKind("gymnasium", "", f"{_HERE}.gymnasium_game"),
        "discrete": EnvironmentKind("pettingzoo", "", f"{_HERE}.discrete_game"),
        "textarena": EnvironmentKind("textarena", "textarena", f"{_HERE}.textarena_game"),
        "verifiers": EnvironmentKind("verifiers", "verifiers", f"{_HERE}.verifiers_game"),
    },
)

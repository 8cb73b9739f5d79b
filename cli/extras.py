"""What the extras add to the core, as one table.

The core imports no extra. Each entry names a module, or ``module:attribute``, which is imported
when somebody uses the entry.
"""

from collections.abc import Mapping
from typing import NamedTuple

_PAPERS = "coterie.extras.papers"
_GAMES = "coterie.extras.games"


class Program(NamedTuple):
    """``coterie NAME``."""

    module: str
    """Its ``main(argv)`` returns the exit code."""
    what: str
    """Its line in the list of programs."""


PROGRAMS: Mapping[str, Program] = {
    "doctor": Program(
        "coterie.extras.ops.doctor.__main__", "check the set-up of a run: train --doctor"
    ),
    "push": Program(
        "coterie.extras.ops.push", "send what a run has trained to the Hugging Face Hub"
    ),
    "serve": Program("coterie.extras.ops.serve", "serve a model to roles of other runs"),
}


class Comparison(NamedTuple):
    """``benchmark.py NAME``."""

    module: str
    settings: str
    """The module's class of settings."""
    run: str
    """The module's function that takes them."""
    what: str
    """Its line in the list of comparisons."""
    takes: str = ""
    """What stands after its name in that line."""


COMPARISONS: Mapping[str, Comparison] = {
    "corea": Comparison(
        f"{_PAPERS}.corea",
        "CoreaComparison",
        "compare",
        "small models, cascades with a large one, and controls",
    ),
    "eapo": Comparison(
        f"{_PAPERS}.eapo",
        "EapoComparison",
        "compare",
        "a policy alone, with experts, after training with them",
    ),
    "distill": Comparison(
        f"{_PAPERS}.distill",
        "DistillSettings",
        "distill",
        "a policy trained on an expert's solutions, for eapo",
    ),
    "sweep": Comparison(
        f"{_PAPERS}.sweep",
        "Sweep",
        "sweep",
        "a paper's table in miniature, trained with several seeds",
        "TABLE",
    ),
}


class EnvironmentKind(NamedTuple):
    """``--env KIND:ID``."""

    package: str
    """What has to be installed, as it is imported."""
    installs: str
    """The optional dependencies of ours that install it; empty where nothing more is needed."""
    module: str
    """Its ``spec(name, identity, options)`` returns the :class:`coterie.envs.EnvSpec`."""
    options: bool = True
    """Whether options stand after a question mark; else it belongs to ID."""


_GATEWAY = EnvironmentKind("httptools", "", "coterie.extras.gateway.kinds", options=False)

ENVIRONMENT_KINDS: Mapping[str, EnvironmentKind] = {
    "pettingzoo": EnvironmentKind("pygame", "games", f"{_GAMES}.pettingzoo_game"),
    "gymnasium": EnvironmentKind("gymnasium", "", f"{_GAMES}.gymnasium_game"),
    "discrete": EnvironmentKind("pettingzoo", "", f"{_GAMES}.discrete_game"),
    "textarena": EnvironmentKind("textarena", "textarena", f"{_GAMES}.textarena_game"),
    "verifiers": EnvironmentKind("verifiers", "verifiers", f"{_GAMES}.verifiers_game"),
    "harness": _GATEWAY,
    "command": _GATEWAY,
}

SETTINGS: Mapping[str, str] = {"cluster": "coterie.extras.cluster.settings:ClusterSettings"}
"""Section -> its frozen dataclass: flags ``--SECTION.*`` of train.py, a part of config.json."""

INSTEAD_OF_TRAINING: Mapping[str, str] = {
    "plan": "coterie.extras.ops.plan_report:show_plan",
    "doctor": "coterie.extras.ops.doctor.examine:examine",
}
"""Flag of train.py -> what it does in place of training: a function of the settings, and of another
one that checks them and returns the problems; it returns the exit code."""

HOST = "coterie.extras.cluster.host:HOST"
"""The :class:`coterie.training.hosts.Host`, which holds models elsewhere."""

SINK = "coterie.extras.ops.trackers:open_trackers"
"""The :class:`coterie.training.run.sinks.OpenSink`: where a run's numbers go besides."""

CHECKS = ("coterie.extras.cluster.host:check_fits", "coterie.extras.ops.checks:check")
"""Functions that refuse settings of a run, once its models have been looked at."""

PROGRAM_GRADER = "coterie.extras.programs.grader"
"""The module that grades programs which models write: ``--scoring.programs``."""

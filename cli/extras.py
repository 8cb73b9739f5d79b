"""What the extras add to the core, as one table.

The core imports no extra. Each entry names a module or ``module:attribute``. Every run imports
settings, checks, the sink and the host of its engine; the others are imported when they are used.
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
    "chat": Program("coterie.extras.ops.chat", "talk to a role of a run in the terminal"),
    "push": Program(
        "coterie.extras.ops.push", "send what a run has trained to the Hugging Face Hub"
    ),
    "serve": Program("coterie.extras.ops.serve", "serve a model to roles of other runs"),
}


class Comparison(NamedTuple):
    """``benchmark.py NAME``."""

    module: str
    settings: str
    """The class of its settings, in the module."""
    run: str
    """The function that takes the settings, in the module."""
    what: str
    """Its line in the list of comparisons."""
    takes: str = ""
    """Its positional argument in that line."""


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
    """The import name of the package that it needs."""
    installs: str
    """The optional dependencies that install the package; empty: every installation has it."""
    module: str
    """Its ``spec(name, identity, options)`` returns the :class:`coterie.envs.EnvSpec`."""
    options: bool = True
    """Whether ``?`` begins options; else it belongs to ID."""


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

SETTINGS: Mapping[str, str] = {
    "cluster": "coterie.extras.cluster.settings:ClusterSettings",
    "tinker": "coterie.extras.tinker.settings:TinkerSettings",
}
"""Section of the settings, with flags ``--SECTION.*`` -> its frozen dataclass."""

INSTEAD_OF_TRAINING: Mapping[str, str] = {
    "plan": "coterie.extras.ops.plan_report:show_plan",
    "doctor": "coterie.extras.ops.doctor.examine:examine",
}
"""Flag of train.py -> a function that runs in place of training, and returns the exit code. Its
arguments are the settings, and a function that checks them and returns the problems."""

HOSTS: Mapping[str, str] = {
    "local": "coterie.extras.cluster.host:HOST",
    "vllm": "coterie.extras.cluster.host:HOST",
    "tinker": "coterie.extras.tinker.host:HOST",
}
"""``--engine`` -> the :class:`coterie.training.hosts.Host`, which may hold models outside of this
process."""

SINK = "coterie.extras.ops.trackers:open_trackers"
"""Takes settings, run directory and a function that shows a sentence; returns the
:class:`coterie.training.run.sinks.Sink` of ``--track``, or None."""

CHECKS = (
    "coterie.extras.tinker.checks:check_unused",
    "coterie.extras.ops.checks:check",
)
"""Functions that refuse settings of a run, called after its models are checked."""

PROGRAM_GRADER = "coterie.extras.programs.grader"
"""The module that grades programs of models, for ``--scoring.programs``."""

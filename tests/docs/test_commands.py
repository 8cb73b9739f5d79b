"""Commands that the pages only show (they take long, or need a GPU) exist as they are written.

Their flags are parsed, and nothing is run. Flags that stand in the text exist, too.
"""

import dataclasses
import re
import shlex
import typing
from dataclasses import is_dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from coterie import algorithms, envs
from coterie.agents.team.settings import ScoringSettings
from coterie.cli.command_line import parse
from coterie.cli.extras import ENVIRONMENT_KINDS
from coterie.envs.registry import PLUGINS
from coterie.extras.games.game import GameSettings, TextArenaSettings
from coterie.extras.gateway.settings import GatewaySettings
from coterie.problems.prepare import ProblemSettings
from coterie.training.config.run_settings import EvalSettings, RolloutSettings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TRAIN = re.compile(r"python train\.py +(.*?)$", re.MULTILINE)
FLAG = re.compile(r"--((?:env|algo|learner|problems|scoring|rollout|eval)\.[a-z0-9.-]*[a-z0-9])")
# Runs and files of others, and what has to be installed first.
KINDS_NOT_HERE = (name for name, kind in ENVIRONMENT_KINDS.items() if not find_spec(kind.package))
NOT_HERE = ("--resume", "--env nim", ".system @", *(f"--env {kind}:" for kind in KINDS_NOT_HERE))


def commands(page: Path) -> list[str]:
    blocks = "".join(BLOCK.findall(page.read_text(encoding="utf-8"))).replace("\\\n", " ")
    lines = [line.replace("$seed", "0") for line in TRAIN.findall(blocks)]
    return [line for line in lines if not any(flag in line for flag in NOT_HERE)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem
)
def test_commands_parse(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # examples are named from here
    monkeypatch.syspath_prepend(ROOT)
    for line in commands(page):
        try:
            parse(shlex.split(line, comments=True))
        except SystemExit as refused:
            pytest.fail(f"{page.name}: python train.py {line} ({refused.code})")


def flags_of(part: str, *settings: type) -> set[str]:
    """``--part.field`` of each class, and of the records inside."""
    flags = set()
    for section in settings:
        for field in dataclasses.fields(section):
            last = field.name.replace("_", "-")
            name = f"{part}.{last}"
            types = typing.get_args(field.type) or [field.type]
            kinds = [t for t in types if isinstance(t, type) and is_dataclass(t)]
            # A field may hold any subclass of its type.
            inner = [kind for t in kinds for kind in (t.__subclasses__() or [t])]
            flags |= flags_of(name, *inner) if inner else {name, f"{part}.no-{last}"}
    return flags


def test_every_flag_that_a_page_mentions_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)  # examples
    known = flags_of("algo", algorithms.Algorithm)
    known |= flags_of("learner", algorithms.LearnerSettings)
    known |= flags_of("problems", ProblemSettings) | flags_of("scoring", ScoringSettings)
    known |= flags_of("rollout", RolloutSettings) | flags_of("eval", EvalSettings)
    known |= flags_of("env", GameSettings, TextArenaSettings, GatewaySettings)
    names = [*{*envs.names()} - PLUGINS.names()]
    names += [
        "coterie.extras.programs.tool_use:SPEC",
        "examples.debate:SPEC",
        "examples.solver_verifier:SPEC",
    ]
    known |= flags_of("env", *filter(None, (envs.spec(name).settings for name in names)))
    mentioned = {
        (flag, page.name)
        for page in PAGES
        for flag in FLAG.findall(page.read_text(encoding="utf-8"))
    }
    assert len(mentioned) > 200
    assert sorted(mention for mention in mentioned if mention[0] not in known) == []

"""What the pages say of the papers' settings is what the presets set."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coterie import envs
from coterie.envs.core_teaching import presets as core
from coterie.envs.corea_deferral import presets as corea
from coterie.envs.eapo_consultation import presets as eapo
from coterie.envs.preset import Preset
from coterie.envs.presets import known, published
from coterie.envs.sd_e2 import presets as sd_e2
from coterie.extras.papers.sweep import tables
from coterie.training.config.presets import lay_over, settings_of
from coterie.training.config.train_settings import Choice, TrainSettings, defaults

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "presets.md").read_text(encoding="utf-8")
TABLE = re.compile(r"<!-- table: .+? -->.*?<!-- end of table -->", re.DOTALL)
PAPERS = {"core": core, "corea": corea, "eapo": eapo, "sd-e2": sd_e2}
PRESETS, TABLES = published(), tables()
BY_NAME = {name: key for key, paper in PAPERS.items() for name in paper.PRESETS}


def presets_of(paper: str) -> list[Preset]:
    return [preset for preset in PAPERS[paper].PRESETS.values() if not preset.own]


def run_of(name: str) -> tuple[TrainSettings, TrainSettings]:
    """(without the preset, with it)."""
    chosen = known()[name]
    roles = envs.spec(chosen.env).roles
    default = defaults(Choice(chosen.env, chosen.algo, roles, chosen.train_role))
    return default, lay_over(chosen, default)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted name, value) of everything that a run is told."""
    for field in dataclasses.fields(value):
        inner, name = getattr(value, field.name), f"{path}{field.name}"
        if dataclasses.is_dataclass(inner):
            yield from leaves(inner, f"{name}.")
        elif name == "agents":
            for role, agent in inner.items():
                yield from leaves(agent, f"agents.{role}.")
        else:
            yield name, inner


def table(kind: str, paper: str) -> str:
    match = re.search(rf"<!-- table: {kind} {paper} -->(.*?)<!-- end", PAGE, re.DOTALL)
    assert match is not None
    return match[1]


@pytest.mark.parametrize("name", PRESETS)
def test_every_difference_from_the_defaults_stands_in_a_table(name: str) -> None:
    without, with_preset = (dict(leaves(run)) for run in run_of(name))
    listed = table("presets", BY_NAME[name]) + table("preset-defaults", BY_NAME[name])
    differing = {path for path in without if without[path] != with_preset[path]}
    assert len(differing) > 10
    for path in differing:
        part, *inner = path.replace("_", "-").split(".")
        if part == "agents":
            role, setting = inner
            flag = f"--agents.ROLE.{setting}"
            if setting == "model":
                assert f"{role}: `{with_preset[path]}`" in listed
                continue
        else:
            flag = f"--{'.'.join(inner)}" if part == "run" else f"--{part}.{'.'.join(inner)}"
        assert f"`{flag}`" in listed


@pytest.mark.parametrize("name", PRESETS)
def test_every_setting_says_where_it_stands_and_why_it_differs(name: str) -> None:
    default = dict(leaves(run_of(name)[0]))
    role = PRESETS[name].train_role or envs.spec(PRESETS[name].env).roles
    for path, setting in settings_of(PRESETS[name], PRESETS[name].algo).items():
        assert setting.source, path
        assert bool(setting.paper) == bool(setting.departs), path
        if default[path.replace("agents.", f"agents.{role[0]}.")] != setting.value:
            assert setting.why, path
    for path, setting in PRESETS[name].comparison.items():
        assert setting.source, path
        assert bool(setting.paper) == bool(setting.departs), path


def value_of(text: str) -> float:
    return float(text.replace("−", "-").rstrip(".,"))


NUMBER = r"[-−]?(?:\d+(?:\.\d+)?|\.\d+)"
FLAG = r"`--(env\.(?!no-)[a-z0-9-]+)`"
BEFORE = re.compile(rf"(?<![\w.])({NUMBER})(?: in epoch 1, then ({NUMBER}))? \({FLAG}")
BEHIND = re.compile(rf"{FLAG}, ({NUMBER})\b")
PAPERS_OWN = re.compile(rf"\({FLAG}; the paper's is ({NUMBER})\)")
ENVS = {
    "core-teaching": "core",
    "corea-deferral": "corea",
    "eapo-consultation": "eapo",
    "sd-e2": "sd-e2",
}


@pytest.mark.parametrize("env", ENVS)
def test_a_number_beside_a_flag_is_its_value(env: str) -> None:
    text = TABLE.sub("", (DOCS / f"{env}.md").read_text(encoding="utf-8"))
    name = next(n for n in PRESETS if BY_NAME[n] == ENVS[env])
    default, preset = (
        {path.replace("_", "-"): value for path, value in leaves(run)} for run in run_of(name)
    )
    # The page tells of CoRe's rewards, which are the paper's.
    default = preset if env == "core-teaching" else default
    named = [(flag, value) for value, _, flag in BEFORE.findall(text)]
    named += [(flag, later) for _, later, flag in BEFORE.findall(text) if later]
    named += BEHIND.findall(text)
    for flag, value in named:
        values = default[flag] if isinstance(default[flag], tuple) else (default[flag],)
        assert value_of(value) in values, (flag, value)
    own = PAPERS_OWN.findall(text)
    assert len(own) == (env == "corea-deferral")
    for flag, value in own:
        assert preset[flag] == value_of(value), flag
    assert len(named) > (1 if env == "eapo-consultation" else 4)


def test_a_number_in_the_index_of_papers_is_a_presets_or_a_tables() -> None:
    """``--flag VALUE`` in docs/papers.md: what a preset sets, or what a row of a table changes."""
    text = (DOCS / "papers.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(r"^## (\w+), arXiv.*?\n(.*?)(?=^## )", text, re.MULTILINE | re.DOTALL)
    )
    checked = 0
    for key, title in (("core", "CoRe"), ("corea", "COREA"), ("eapo", "EAPO")):
        presets = presets_of(key)
        known = {
            (flag_of(path), float(setting.value))
            for preset in presets
            for path, setting in settings_of(preset, preset.algo).items()
            if isinstance(setting.value, int | float) and not isinstance(setting.value, bool)
        }
        for name, miniature in TABLES.items():
            for variant in miniature.variants if name.startswith(f"{key}-") else ():
                pairs = zip(variant.flags, variant.flags[1:])
                known |= {(a, float(b)) for a, b in pairs if re.fullmatch(NUMBER, b)}
        for flag, value in re.findall(r"(--[a-z][a-z0-9.-]+) ([-\d][\d.e-]*)", sections[title]):
            assert (flag, float(value)) in known
            checked += 1
    assert checked >= 8


def flag_of(path: str) -> str:
    return f"--{path.replace('_', '-').removeprefix('run.')}"

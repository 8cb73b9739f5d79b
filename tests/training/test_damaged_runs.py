"""A run directory that something else wrote into: one sentence on --resume, and no traceback."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.envs.core_teaching.evaluation import EVALUATION
from coterie.training.config.preflight import preflight
from coterie.training.examiner import Examiner
from coterie.training.run import checkpoint, checkpoint_paths
from coterie.training.run.checkpoint import Progress
from coterie.training.run.directory import RunDirectory
from coterie.training.session import Session, open_session


def changed(content: Any, place: str, value: Any) -> Any:
    """A copy with one field replaced, ``a.b.c`` deep."""
    copy = inner = json.loads(json.dumps(content))
    *path, last = place.split(".")
    for name in path:
        inner = inner[name]
    inner[last] = value
    return copy


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("agents", {}, "damaged or of another version"),
        ("agents.alice", 5, "damaged or of another version"),
        ("agents.alice.trained", "yes", "agents.alice.trained is 'yes'; it must be true or false"),
        ("algo.surrogate", 5, "algo.surrogate is 5; it must be an object"),
        ("algo.surrogate", {"moon": 1}, "no setting is called algo.surrogate.moon"),
        ("choice", 5, "damaged or of another version"),
        ("choice.roles", ["../x", "bob"], "'../x' is not a name for a role"),
        ("choice.roles", "ab", "roles is 'ab'; it must be a list"),
        ("env", 5, "env does not hold the settings of core-teaching"),
        ("env.k_cold", "2", "env.k_cold is '2'; it must be a whole number"),
        ("run.seed", None, "run.seed is None; it must be a whole number"),
        *(("", content, "") for content in ("[]", "{", "{}")),
    ],
)
def test_settings(tmp_path: Path, refused: Any, place: str, value: Any, sentence: str) -> None:
    content = json.dumps(changed(parse([]).plain(), place, value)) if place else value
    (tmp_path / "config.json").write_text(content)
    error = refused(train.main, "--resume", tmp_path)
    assert error.startswith(f"train.py: {tmp_path / 'config.json'} is damaged")
    assert sentence in error


STATE = {
    "step": 3,
    "cursor": 24,
    "logs": {"metrics.jsonl": 7},
    "counters": {"wall_s": 1.5},
    "warmed": 0,
    "averages": {},
    "difficulty": {"fixed": {"p": 2.0}, "newer": {}},
}


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{}",
        *(
            json.dumps(STATE | {"learners": {}, field: value})
            for field, value in [
                ("step", 2.5),
                ("step", -1),
                ("cursor", "x"),
                ("logs", []),
                ("logs", {"metrics.jsonl": "x"}),
                ("counters", {"wall_s": None}),
                ("difficulty", {"fixed": {"p": "x"}}),
            ]
        ),
    ],
)
def test_a_state(tmp_path: Path, content: str) -> None:
    path = checkpoint.save(tmp_path, Progress(**STATE), {}, keep=1)
    assert checkpoint.load(path, {}) == Progress(**STATE)
    (path / "state.json").write_text(content)
    with pytest.raises(UserError, match=r"step-000003 is damaged .* delete that folder"):
        checkpoint.load(path, {})


def test_logs_of_a_state_are_the_runs_own(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    (tmp_path / "run").mkdir()
    RunDirectory(tmp_path / "run").cut_logs({"../mine.txt": 0, "metrics.jsonl": 0})
    assert (tmp_path / "mine.txt").read_text() == "kept"


LEARNER = {
    "steps": {},
    "updates": 1,
    "skipped": 0,
    "lost": 0,
    "version": 1,
    "dtype": "float32",
    "moments": "float32",
}
LEARNERS: list[Any] = [
    {},
    {"alice": 5},
    {"alice": LEARNER | {"steps": {"moon": 1}}},
    {"alice": LEARNER | {"updates": "x"}},
]


def test_learners_of_a_state(opened: Callable[..., Session]) -> None:
    session = opened("--train-role", "alice")
    session.save()
    path = checkpoint_paths.latest(session.run.checkpoints)
    assert path is not None
    state = json.loads((path / "state.json").read_text())
    checkpoint.load(path, session.team.trained)
    for learners in LEARNERS:
        (path / "state.json").write_text(json.dumps(state | {"learners": learners}))
        with pytest.raises(UserError, match="is damaged"):
            checkpoint.load(path, session.team.trained)


def test_a_checkpoint_is_looked_at_before_any_model_is_loaded(
    opened: Callable[..., Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened()
    session.save()
    session.__exit__()
    (weights,) = session.run.path.glob("checkpoints/*/alice/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:1000])
    settings = parse(["--resume", str(session.run.path)])
    monkeypatch.setattr("coterie.training.runtime.build_team", lambda *_, **__: pytest.fail("late"))
    with pytest.raises(
        UserError, match=r"damaged \(alice/model.safetensors: does not match its checksum"
    ) as kept:
        open_session(settings, preflight(settings))
    run = RunDirectory.reopen(session.run.path)
    run.lock()  # nobody else has it, though the traceback is kept
    run.close()
    assert kept


@pytest.mark.parametrize("content", ["{", "[]", '{"problems": 5}'])
def test_outcomes(tmp_path: Path, content: str) -> None:
    run = RunDirectory(tmp_path)
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation" / "before.json").write_text(content)
    settings = parse([]).eval
    examiner = Examiner(
        EVALUATION,
        None,  # type: ignore[arg-type]
        [None],  # type: ignore[list-item]
        roles=("alice", "bob"),
        env_settings=None,
        settings=settings,
        seed=0,
        run=run,
    )
    with pytest.raises(UserError, match=r"before\.json cannot be read as an evaluation's"):
        asyncio.run(examiner.evaluate("before"))

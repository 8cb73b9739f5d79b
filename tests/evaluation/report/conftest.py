"""A run directory written by hand, with everything in it that a model could write to do harm."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from coterie.agents.models.locate import TINY
from coterie.envs.core_teaching import evaluation as core_teaching
from coterie.envs.corea_deferral import evaluation as corea_deferral
from coterie.envs.eapo_consultation import evaluation as eapo_consultation
from coterie.evaluation.report_labels import ReportLabels, Tag

ENVIRONMENTS = (core_teaching, corea_deferral, eapo_consultation)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)><!--"
UNSEEN = "a\u202eb\x1b[31mc\u200bd"

CONFIG: dict[str, Any] = {
    "choice": {"env": "core-teaching", "algo": "gspo", "roles": ["alice", "bob"]},
    "agents": {"alice": {"model": "tiny:alice"}, "bob": {"model": "tiny:bob"}},
    "eval": {"resamples": 50},
    "run": {"steps": 4, "seed": 0},
}
# Two problems; alice solves the first, then both; bob solves none, then the second.
#   before  alice 1 0   bob 0 0      after  alice 1 1   bob 0 1
OUTCOMES = {
    "before": {
        "problems": ["p0", "p1"],
        "correct": {"alice": [[1, 1], [0, 0]], "bob": [[0, 0], [0, 0]]},
        "hints": [[1, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0]],
        "leaked": [0.0, None],
    },
    "after": {
        "problems": ["p0", "p1"],
        "correct": {"alice": [[1, 1], [1, 1]], "bob": [[0, 0], [1, 1]]},
        "hints": [[1, 1, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0]],
        "leaked": [0.0, None],
    },
}
# One episode each; what makes it so.
TAGGED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rescued", {"rescued": True}),
    ("hurt", {"hint_outcome": "hurt"}),
    ("leaked", {"leak": True}),
    ("deferred", {"deferred": True, "confidence": 0.25, "stated": True}),
    ("consulted", {"consulted": True}),
    ("failed", {"failed": True}),
)

ALL = ReportLabels(
    tags=(
        *core_teaching.LABELS.tags[:2],
        Tag("leaked", "an answer is given away", (("leak", True), ("answer_in_returns", True))),
        *corea_deferral.LABELS.tags,
        *eapo_consultation.LABELS.tags[1:],
    ),
    marks=tuple(m for e in ENVIRONMENTS for m in e.LABELS.marks),
    phases=tuple(p for e in ENVIRONMENTS for p in e.LABELS.phases),
)
"""Everything that any of our environments has."""

Episode = Callable[..., dict[str, Any]]
Run = Callable[..., Path]


def _trace(agent: str, given: str, sampled: str, **changes: Any) -> dict[str, Any]:
    """One trajectory as rollouts log it; every token has probability 1/2 but the first, 1/e."""
    tokenizer = Tokenizer.from_file(str(TINY / agent.rpartition("_")[0] / "tokenizer.json"))
    prompt, answer = tokenizer.encode(given).ids, tokenizer.encode(sampled).ids
    return {
        "agent": agent,
        "status": "ok",
        "reward": 1.3,
        "reward_terms": {"exploitation": 1.0, "rescue": 0.3, "exploration": 0.0},
        "advantage": -0.5,
        "loss_weight": 0.8,
        "groups": {},
        "weight_version": 0,
        "tokens": prompt + answer,
        "turns": [[len(prompt), len(prompt) + len(answer)]],
        "finish": ["eos"],
        "logprobs": [[-1.0] + [-0.693147] * (len(answer) - 1)],
        "texts": [given, sampled],
        "info": {"correct": True, "answer": "7", "round": "A"},
    } | changes


@pytest.fixture
def labels(monkeypatch: pytest.MonkeyPatch) -> ReportLabels:
    """All tags, marks and phases; runs of core-teaching have them while it is used."""
    everything = dataclasses.replace(core_teaching.EVALUATION, labels=ALL)
    monkeypatch.setattr(core_teaching, "EVALUATION", everything)
    return ALL


@pytest.fixture
def trace() -> Callable[..., dict[str, Any]]:
    """(agent, given, sampled, **changes) -> a trajectory of the log."""
    return _trace


@pytest.fixture
def episode() -> Episode:
    """(step, problem, *traces, **info) -> a line of the log."""

    def made(step: int, problem: str, *traces: dict[str, Any], **info: Any) -> dict[str, Any]:
        return {
            "step": step,
            "problem": problem,
            "seed": 7,
            "mode": "train",
            "info": info,
            "trajectories": list(traces),
        }

    return made


@pytest.fixture
def run(tmp_path: Path, episode: Episode, labels: ReportLabels) -> Run:
    """Writes a whole run; (episodes=..., without=...) leaves files out."""

    def write(episodes: list[Any] | None = None, without: tuple[str, ...] = ()) -> Path:
        path = tmp_path / "runs" / "x"
        (path / "evaluation").mkdir(parents=True)
        if episodes is None:
            episodes = [
                episode(
                    step + 1,
                    name,
                    _trace("alice_0", "7 # 0 =", " 7", info={"correct": False, "round": "A"}),
                    _trace("bob_0", "7 # 0 =", " <result> 7", info={"round": "B", **info}),
                )
                for step, (name, info) in enumerate(TAGGED)
            ]
        metrics = [
            {
                "step": step,
                "reward/alice": step / 4,
                "reward/bob": 1 - step / 8,
                "measured/alice/correct": step / 4,
                "learner/alice/lr": 0.001,
                "time/sample_s": 1.5 * step,
            }
            for step in range(1, 5)
        ]
        files = {
            "config.json": json.dumps(CONFIG),
            "metrics.jsonl": "".join(json.dumps(line) + "\n" for line in metrics),
            "episodes.jsonl": "".join(json.dumps(line) + "\n" for line in episodes),
            "summary.json": json.dumps({"steps": 4, "wall_s": 12.0, "sampled_tokens": 4321}),
            "evaluation/before.json": json.dumps(OUTCOMES["before"]),
            "evaluation/after.json": json.dumps(OUTCOMES["after"]),
        }
        for name, text in files.items():
            if name not in without:
                (path / name).write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def hostile(episode: Episode) -> list[dict[str, Any]]:
    """One episode in which every text that a model or a data set chooses is an attack."""
    text = HOSTILE + UNSEEN
    return [
        episode(
            1,
            text,
            _trace(
                "alice_0",
                text,
                text,
                finish=[text],
                reward_terms={text: 1.0},
                info={"answer": text, text: text, "correct": True, "round": "A"},
            ),
            hints={text: text},
            teachers={text: text},
            rounds=[[{"expert_id": text, "query": text, "accepted": True, "result": text}]],
            cascade=[{text: text}],
            other=[text],
        )
        | {"gold": text, "kind": text}
    ]

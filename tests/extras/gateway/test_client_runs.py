"""The programs of ``examples/agents`` in ``train.py``, with the clients as they are installed: what
is recorded and learned is what the model itself read and wrote, each answer once."""

import json
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.agents.sampling.policy import LocalPolicy
from coterie.datatypes import Completion
from coterie.train import main

from .clients import ADD, CLIENTS, RESULT, ROOT, TO_BOB, needed

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients' own
SMALL = (
    *("--steps", "1", "--rollout.problems-per-step", "1", "--env.replicas", "2"),
    *("--env.max-new-tokens", "48", "--eval.no-enabled", "--threads", "1"),
    # Clients take long to import on a busy machine.
    *("--env.patience-s", "600"),
)
Turn = tuple[str, list[int], list[int], list[float]]
"""Agent, what it read, what it wrote, log-probabilities."""


class Models:
    """Watches the models of a run, and says in their place what it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.turns: list[Turn] = []
        self.says: dict[str, Callable[[str], str]] = {}
        """Agent -> what it says to a context; others speak for themselves."""
        self.codecs: dict[Any, Any] = {}
        """By agent, and by policy."""
        build, answer = LocalPolicy.__init__, LocalPolicy.answer

        def built(policy: LocalPolicy, handle: Any, codec: Any, **more: Any) -> None:
            self.codecs[policy] = codec
            build(policy, handle, codec, **more)

        def watched(policy: LocalPolicy, requests: list[Any]) -> list[Completion]:
            completions, codec = answer(policy, requests), self.codecs[policy]
            for place, (agent, request) in enumerate(requests):
                self.codecs[agent] = codec
                if agent in self.says:
                    completions[place] = said(codec, self.says[agent](codec.decode(request.tokens)))
                done = completions[place]
                ids, logprobs = np.asarray(done.tokens).tolist(), done.logprobs.tolist()
                self.turns.append((agent, request.tokens.tolist(), ids, rounded(logprobs)))
            return completions

        monkeypatch.setattr(LocalPolicy, "__init__", built)
        monkeypatch.setattr(LocalPolicy, "answer", watched)


def said(codec: Any, text: str) -> Completion:
    """A text with its end, and log-probabilities that differ."""
    ids = np.array([*codec.extend(text), min(codec.eos_ids)])
    return Completion(ids, np.linspace(-1, -0.1, len(ids), dtype=np.float32), "eos")


def rounded(logprobs: list[float]) -> list[float]:
    """As the log has them."""
    return [round(value, 6) for value in logprobs]


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    # As `python train.py` has it. A program that is a process has no folder of ours on its path.
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return Models(monkeypatch)


def rows(run: Path) -> list[dict[str, Any]]:
    lines = (run / "episodes.jsonl").read_text().splitlines()
    return [row for line in lines for row in json.loads(line)["trajectories"]]


def recorded(run: Path) -> list[Turn]:
    return [
        (row["agent"], row["tokens"][:start], row["tokens"][start:end], logprobs)
        for row in rows(run)
        for (start, end), logprobs in zip(row["turns"], row["logprobs"], strict=True)
    ]


@pytest.mark.parametrize("name", CLIENTS)
def test_the_log_records_what_was_sampled(name: str, models: Models, tmp_path: Path) -> None:
    client = needed(name)
    flags = ("--env", client.env, "--roles", *client.roles)
    assert main([*flags, *SMALL, "--run-dir", str(tmp_path)]) == 0
    assert {row["status"] for row in rows(tmp_path)} == {"ok"}
    assert len(models.turns) >= 2  # replicas
    assert sorted(recorded(tmp_path)) == sorted(models.turns)


def test_a_hand_over_between_two_that_learn(models: Models, tmp_path: Path) -> None:
    """Bob's call of a tool, its result and his answer are one row."""
    client = needed("openai-agents")
    problems = tmp_path / "sums.jsonl"
    asked = [json.dumps({"question": text, "answer": "5"}) for text in ("2 + 3 =", "3 + 2 =")]
    problems.write_text("\n".join(asked))
    answers = cycle(["Answer: 5", "Answer: 6"])
    models.says = {
        "alice_0": lambda shown: TO_BOB,
        "bob_0": lambda shown: next(answers) if RESULT in shown else ADD,
    }
    run = tmp_path / "run"
    flags = ("--env", client.env, "--roles", "alice", "bob", "--problems.train", str(problems))
    assert main([*flags, *SMALL, "--problems.held-out", "1", "--run-dir", str(run)]) == 0

    assert sorted(recorded(run)) == sorted(models.turns)
    assert Counter(row["agent"] for row in rows(run)) == {"alice_0": 2, "bob_0": 2}
    for row in rows(run):
        first, *more = row["turns"]
        assert len(more) == (row["agent"] == "bob_0")
        if more:
            between = row["tokens"][first[1] : more[0][0]]
            assert RESULT in models.codecs["bob_0"].decode(np.array(between))
    # One of the two answers is right, so both roles learn: each token once.
    (step,) = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    for role in ("alice", "bob"):
        written = sum(len(turn[2]) for turn in models.turns if turn[0] == f"{role}_0")
        assert (step[f"learner/{role}/tokens"], step[f"reward/{role}"]) == (written, 0.5)
        assert step[f"learner/{role}/grad_norm"] > 0

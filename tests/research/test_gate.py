"""A warm start of any family that misses a bound is refused, and nothing of it is written."""

import dataclasses
import json

import pytest

from coterie.datatypes import UserError
from miniatures import build as build_module
from miniatures.fitting import NoConvergence
from miniatures.gate import complaints
from miniatures.network import build_model
from miniatures.recipes import RECIPES
from miniatures.teaching import read_answer, trace

GOOD = {"cold": 0.43, "strong": 0.97, "retry": 0.2, "hinted": 0.6, "format": 0.999}


@pytest.mark.parametrize(
    ("role", "change", "sentences"),
    [
        ("alice", {}, []),
        ("alice", {"cold": 0.349}, ["cold 0.349 < 0.35"]),
        ("alice", {"cold": 0.501}, ["cold 0.501 > 0.5"]),
        ("gina", {}, ["cold 0.430 > 0.4"]),
        ("alice", {"hinted": 0.349}, ["hinted - retry 0.149 < 0.15"]),
        ("alice", {"cold": float("nan")}, ["cold nan < 0.35"]),
        ("carol", {"strong": 0.1, "format": 0.1}, ["strong 0.100 < 0.9", "format 0.100 < 0.99"]),
    ],
)
def test_each_bound_is_checked(role, change, sentences):
    assert complaints({**GOOD, **change}, RECIPES[role].gate) == sentences


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (trace("7 + 8 =", 5), "5"),
        (trace("7 + 8 =", 5).strip(), None),
        (trace("7 + 8 =", 5) + " 5", None),
        (trace("7 + 8 =", 5).replace("> 5 </final", "> 6 </final"), None),
        (trace("7 + 8 =", 15), None),
        (trace("7 < 8 =", 5), None),
        ("", None),
        ("<" * 10**5, None),
    ],
)
def test_only_well_formed_answers_are_read(text, answer):
    assert read_answer(text) == answer


class FakeTraining:
    """Stands for training and measuring; ``outcomes`` by seed."""

    def __init__(self, monkeypatch, outcomes):
        self.seeds = []

        def warm_start(recipe, tokenizer, report):
            self.seeds.append(recipe.seed)
            report("some phase", 1, 1, 0.5)
            if outcomes[recipe.seed] is None:
                raise NoConvergence("stuck")
            return build_model(recipe, tokenizer)

        def measure(recipe, ask):
            return outcomes[recipe.seed]

        monkeypatch.setattr(build_module, "warm_start", warm_start)
        monkeypatch.setattr("miniatures.teaching.measure", measure)


def test_the_next_seed_is_tried_until_one_passes(monkeypatch, tmp_path):
    bad = {**GOOD, "hinted": 0.2}
    fake = FakeTraining(monkeypatch, {4: None, 5: bad, 6: GOOD, 7: GOOD})
    recipe = dataclasses.replace(RECIPES["alice"], seed=4)
    record = build_module.build(recipe, tmp_path / "alice", attempts=4)
    assert fake.seeds == [4, 5, 6]
    written = json.loads((tmp_path / "alice" / "gate.json").read_text())
    assert written == json.loads(json.dumps(record))
    assert written["recipe"]["seed"] == 6
    assert written["attempt"] == 3
    assert written["measured"]["cold"] == 0.43
    shipped = {path.name for path in (build_module.SHIPPED / "alice").iterdir()}
    assert {path.name for path in (tmp_path / "alice").iterdir()} == shipped


def test_a_failing_gate_writes_nothing(monkeypatch, tmp_path):
    FakeTraining(monkeypatch, {seed: {**GOOD, "cold": 0.9} for seed in range(2)})
    with pytest.raises(UserError, match=r"alice: no seed in 0\.\.1 passed the gate"):
        build_module.build(RECIPES["alice"], tmp_path / "alice", attempts=2)
    assert not (tmp_path / "alice").exists()


def test_the_command_exits_with_2(monkeypatch, tmp_path, capsys):
    FakeTraining(monkeypatch, {0: None})
    arguments = ["bob", "--into", str(tmp_path), "--seed", "0", "--attempts", "1"]
    assert build_module.main(arguments) == 2
    assert "bob: no seed in 0..0 passed the gate" in capsys.readouterr().err
    assert build_module.main([*arguments[:-1], "0"]) == 2

"""A warm start that misses a bound is refused, and nothing of it is written."""

import dataclasses
import json

import pytest

from coterie.datatypes import UserError
from miniatures import build as build_module
from miniatures.fitting import NoConvergence
from miniatures.gate import share
from miniatures.recipes import RECIPES, recipe_of
from miniatures.teaching import Gate, Measured, complaints, read_answer
from miniatures.teaching_corpus import trace

GOOD = Measured(cold=0.43, by_family={"P": 1.0}, strong=0.97, retry=0.2, hinted=0.6, format=0.999)


def test_a_good_model_passes():
    assert complaints(GOOD, Gate()) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"cold": 0.349}, "cold 0.349 < 0.35"),
        ({"cold": 0.501}, "cold 0.501 > 0.5"),
        ({"strong": 0.899}, "strong 0.899 < 0.9"),
        ({"hinted": 0.349}, "lift by hints 0.149 < 0.15"),
        ({"format": 0.989}, "format 0.989 < 0.99"),
        ({"cold": float("nan")}, "cold nan < 0.35"),
    ],
)
def test_each_bound_is_checked(change, sentence):
    assert complaints(dataclasses.replace(GOOD, **change), Gate())[0] == sentence


def test_all_complaints_are_told():
    bad = Measured(cold=0.1, by_family={}, strong=0.1, retry=0.1, hinted=0.1, format=0.1)
    assert len(complaints(bad, Gate())) == 4


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


def test_share_of_none_is_zero():
    assert share([]) == 0.0
    assert share([True, False, True, True]) == 0.75


class FakeTraining:
    """Stands for training and measuring; ``outcomes`` by seed."""

    def __init__(self, monkeypatch, outcomes):
        self.seeds = []

        def warm_start(recipe, model, tokenizer, report):
            self.seeds.append(recipe.seed)
            report("some phase", 1, 1, 0.5)
            if outcomes[recipe.seed] is None:
                raise NoConvergence("stuck")

        def measure(recipe, model, tokenizer):
            return outcomes[recipe.seed]

        monkeypatch.setattr("miniatures.teaching.warm_start", warm_start)
        monkeypatch.setattr("miniatures.teaching.measure", measure)


def test_the_next_seed_is_tried_until_one_passes(monkeypatch, tmp_path):
    bad = dataclasses.replace(GOOD, hinted=0.2)
    fake = FakeTraining(monkeypatch, {4: None, 5: bad, 6: GOOD, 7: GOOD})
    recipe = dataclasses.replace(RECIPES["alice"], seed=4)
    record = build_module.build(recipe, tmp_path / "alice", attempts=4)
    assert fake.seeds == [4, 5, 6]
    written = json.loads((tmp_path / "alice" / "gate.json").read_text())
    assert written == json.loads(json.dumps(record))
    assert written["recipe"]["seed"] == 6
    assert written["attempt"] == 3
    assert written["measured"]["cold"] == 0.43
    names = {path.name for path in (tmp_path / "alice").iterdir()}
    assert names == {
        "config.json",
        "gate.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_a_failing_gate_writes_nothing(monkeypatch, tmp_path):
    FakeTraining(monkeypatch, dict.fromkeys(range(2), dataclasses.replace(GOOD, cold=0.9)))
    with pytest.raises(UserError, match=r"alice: no seed in 0\.\.1 passed the gate"):
        build_module.build(RECIPES["alice"], tmp_path / "alice", attempts=2)
    assert not (tmp_path / "alice").exists()


def test_the_command_exits_with_2(monkeypatch, tmp_path, capsys):
    FakeTraining(monkeypatch, {0: None})
    arguments = ["bob", "--into", str(tmp_path), "--seed", "0", "--attempts", "1"]
    assert build_module.main(arguments) == 2
    assert "bob: no seed in 0..0 passed the gate" in capsys.readouterr().err
    assert build_module.main([*arguments[:-1], "0"]) == 2


def test_unknown_roles_are_named():
    with pytest.raises(UserError, match="unknown tiny role 'eve'; known: alice, bob, carol"):
        recipe_of("eve")

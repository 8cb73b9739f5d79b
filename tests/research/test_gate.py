"""A warm start of any family that misses a bound is refused, and nothing of it is written."""

import dataclasses
import json
from typing import Any

import pytest

from coterie.datatypes import UserError
from miniatures import allround, consulting, deferral, teaching
from miniatures import build as build_module
from miniatures.fitting import NoConvergence
from miniatures.gate import share
from miniatures.recipes import RECIPES, recipe_of
from miniatures.teaching import read_answer
from miniatures.teaching_corpus import trace

TAUGHT = {"by_family": {"P": 1.0}, "strong": 0.97, "retry": 0.2, "hinted": 0.6, "format": 0.999}
GOOD = teaching.Measured(cold=0.43, **TAUGHT)
FORMS = {"deferring": 0.43, "stated": 1.0, "alone": 0.43, "helped": 0.8, "asking": 0.6}
FAMILIES: dict[str, Any] = {
    "teaching": (teaching, GOOD, teaching.Gate()),
    "allround": (allround, allround.Measured(**vars(GOOD), **FORMS), allround.Gate()),
    "deferral": (
        deferral,
        deferral.Measured(
            accuracy=0.65, by_names=[1.0], auroc=0.6, confidence=0.85, overconfidence=0.25, format=1
        ),
        deferral.GATES["small"],
    ),
    "policy": (
        consulting,
        consulting.Measured(weak=0.01, strong=0.99, format=1.0, helped=0.9, asking=0.6),
        consulting.PolicyGate(),
    ),
    "expert": (
        consulting,
        consulting.Measured(weak=0.99, strong=0.9, format=1.0),
        consulting.ExpertGate(),
    ),
}


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        *((name, {}, None) for name in FAMILIES),
        ("teaching", {"cold": 0.349}, "cold 0.349 < 0.35"),
        ("teaching", {"cold": 0.501}, "cold 0.501 > 0.5"),
        ("teaching", {"strong": 0.899}, "strong 0.899 < 0.9"),
        ("teaching", {"hinted": 0.349}, "lift by hints 0.149 < 0.15"),
        ("teaching", {"format": 0.989}, "format 0.989 < 0.99"),
        ("teaching", {"cold": float("nan")}, "cold nan < 0.35"),
        ("allround", {"strong": 0.899}, "strong 0.899 < 0.9"),
        ("allround", {"deferring": 0.1}, "deferring 0.100 < 0.35"),
        ("allround", {"stated": 0.9}, "stated 0.900 < 0.99"),
        ("allround", {"alone": 0.61}, "alone 0.610 > 0.6"),
        ("allround", {"helped": 0.5}, "helped 0.070 < 0.1"),
        ("allround", {"asking": 0.9}, "asking 0.900 > 0.8"),
        ("deferral", {"accuracy": 0.3}, "accuracy 0.300 < 0.55"),
        ("deferral", {"auroc": 0.9}, "AUROC 0.900 > 0.68"),
        ("deferral", {"overconfidence": 0.0}, "overconfidence 0.000 < 0.22"),
        ("deferral", {"format": 0.9}, "format 0.900 < 0.98"),
        ("deferral", {"auroc": float("nan")}, "AUROC nan < 0.5"),
        ("policy", {"weak": 0.2}, "alone 0.200 > 0.03"),
        ("policy", {"strong": 0.5}, "strong 0.500 < 0.9"),
        ("policy", {"helped": 0.1}, "helped 0.100 < 0.5"),
        ("policy", {"helped": None}, "helped 0.000 < 0.5"),
        ("policy", {"asking": 0.1}, "asking 0.100 < 0.4"),
        ("policy", {"asking": 1.0}, "asking 1.000 > 0.8"),
        ("policy", {"format": 0.5}, "format 0.500 < 0.97"),
        ("expert", {"format": 0.5}, "format 0.500 < 0.97"),
        ("expert", {"weak": 0.5}, "weak 0.500 < 0.85"),
    ],
)
def test_each_bound_is_checked(name, change, sentence):
    family, good, gate = FAMILIES[name]
    measured = dataclasses.replace(good, **change)
    assert family.complaints(measured, gate) == ([sentence] if sentence else [])


def test_all_complaints_are_told():
    bad = dataclasses.replace(GOOD, cold=0.1, strong=0.1, hinted=0.1, format=0.1)
    assert len(teaching.complaints(bad, teaching.Gate())) == 4


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
    shipped = {path.name for path in (build_module.SHIPPED / "alice").iterdir()}
    assert {path.name for path in (tmp_path / "alice").iterdir()} == shipped


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

import logging
from dataclasses import replace

import pytest

from coterie.datatypes import UserError
from coterie.problems.files import Columns
from coterie.problems.hub import HubSet, load_hub


def sums(n, start=0):
    return [
        {"question": f"What is {i} + 1?", "answer": f"#### {i + 1}", "rationale": "long " * 50}
        for i in range(start, start + n)
    ]


def test_purpose_selects_the_split(publish):
    repo = publish({"main": {"train": sums(3), "test": sums(2, 10)}})
    hub_set = HubSet(repo, "gsm8k", ("main",))
    train = load_hub(hub_set, "sums", "train")
    assert [problem.id for problem in train] == ["sums-train:0", "sums-train:1", "sums-train:2"]
    assert [problem.gold for problem in train] == ["1", "2", "3"]
    assert [problem.gold for problem in load_hub(hub_set, "sums", "eval")] == ["11", "12"]
    assert load_hub(hub_set, "sums", "train", split="test").size == 2


def test_configurations_follow_each_other_and_formats_are_recognised(publish):
    def row(subject):
        return {"problem": f"Solve {subject}.", "solution": r"\boxed{\pi}", "level": "Level 1"}

    tables = {subject: {"train": [row(subject)]} for subject in ("algebra", "geometry")}
    hub_set = HubSet(publish(tables), None, ("geometry", "algebra"))
    problems = load_hub(hub_set, "tiny", "train")
    assert [problem.question for problem in problems] == ["Solve geometry.", "Solve algebra."]
    assert problems[0].meta == {"level": "Level 1"}


def test_an_undivided_set_is_divided(publish):
    repo = publish({"main": {"test": sums(10)}})
    hub_set = HubSet(repo, "gsm8k", ("main",), train="test", train_percent=80)
    train, evaluation = (load_hub(hub_set, "s", purpose) for purpose in ("train", "eval"))
    golds = [problem.gold for problem in (*train, *evaluation)]
    assert (train.size, evaluation.size) == (8, 2)
    assert sorted(map(int, golds)) == list(range(1, 11))
    last = load_hub(hub_set, "s", "eval", order="given")
    assert [problem.gold for problem in last] == ["9", "10"]
    assert load_hub(hub_set, "s", "train", split="test").size == 10


def test_columns_of_the_user_replace_the_format(publish):
    rows = [{"question": "wrong", "answer": "#### 0", "task": "right", "result": 7}]
    repo = publish({"main": {"train": rows}})
    columns = Columns("task", "result")
    problem = load_hub(HubSet(repo, "gsm8k", ("main",)), "s", "train", columns=columns)[0]
    assert (problem.question, problem.gold) == ("right", "7")


def test_mistakes_are_one_sentence(publish):
    rows = [*sums(2), {"question": "Q?", "answer": "", "rationale": ""}]
    repo = publish({"main": {"train": sums(1), "bad": rows}})
    hub_set = HubSet(repo, "gsm8k", ("main",))
    with pytest.raises(UserError, match=r"s \(bad\) main row 3: the answer is empty"):
        load_hub(hub_set, "s", "train", split="bad")
    with pytest.raises(UserError, match=r"no configuration 'main' with split 'no'.*s\?config"):
        load_hub(hub_set, "s", "train", split="no")
    with pytest.raises(UserError, match=r"no configuration 'x' .*Available: \['main'\]"):
        load_hub(replace(hub_set, configs=("x",)), "s", "train")
    with pytest.raises(UserError, match=r"s \(train\) main row 1: no column 'opa'; found question"):
        load_hub(HubSet(repo, "medmcqa", ("main",)), "s", "train")
    for_evaluation = HubSet(repo, "gsm8k", ("main",), train=None, eval="train")
    with pytest.raises(UserError, match=r"no split to train on; use it as --problems.eval, or .*"):
        load_hub(for_evaluation, "s", "train")


@pytest.mark.parametrize(
    ("gated", "error", "sentence"),
    [
        (False, ConnectionError("Couldn't reach 'o/n'\non the Hub"), "check the network"),
        (True, ConnectionError("Couldn't reach"), "accept the terms at https://huggingface.co/da"),
        (False, RuntimeError("Dataset 'o/n' is a gated dataset"), "accept the terms at https://h"),
        (False, FileNotFoundError("no such thing"), "FileNotFoundError: no such thing"),
    ],
)
def test_an_unreachable_hub_is_one_sentence(monkeypatch, gated, error, sentence):
    import datasets

    asked = {}

    def load_dataset(repo, **options):
        asked.update(options, repo=repo)
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    hub_set = HubSet("o/n", gated=gated, revision="abc123")
    hub_log = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(hub_log, "level", logging.INFO)
    with pytest.raises(UserError, match=sentence) as caught:
        load_hub(hub_set, "short", "train")
    assert hub_log.level == logging.INFO
    assert "\n" not in str(caught.value)
    assert asked == {"repo": "o/n", "name": None, "split": "train", "revision": "abc123"}

import logging
from dataclasses import replace

import pytest

from coterie.datatypes import UserError
from coterie.problems.columns import Columns
from coterie.problems.hub import HUB_SETS, HubSet, load_hub
from coterie.problems.opening import open_source


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


def test_mistakes_about_local_folders_name_the_way_out(publish, tmp_path):
    import datasets

    repo = publish({"default": {"train": sums(2)}})
    with pytest.raises(UserError, match=rf"no split 'test' .*held out: hub:{repo}\?split=train$"):
        open_source(f"hub:{repo}", purpose="eval")
    datasets.Dataset.from_list(sums(2)).save_to_disk(tmp_path / "saved")
    (tmp_path / "empty").mkdir()
    for name, sentence in (("saved", "save it by to_parquet"), ("empty", "name one of its files$")):
        with pytest.raises(UserError, match=sentence) as caught:
            open_source(f"hub:{tmp_path / name}")
        assert "https://" not in str(caught.value)


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
    monkeypatch.setitem(HUB_SETS, "short", HubSet("o/n", gated=gated))
    hub_log = logging.getLogger("huggingface_hub")
    monkeypatch.setattr(hub_log, "level", logging.INFO)
    with pytest.raises(UserError, match=sentence) as caught:
        open_source("short?revision=abc123&config=main")
    assert hub_log.level == logging.INFO
    assert "\n" not in str(caught.value)
    assert asked == {"repo": "o/n", "name": "main", "split": "train", "revision": "abc123"}


# Name, repository, configurations, splits to train on and to measure with, share of one that serves
# both, terms, format: as the papers have them.
KNOWN = """
gsm8k openai/gsm8k main train test - open gsm8k
svamp ChilleD/SVAMP - train test - open svamp
asdiv EleutherAI/asdiv - validation validation 80 open asdiv
math EleutherAI/hendrycks_math math-subjects train test - open problem+solution
math-8020 qwedsacf/competition_math - train train 80 open problem+solution
math500 HuggingFaceH4/MATH-500 - - test - open problem+answer
aime-1983-2025 TianHongZXY/aime-1983-2025 - test test 80 open problem+answer
aime-1983-2024 gneubig/aime-1983-2024 - train train 80 open Question+Answer
aime24 math-ai/aime24 - - test - open problem+solution
aime25 math-ai/aime25 - - test - open problem+answer
gpqa-main Idavidrein/gpqa gpqa_main train train 80 gated gpqa
gpqa-diamond Idavidrein/gpqa gpqa_diamond - train - gated gpqa
gpqa-extended Idavidrein/gpqa gpqa_extended train train 80 gated gpqa
deepmath zwhe99/DeepMath-103K - train train - open final_answer
olympiadbench Hothan/OlympiadBench OE_TO_maths_en_COMP - train - open final_answer
commonsenseqa tau/commonsense_qa - train validation - open commonsenseqa
medmcqa openlifescienceai/medmcqa - train validation - open medmcqa
dapo-17k BytedTsinghua-SIA/DAPO-Math-17k - train train - open dapo
dapo-17k-processed open-r1/DAPO-Math-17k-Processed en train train - open prompt+solution
mmlu cais/mmlu all - test - open mmlu
hotpotqa hotpotqa/hotpot_qa distractor train validation - open hotpotqa
simpleqa basicv8vc/SimpleQA - - test - open simpleqa
humaneval openai/openai_humaneval - - test - open humaneval
humanevalplus evalplus/humanevalplus - - test - open humaneval
mbppplus evalplus/mbppplus - - test - open mbppplus
hle cais/hle - - test - gated hle
"""
MATH_SUBJECTS = (
    "algebra counting_and_probability geometry intermediate_algebra number_theory prealgebra "
    "precalculus"
)


def test_known_sets_are_those_of_the_papers():
    lines = [line.split() for line in KNOWN.strip().splitlines()]
    assert {line[0] for line in lines} == set(HUB_SETS)
    for name, *fields in lines:
        repo, config, *splits, share, terms, form = (None if f == "-" else f for f in fields)
        known = HUB_SETS[name]
        configs = MATH_SUBJECTS.split() if config == "math-subjects" else [config]
        assert (known.repo, [*known.configs], known.form) == (repo, configs, form), name
        assert [known.train, known.eval, known.train_percent] == [*splits, share and int(share)]
        assert known.gated == (terms == "gated"), name


def test_columns_of_any_set_are_used_or_refused(publish):
    row = {"question": "Who swims?", "article": "Gulls swim.", "options": ["owls", "gulls"],
           "answer": "B", "level": "easy", "explanation": "They do.", "meta": "x > 0"}  # fmt: skip
    repo = publish(
        {"default": {"train": [{**row, "hint": ""}], "test": [{**row, "hint": "See the pier."}]}}
    )
    problem = open_source(f"hub:{repo}")[0]
    assert problem.question == "Gulls swim.\n\nWho swims?\nA. owls\nB. gulls"
    assert problem.meta == {"level": "easy"}
    assert open_source(f"hub:{repo}").notes[-1] == "the question leaves out meta"
    with pytest.raises(UserError, match="row 1: column 'hint' may belong to the question"):
        open_source(f"hub:{repo}", purpose="eval")
    assert open_source(f"hub:{repo}?ignore=hint", purpose="eval")[0].gold == "B"


@pytest.mark.parametrize("source", ["{}/train.parquet", "hub:{}"])
def test_labels_are_read_by_their_names_unless_they_count_options(tmp_path, monkeypatch, source):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    columns = {"text": ["A gull.", "A cat.", "?"], "label": [1, 0, -1]}
    options = {"options": [["owl", "gull"]] * 3, "answer": [1, 0, 1]}
    features = datasets.Features(
        text=datasets.Value("string"),
        label=datasets.ClassLabel(names=["land", "sea"]),
        options=datasets.List(datasets.Value("string")),
        answer=datasets.ClassLabel(names=["first", "second"]),
    )
    for name, table in (("labels", columns), ("options", columns | options)):
        (tmp_path / name).mkdir()
        own = datasets.Features({column: features[column] for column in table})
        datasets.Dataset.from_dict(table, own).to_parquet(tmp_path / name / "train.parquet")
    named = source.format(tmp_path / "labels") + "?question=text&answer=label"
    problems = open_source(f"{named}&where=label:land|sea")
    assert [problem.gold for problem in problems] == ["sea", "land"]
    with pytest.raises(UserError, match="row 3: the answer is missing"):
        open_source(named)
    counted = open_source(source.format(tmp_path / "options") + "?question=text&answer=answer")
    assert [problem.gold for problem in counted] == ["B", "A", "B"]

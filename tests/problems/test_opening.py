import json
import subprocess
import sys

import pytest

from coterie.datatypes import UserError
from coterie.problems.chains import ChainSource
from coterie.problems.columns import Columns
from coterie.problems.gym import GymSource
from coterie.problems.opening import open_source


@pytest.fixture
def file(tmp_path):
    rows = [{"question": "What is 1 + 1?", "answer": "2", "task": "What is 3 + 3?", "result": 6}]
    path = tmp_path / "my set.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_chains_with_and_without_options():
    plain = open_source("chains", seed=4)
    assert isinstance(plain, ChainSource)
    assert plain.settings.seed == 4
    source = open_source("chains?mix=1,0,0&min_length=2&max_length=2&seed=9", seed=4)
    assert isinstance(source, ChainSource)
    assert (source.settings.mix, source.settings.seed) == ((1.0, 0.0, 0.0), 9)
    assert (source.settings.min_length, source.settings.max_length) == (2, 2)


def test_generators_for_evaluation_are_on_another_stream():
    for text in ("chains", "reasoning-gym:products"):
        train, evaluation = open_source(text), open_source(text, purpose="eval")
        assert train.fingerprint != evaluation.fingerprint
        assert train[0] != evaluation[0]


def test_reasoning_gym_options_are_typed():
    source = open_source("reasoning-gym:chain_sum?min_terms=2&max_terms=2&allow_negation=true")
    assert isinstance(source, GymSource)
    assert source.options == {"min_terms": 2, "max_terms": 2, "allow_negation": True}
    operators = open_source('reasoning-gym:basic_arithmetic?operators=["%2B"]&seed=3')
    assert isinstance(operators, GymSource)
    assert operators.options == {"operators": ["+"]}
    assert operators.seed == 3
    # A sign that stands between spaces is an operator; one at a digit belongs to the number.
    assert all(" - " not in operators[index].question for index in range(20))


def test_files_with_and_without_columns(file):
    assert open_source(str(file))[0].gold == "2"
    assert open_source(f"{file}?question=task&answer=result")[0].gold == "6"
    assert open_source(str(file), Columns("task", "result"))[0].gold == "6"
    assert open_source(f"{file}?answer=result", Columns("task", "answer"))[0].gold == "6"


def test_a_file_whose_name_holds_a_question_mark(file):
    odd = file.rename(file.with_name("what?.jsonl"))
    assert open_source(str(odd)).size == 1


def test_a_local_folder_in_the_layout_of_the_hub(tmp_path, monkeypatch, file):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    file.rename(folder / "train.jsonl")
    source = open_source(f"hub:{folder}?split=train&question=task&answer=result")
    assert source[0].question == "What is 3 + 3?"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for named in ("hub:owner/name", "hub:~/owner/name"):
        assert open_source(named)[0].gold == "2"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("chain", "unknown problems 'chain'; did you mean 'chains'"),
        ("gsm8", "did you mean 'gsm8k'.*reasoning-gym:TASK.*hub:OWNER/NAME"),
        (" ", "no problems are named"),
        ("chains?mixt=1", "chains has no option 'mixt'; did you mean 'mix'"),
        ("chains?mix", "write options as NAME=VALUE"),
        ("chains?mix=a,b,c", "must be numbers with commas"),
        ("chains?mix=1,2", r"chains: mix is \(1.0, 2.0\); it must be a list of 3"),
        ("chains?seed=1&seed=2", "given twice"),
        ("aimo2", "accept the rules at https://www.kaggle.com"),
        ("math500", "no split to train on; use it as --problems.eval"),
        ("math500?splt=test", "no option 'splt'; did you mean 'split'"),
        ("math500?order=given", "order is for a set that is divided 80:20 here; leave it out"),
        ("gpqa-main?order=random", "use shuffled or given"),
        ("hub:gsm8k", "write hub:OWNER/NAME"),
        ("no/such/file.jsonl", "no problem file no/such/file.jsonl"),
        ("no/such/file", "unknown kind of file"),
        ("problems.txt", "unknown problems"),
        ("file.jsonl?split=train", "no option 'split'; .*known: answer, ignore, question"),
        (".", "is a folder"),
    ],
)
def test_mistakes_are_one_sentence(text, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        open_source(text)
    assert "\n" not in str(caught.value)


def test_importing_and_opening_chains_loads_nothing_heavy():
    program = (
        "import sys; from coterie.problems.prepare import prepare; "
        "from coterie.problems.prepare import ProblemSettings; prepare(ProblemSettings()); "
        "print({'reasoning_gym', 'datasets', 'pyarrow', 'torch', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr

"""Command lines of the papers' comparisons: mistakes in one line before any work, flags, help."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from coterie import __main__, benchmark
from coterie.cli.extras import COMPARISONS
from coterie.evaluation.compare import sample_responses
from coterie.extras.papers import distill, sweep

RUN = "distill --out x"


@pytest.fixture
def nothing_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither asking nor loading nor training."""

    def never(*_: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(sample_responses, "sample", never)
    monkeypatch.setattr(distill, "build_team", never)
    monkeypatch.setattr(sweep.SweepCommand, "run", never)


@pytest.mark.usefixtures("nothing_begins")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("core", "unknown comparison 'core'; did you mean 'corea' or"),
        ("nope", "unknown comparison 'nope'; known: corea, eapo, distill, sweep, seeds"),
        ("eapo --foo 3", "unknown option --foo (options: python benchmark.py eapo"),
        ("eapo --vllm.gpu-memory 0.3", "--vllm.* and --agents.ROLE.engine-device need --engine"),
        ("eapo --questions -1", "--questions is -1; it must be at least 0"),
        ("eapo --eapo ./nowhere", "nowhere"),
        ("eapo --pools 'pool:a||b'", "write pool"),
        ("eapo --others runs/x", "write NAME=RUN"),
        ("eapo --others Base=tiny:policy", "two rows have the same name"),
        ("eapo --expert scripted:loud", "kind=loud"),
        ("corea --temperature nan", "--temperature is nan; it must be at least 0 and finite"),
        ("corea --systems cora", "unknown system 'cora'; did you mean 'corea'"),
        ("corea --systems corea", "system corea needs a model: --corea RUN"),
        ("corea --systems rlvr-probe", "--rlvr RUN"),
        ("corea --corea ./nowhere", "'./nowhere'"),
        ("corea --size-ratio -1", "--size-ratio is -1.0; it must be above 0"),
        ("corea --cost-share -1", "--cost-share is -1.0; it must be at least 0"),
        ("corea --router-lr -1", "--router-lr is -1.0; it must be above 0"),
        ("corea --probe-lr 0", "--probe-lr is 0.0; it must be above 0"),
        (
            "corea --fixed-threshold .7",
            "--fixed-threshold changes nothing without --threshold fixed; leave it out",
        ),
        (
            "corea --threshold fixed --threshold-on-test",
            "--threshold-on-test changes nothing without --threshold accuracy, cost or large-pass",
        ),
        ("corea --fit-questions 5", "--fit-questions changes nothing without --rlvr"),
        ("corea --router-epochs 3", "--router-epochs changes nothing without --rlvr"),
        ("eapo --no-peers --leap.paths 8", "--leap.paths changes nothing without --peers"),
        ("eapo --no-workflow --no-noise --replies 4", "--replies and --reply-temperature: no row"),
        ("suite --cost-share .5", "--cost-share changes nothing without --threshold cost"),
        ("sweep eapo-8 --compare no-peers leap.paths=8", "--leap.paths changes nothing without"),
        ("corea --router-tuning some", "--router-tuning is 'some'; it must be auto, full or lora"),
        ("corea --averages OOD", "--averages 'OOD': write NAME=SETS, such as"),
        ("corea --averages OOD=gsm8k", "--averages OOD: gsm8k is not scored"),
        ("corea --problems nowhere.jsonl", "nowhere.jsonl"),
        ("corea --rlvr tiny:small --systems rlvr-agreement --samples 1", "needs --samples 2"),
        ("distill", "missing: --out (Folder of the trained policy; must be new or"),
        (f"{RUN} --steps 0", "--steps is 0; it must be at least 1"),
        (f"{RUN} --policy scripted:silent", "not a model to train"),
        (
            f"{RUN} --only-right --scoring.encoder minilm",
            "--scoring.encoder: no texts are compared",
        ),
        ("sweep core-55", "unknown table 'core-55'; did you mean 'core-5'"),
        ("sweep core-3", "has no miniature"),
        ("sweep core-1 --seeds 0 0", "none twice"),
        ("sweep core-1 --train steps", "--steps"),
        ("sweep core-1 --train =4", "write NAME=VALUE"),
        ("sweep core-1 --compare=--questions=4", "write NAME=VALUE"),
        ("sweep core-1 --train bogus=1", "--bogus"),
        ('sweep core-1 --train "env.prompt=don\'t"', "is no list of words (No closing quotation)"),
        ("sweep eapo-8 --train problems.held-out=4", "--train: eapo-8 trains nothing"),
        ("sweep eapo-8 --steps 4", "--steps: eapo-8 trains nothing"),
        ("sweep core-1 --compare questions=4", "--compare: core-1 reads the runs' own eval"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_left(
    words: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_engine: object,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert benchmark.main(shlex.split(words)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert sentence in said.err
    assert not any(tmp_path.iterdir())


def test_the_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main([]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMPARISONS)


@pytest.mark.parametrize("name", COMPARISONS)
def test_help_fits_a_terminal_and_names_the_program(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        __main__.main(["benchmark", name, "--help"])
    shown = capsys.readouterr().out
    assert f"usage: coterie benchmark {name}" in shown
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "(default: None)" not in shown

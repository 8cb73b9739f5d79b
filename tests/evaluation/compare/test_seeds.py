"""Several seeds of several systems, from run directories written by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from coterie import benchmark


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def run(name: str, seed: int, alone: float, env: str = "eapo-consultation") -> str:
        path = tmp_path / name
        path.mkdir()
        choice = {"env": env, "roles": ["policy", "expert"]}
        (path / "config.json").write_text(json.dumps({"choice": choice, "run": {"seed": seed}}))
        (path / "summary.json").write_text(json.dumps({"after": {"avg@n/alone": alone}}))
        steps = [
            {
                "step": step,
                "rollout/learner_tokens_total": 1000.0 * step,
                "measured/policy/consulted": 1 / step,
            }
            for step in (1, 2, 3)
        ]
        (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in steps))
        evaluated = {"step": 2, "eval/avg@n/alone": alone / 2}
        (path / "evaluations.jsonl").write_text(json.dumps(evaluated) + "\n")
        return str(path)

    return run


def test_means_and_paired_differences(
    write: Any, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    for seed, (ours, other) in enumerate([(0.3, 0.1), (0.4, 0.1), (0.5, 0.1)]):
        write(f"a{seed}", seed, ours)
        write(f"b{seed}", seed, other)
    write("c0", 0, 0.2)
    write("d7", 7, 0.2)
    out = tmp_path / "out"
    flags = ["seeds", "--out", str(out), "--systems", f"Ours={tmp_path}/a*", f"Other={tmp_path}/b*"]
    assert benchmark.main([*flags, f"One={tmp_path}/c0", f"Far={tmp_path}/d7"]) == 0
    # s = .1, t_2 = 4.303: half = 4.303 * .1 / sqrt(3) = .248
    shown = capsys.readouterr().out
    assert "0.400 ± 0.248" in shown
    assert "+0.300 ± 0.248" in shown
    results = json.loads((out / "seeds.json").read_text())
    ours = results["systems"]["Ours"]
    assert (ours["seeds"], ours["tokens"]) == ([0, 1, 2], [3000.0] * 3)
    assert ours["metrics"]["avg@n/alone"]["values"] == [0.3, 0.4, 0.5]
    # Other seeds are no pairs; one run has no interval.
    assert "+0.100 (1 of 3)" in shown
    one = {"mean": 0.1, "interval": [None, None], "count": 1}
    assert results["differences"]["Ours - One"]["avg@n/alone"] == one
    assert "no common seed" in shown
    assert results["differences"]["Ours - Far"] == {}
    assert results["systems"]["One"]["metrics"]["avg@n/alone"]["interval"] == [None, None]
    assert (out / "seeds.png").stat().st_size > 5000


def test_a_mean_of_some_seeds_says_so(write: Any, tmp_path: Path, capsys: Any) -> None:
    """Two of five runs have the metric; before, they all have."""
    for seed, after in enumerate((0.5, None, None, 0.9, None)):
        path = Path(write(f"a{seed}", seed, 0.0))
        moments = {"before": {"avg@n/alone": 0.0}, "after": {"avg@n/alone": after}}
        (path / "summary.json").write_text(json.dumps(moments))
    out = tmp_path / "out"
    assert benchmark.main(["seeds", "--systems", f"A={tmp_path}/a*", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    # s = .283, t_1 = 12.71: half = 2.541.
    assert shown.count("0.700 ± 2.541 (2 of 5)") == 3
    assert "0.000 ± 0.000 " in shown
    metric = json.loads((out / "seeds.json").read_text())["systems"]["A"]["metrics"]["avg@n/alone"]
    assert (metric["count"], metric["before"]["count"]) == (2, 5)


def test_moments_before_the_last_are_shown_where_runs_have_them(
    write: Any, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    # before, after a warm-up, after: reward training adds .2, .3 and .4.
    for seed, (before, warm, after) in enumerate([(0, 0.1, 0.3), (0, 0.2, 0.5), (0, 0.3, 0.7)]):
        path = Path(write(f"a{seed}", seed, after))
        moments = {"before": before, "warmed_up": warm, "after": after}
        content = {when: {"avg@n/alone": value} for when, value in moments.items()}
        (path / "summary.json").write_text(json.dumps(content))
    write("b0", 0, 0.2)
    out = tmp_path / "out"
    flags = ["seeds", "--systems", f"Warm={tmp_path}/a*", f"Old={tmp_path}/b0", "--out", str(out)]
    assert benchmark.main(flags) == 0
    shown = capsys.readouterr().out
    assert "before" in shown
    assert "warmed up" in shown
    assert "since warmed up" in shown
    # s = .1, t_2 = 4.303: half = .248; and over .3, .5, .7 s = .2: .497.
    (line,) = [text for text in shown.splitlines() if "0.000 ± 0.000" in text]
    for cell in ("0.200 ± 0.248", "0.500 ± 0.497", "+0.300 ± 0.248"):
        assert cell in line
    systems = json.loads((out / "seeds.json").read_text())["systems"]
    warm = systems["Warm"]["metrics"]["avg@n/alone"]
    assert warm["warmed_up"]["values"] == [0.1, 0.2, 0.3]
    assert warm["before"]["values"] == [0, 0, 0]
    # Runs that were not measured before have no such table.
    assert "before" not in systems["Old"]["metrics"]["avg@n/alone"]
    assert "\nOld (1)" not in shown


def test_curves_can_be_chosen(write: Any, tmp_path: Path, monkeypatch: Any) -> None:
    drawn: list[Any] = []

    def draw(systems: Any, curves: Any, path: Path) -> Path:
        drawn.append(tuple(curves))
        return path

    monkeypatch.setattr("coterie.evaluation.compare.seeds.draw", draw)
    flags = ["seeds", "--out", str(tmp_path / "out"), "--systems", f"A={write('a', 0, 0.5)}"]
    assert benchmark.main(flags) == 0
    assert benchmark.main([*flags, "--curves", "rollout/rounds"]) == 0
    assert "eval/avg@n/alone" in drawn[0]
    assert "measured/policy/consulted" in drawn[0]
    assert drawn[1] == ("rollout/rounds",)


def test_mistakes(write: Any, tmp_path: Path, refused: Any) -> None:
    write("a", 0, 0.5)
    write("other", 0, 0.5, env="core-teaching")
    write("open", 0, 0.5)
    write("twin", 0, 0.4)
    (tmp_path / "open" / "summary.json").unlink()
    # It had ended after two steps, and has logged three: its results are old.
    write("old", 0, 0.5)
    (tmp_path / "old" / "summary.json").write_text('{"after": {"avg@n/alone": 0.5}, "steps": 2}')
    old = f"{tmp_path}/old was resumed with more steps than its results are of; python train.py"
    for systems, sentence in [
        ([], "write NAME=RUN,RUN, once or more"),
        (["runs/x"], "write NAME=RUN,RUN"),
        ([f"A={tmp_path}/none*"], "no directory is called"),
        ([f"A={tmp_path}/a,{tmp_path}/other"], "of different environments"),
        ([f"A={tmp_path}/a", f"A={tmp_path}/a"], "the same name"),
        ([f"A={tmp_path}/open"], "has not ended: python train.py --resume"),
        ([f"A={tmp_path}/old"], old),
        ([f"A={tmp_path}"], "is not a run"),
        ([f"A={tmp_path}/a,{tmp_path}/a*"], f"names {tmp_path}/a twice; name each run once"),
        ([f"A={tmp_path}/a,{tmp_path}/twin"], "have the same seed, 0; leave out one of them"),
    ]:
        assert sentence in refused(benchmark.main, "seeds", "--systems", *systems)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *(("config.json", text) for text in ("{", "{}", '{"choice": 5}')),
        ("config.json", '{"choice": {"env": "eapo-consultation", "roles": 5}, "run": {"seed": 0}}'),
        *(
            ("summary.json", text)
            for text in ("{", '{"after": 5}', '{"after": {"avg@n/alone": "x"}}')
        ),
        *(("metrics.jsonl", text) for text in ("{\n", '{"step": "x"}\n', '{"step": 1}\n')),
        *(("evaluations.jsonl", text) for text in ("{\n", '{"step": 99}\n')),
    ],
)
def test_a_damaged_run_is_named(
    write: Any, tmp_path: Path, refused: Any, file: str, content: str
) -> None:
    path = write("a", 0, 0.5)
    (tmp_path / "a" / file).write_text(content)
    flags = ("seeds", "--out", tmp_path / "out", "--systems", f"A={path}")
    assert refused(benchmark.main, *flags).startswith(f"benchmark.py: {path}")
    assert not (tmp_path / "out").exists()


def test_what_was_not_measured_is_no_damage(write: Any, tmp_path: Path) -> None:
    path = write("a", 0, 0.5)
    (tmp_path / "a" / "summary.json").write_text('{"after": {"avg@n/alone": null}}')
    with (tmp_path / "a" / "metrics.jsonl").open("a") as log:
        log.write('{"step": 4, "rollout/learner_tokens_total": 9, "learner/policy/loss": null}\n')
    flags = ["seeds", "--out", str(tmp_path / "out"), "--systems", f"A={path}"]
    assert benchmark.main(flags) == 0

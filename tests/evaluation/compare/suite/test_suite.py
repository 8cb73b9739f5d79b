"""Agents on suites, end to end: scripts that speak bytes, tiny models, a server."""

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from coterie.evaluation.compare.responses import Completions

CHAINS = "chains?min_length=3&max_length=3"
GOLD, HALF, WRONG = (f"scripted:oracle?p_right={p}" for p in ("1", "0.5", "0"))


def completions(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    (path,) = (tmp_path / "out" / "completions").glob(f"*/*/{name}.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


TWO = ("--policies", f"half={HALF}", f"gold={GOLD}", "--problems", CHAINS)


def test_rows_of_two_scripts(run: Any, tmp_path: Path, drawn: None) -> None:
    results, shown = run(*TWO, "--suite", "core")
    rows = results["suites"]["core"]["rows"]
    assert rows["gold"]["avg"]["value"] == 1.0
    assert 0 < rows["half"]["avg"]["value"] < 1
    assert rows["half"]["over_best"]["value"] == rows["half"]["avg"]["value"] - 1
    # Six questions are too few to say so.
    assert not rows["half"]["significant"]
    assert "core: * marks differences of 16 questions or more; here are 6" in shown
    assert rows["any/half+gold"]["avg"]["value"] == 1.0
    assert rows["any/half+gold"]["oracle"]
    assert {"vote", "vote/half", "best/half", "agreement", "routing", "cascade"} <= set(rows)
    assert rows["gold"]["money"] is None
    # "Answer: 7" is nine bytes, and four of them stand for a token.
    assert rows["gold"]["tokens"] == pytest.approx(9 / 4)
    passes = results["suites"]["core"]["pass@k"]
    assert [entry["value"] for entry in passes["team"]] == [1.0] * 4
    assert len(passes["best policy, as many candidates"]) == 2
    assert "half+gold" in results["suites"]["core"]["pairs"]
    assert max(map(len, shown.splitlines()[:-1])) <= 100
    assert (tmp_path / "out" / "core.png").stat().st_size > 5000
    first = completions(tmp_path, "half")[0]
    assert set(first) == {
        *("problem", "sample", "correct", "answer", "confidence", "text", "used", "seconds")
    }


def test_answers_that_were_cut_off_are_counted(run: Any, tmp_path: Path) -> None:
    two = ("--policies", f"gold={GOLD}", f"wrong={WRONG}", "--problems", CHAINS, "--suite", "core")
    # "Answer: 7" is nine bytes, and four of them stand for a token.
    _, shown = run(*two, "--max-new-tokens", "2")
    sentence = "24 of 24 answers broke off at 2 tokens: --max-new-tokens 256 gives them room"
    assert shown.count(sentence) == 2
    _, again = run(*two, "--max-new-tokens", "2")
    assert again.count(sentence) == 2  # nothing was sampled
    assert completions(tmp_path, "gold")[0]["cut"] == 1
    _, shown = run(*two, "--max-new-tokens", "3", out="longer")
    assert "broke off" not in shown


def test_questions_on_which_policies_differ_are_shown(
    run: Any, tmp_path: Path, drawn: None
) -> None:
    """Table 7 of arXiv:2601.21600: what each answered where one alone is right, and nobody."""
    policies = ("--policies", f"gold={GOLD}", f"wrong={WRONG}", "--problems", CHAINS)
    run(*policies, "--suite", "core", "--questions", "5")
    lines = (tmp_path / "out" / "examples.md").read_text().splitlines()
    assert lines[0].startswith("# core, chains?min")
    assert lines[2] == "## gold alone is right: 5 questions"
    assert lines[4] == "| question | right answer | gold | wrong |"
    rows = [line.strip("| ").split(" | ") for line in lines[6:] if line]
    assert len(rows) == 3
    for _, right, first, second in rows:
        assert first == right != second
    assert "nobody" not in "\n".join(lines)


def test_text_of_models_is_no_markdown(run: Any, tmp_path: Path, drawn: None) -> None:
    problems = tmp_path / "q.jsonl"
    line = {"question": "Is <b>1|2</b> a [link](x)?", "answer": "no | `yes`", "kind": "text"}
    problems.write_text(json.dumps(line))
    run("--policies", f"a={WRONG}", f"b={WRONG}", "--suite", "core", "--problems", str(problems))
    (row,) = [x for x in (tmp_path / "out/examples.md").read_text().splitlines() if "link" in x]
    assert row.startswith("| Is \\<b\\>1\\|2\\</b\\> a \\[link\\](x)? | no \\| \\`yes\\` |")


def test_nothing_is_sampled_twice_and_more_can_be_added(
    run: Any, tmp_path: Path, asked: list[tuple[str, int]]
) -> None:
    few, _ = run(*TWO, "--questions", "3", "--samples", "2")
    assert asked == [("half", 6), ("gold", 6)]
    before = completions(tmp_path, "half")
    asked.clear()
    run(*TWO, "--questions", "3", "--samples", "2")
    assert asked == []
    # Five questions and three samples are 15; 6 are there.
    run(*TWO, "--questions", "5", "--samples", "3")
    assert asked == [("half", 9), ("gold", 9)]
    after = completions(tmp_path, "half")
    assert after[:6] == before
    # All at once gives the same answers.
    run(*TWO, "--questions", "5", "--samples", "3", out="fresh")
    (path,) = (tmp_path / "fresh").glob("completions/*/*/half.jsonl")
    fresh = [json.loads(line) for line in path.read_text().splitlines()[1:]]

    def said(records: list[dict[str, Any]]) -> dict[Any, str]:
        return {(entry["problem"], entry["sample"]): entry["text"] for entry in records}

    assert said(fresh) == said(after)
    # Fewer of either look at a part of what is stored.
    again, _ = run(*TWO, "--questions", "3", "--samples", "2")
    assert again["suites"]["core"]["rows"] == few["suites"]["core"]["rows"]


def test_a_kill_costs_what_was_in_flight(
    run: Any, tmp_path: Path, asked: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = run(*TWO, out="whole")
    appended = 0

    class Killed(BaseException):
        pass

    really = Completions.append

    def append(self: Any, records: Any) -> None:
        nonlocal appended
        appended += 1
        if appended == 3:
            raise Killed
        really(self, records)

    with monkeypatch.context() as patch:
        patch.setattr("coterie.evaluation.compare.responses.Completions.append", append)
        with pytest.raises(Killed):
            run(*TWO, "--batch", "5")
    assert len(completions(tmp_path, "half")) == 10
    # As a kill in the middle of a line would leave it.
    (path,) = (tmp_path / "out").glob("completions/*/*/half.jsonl")
    path.write_bytes(path.read_bytes()[:-20])
    asked.clear()
    resumed, _ = run(*TWO, "--batch", "5")
    assert asked == [("half", 24 - 9), ("gold", 24)]

    def scored(results: Any) -> Any:
        return {
            name: (row["avg"], row["over_best"], row["tokens"])
            for name, row in results["suites"]["core"]["rows"].items()
        }

    assert scored(resumed) == scored(whole)


def test_other_agents_and_settings_are_refused(run: Any) -> None:
    run(*TWO)
    other = ("--policies", f"half={WRONG}", f"gold={GOLD}", "--problems", CHAINS)
    for flags, what in [
        (other, "policies"),
        ((*TWO, "--temperature", "0.5"), "sampling"),
        ((*TWO, "--max-new-tokens", "20"), "settings"),
        ((*TWO, "--seed", "1"), "problems, seed"),
    ]:
        message = run(*flags, code=2)
        assert f"completions of other {what}; name another folder with --out" in message


def test_all_suites_with_workflow_and_verifier(run: Any, asked: list[tuple[str, int]]) -> None:
    judge = r"judge=scripted:oracle?template=\confidence{{answer}}"
    flags = (*TWO, "--suite", "core", "corea", "eapo", "math", "--questions", "2", "--samples", "2")
    results, shown = run(*flags, "--verifier", judge)
    assert set(results["suites"]) == {"core", "corea", "eapo", "math"}
    eapo = results["suites"]["eapo"]["rows"]
    assert eapo["workflow/half"]["label"] == "half, helped by gold"
    # Three experts of the other agent write before it does.
    assert eapo["workflow/half"]["tokens"] > 3 * eapo["gold"]["tokens"]
    assert "workflow/half" not in results["suites"]["core"]["rows"]
    for suite in results["suites"].values():
        # One that knows picks a right answer wherever there is one.
        assert suite["rows"]["verifier"]["avg"]["value"] == 1.0
    assert {"half", "gold", "vote", "verifier"} <= set(results["all"])
    assert "all 4 suites" in shown
    asked.clear()
    run(*flags, "--verifier", judge)
    assert asked == []
    # Without the workflow, and with a verifier among the agents.
    plain, _ = run(*flags, "--no-workflow", "--verifier", "gold", "--verifier-tokens", "9")
    assert "workflow/half" not in plain["suites"]["eapo"]["rows"]
    assert plain["suites"]["core"]["rows"]["verifier"]["label"].startswith("team, vetted by gold")


def test_prices(run: Any, tmp_path: Path) -> None:
    results, shown = run(*TWO, "--prices", "half=0,4", "gold=0,40")
    rows = results["suites"]["core"]["rows"]
    assert rows["half"]["money"] == pytest.approx(rows["half"]["tokens"] * 4 / 1000)
    assert rows["gold"]["money"] == pytest.approx(9 / 4 * 40 / 1000)
    assert "/1k" in shown
    (tmp_path / "prices.json").write_text('{"half": [0, 4], "gold": [0, 40]}')
    again, _ = run(*TWO, "--prices", str(tmp_path / "prices.json"))
    assert again["suites"]["core"]["rows"] == rows


def test_thresholds(run: Any) -> None:
    always, _ = run(*TWO, "--threshold", "fixed", "--fixed-threshold", "1.1")
    never, _ = run(*TWO, "--threshold", "fixed", "--fixed-threshold", "0")
    assert always["suites"]["core"]["rows"]["cascade"]["avg"]["value"] == 1.0
    rows = never["suites"]["core"]["rows"]
    assert rows["cascade"]["avg"] == rows["half"]["avg"]
    # Any accuracy may be lost: nobody is asked. None may: everybody is.
    cheap, _ = run(*TWO, "--accuracy-loss", "1")
    assert cheap["suites"]["core"]["rows"]["cascade"]["avg"]["value"] < 1
    exact, _ = run(*TWO, "--accuracy-loss", "0")
    assert exact["suites"]["core"]["rows"]["cascade"]["avg"]["value"] == 1.0
    # Four samples for agreement cost four times the other agent's answer, whatever is done.
    thrifty, _ = run(*TWO, "--threshold", "cost", "--cost-share", "0.1")
    assert thrifty["suites"]["core"]["rows"]["cascade"]["avg"] == rows["half"]["avg"]
    rich, _ = run(*TWO, "--threshold", "cost", "--cost-share", "9")
    assert rich["suites"]["core"]["rows"]["cascade"]["avg"]["value"] == 1.0


def test_a_suite_from_a_file(run: Any, tmp_path: Path) -> None:
    suite = {
        "env": "coterie.envs.solo:SoloEnv",
        "role": "solver",
        "problems": [CHAINS, "chains?mix=1,0,0"],
        "settings": {"prompt": "Solve {question}", "max_new_tokens": 8},
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(suite))
    results, shown = run("--policies", f"gold={GOLD}", "--suite", str(path))
    sets = results["suites"]["mine"]["sets"]
    assert [entry["questions"] for entry in sets.values()] == [6, 6]
    assert results["suites"]["mine"]["rows"]["gold"]["macro"]["value"] == 1.0
    assert "macro" in shown
    # Figures of both would leave no room for the names of rows.
    _, shown = run("--policies", f"gold={GOLD}", "--suite", str(path), "--prices", "gold=1,4")
    assert "/1k" in shown
    assert "macro" not in shown


def test_rows_that_one_set_lacks_are_named(run: Any, tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    one.write_text(json.dumps({"question": "1 + 1 =", "answer": "2"}))
    policies = ("--policies", f"half={HALF}", f"gold={GOLD}", "--suite", "math")
    results, shown = run(*policies, "--problems", CHAINS, str(one))
    assert "cascade" not in results["suites"]["math"]["rows"]
    sentence = f"math: left out, as {one} has no such row: half, else gold, by agreement"
    assert sentence in shown.splitlines()


def test_tiny_models_with_tokenizers_of_their_own(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from coterie.agents.models.loading import load_team
    from coterie.agents.models.spec import LoraSpec, ModelSpec
    from coterie.agents.team.model_specs import model_spec
    from coterie.agents.team.settings import AgentSettings

    # A run's directory, and an adapter that has learned nothing.
    trained = tmp_path / "run" / "final" / "alice"
    model = load_team({"alice": model_spec(AgentSettings("tiny:alice"))}, trained={"alice"})
    model["alice"].handle.save(trained)
    (tmp_path / "run" / "config.json").write_text("{}")
    lora = load_team({"bob": ModelSpec("tiny:bob", lora=LoraSpec(rank=2))}, trained={"bob"})
    lora["bob"].handle.save(tmp_path / "adapter")
    agents = (
        f"alice={tmp_path / 'run'}",
        "twin=tiny:alice",
        f"bob={tmp_path / 'adapter'}",
        f"pool=pool:tiny:bob|{GOLD}",
    )
    few = ("--questions", "4", "--samples", "2", "--problems", CHAINS)
    results, _ = run("--policies", *agents, "--suite", "core", *few)
    rows = results["suites"]["core"]["rows"]
    assert rows["any/alice+twin+bob+pool"]["avg"]["value"] >= rows["any/alice+bob"]["avg"]["value"]
    # The same weights with another stream: they do not share their luck.
    texts = {
        name: [entry["text"] for entry in completions(tmp_path, name)] for name in ("alice", "twin")
    }
    assert texts["alice"] != texts["twin"]
    assert all(entry["used"]["alice"][1] > 5 for entry in completions(tmp_path, "alice"))
    assert completions(tmp_path, "pool")[0]["used"]["pool"][1] > 0


def reply(content: str, **more: Any) -> tuple[int, str]:
    choice = {"message": {"content": content}, "finish_reason": "stop"}
    return 200, json.dumps({"choices": [choice], **more})


def far(port: int, questions: int, options: str = "") -> tuple[str, ...]:
    server = f"far=server:http://127.0.0.1:{port}?model=m&concurrency=1{options}"
    few = ("--questions", str(questions), "--samples", "1")
    return "--policies", server, "--suite", "math", "--problems", CHAINS, *few


def test_a_server_that_fails_is_asked_again(
    run: Any, tmp_path: Path, web: Any, asked: list[tuple[str, int]]
) -> None:
    port = web(cycle([reply("Answer: 3"), (503, "<html>busy</html>")]).__next__).port
    flags = far(port, 4, "&retries=0&backoff_s=0&breaker_failures=99")
    results, shown = run(*flags)
    assert "2 of 4 failed" in shown
    assert "math: far: 2 of 4 questions have no answer; its figures and differences" in shown
    assert results["suites"]["math"]["rows"]["far"]["missing"] == 2
    assert len(completions(tmp_path, "far")) == 2
    run(*flags)
    assert asked == [("far", 4), ("far", 2)]


def test_a_server_has_the_limit_of_the_others(run: Any, tmp_path: Path, web: Any) -> None:
    port = web(lambda: reply("x" * 9000)).port
    run(*far(port, 2), "--max-new-tokens", "600")
    # Four bytes count as a token.
    assert [len(entry["text"]) for entry in completions(tmp_path, "far")] == [2400, 2400]


def test_a_server_is_charged_what_it_counts(run: Any, tmp_path: Path, web: Any) -> None:
    counts = cycle([{"prompt_tokens": 20, "completion_tokens": 4400}, None])
    port = web(lambda: reply("<think>hm</think>Answer: 3", usage=next(counts))).port
    run(*far(port, 2))
    sampled = sorted(entry["used"]["far"][1] for entry in completions(tmp_path, "far"))
    # "Answer: 3" is nine bytes, and four of them stand for a token where the server counts none.
    assert sampled == [9 / 4, 4400]


def test_a_judge_grades_free_text(run: Any, graded_files: dict[str, str], drawn: None) -> None:
    # It calls everything correct.
    judge = ("--scoring.judge", "scripted:useless?useless_text=A", "--samples", "1")
    flags = ("--policies", "a=scripted:oracle", "--suite", "math", *judge)
    results, _ = run(*flags, "--problems", graded_files["judged"])
    assert results["suites"]["math"]["rows"]["a"]["avg"]["value"] == 1.0

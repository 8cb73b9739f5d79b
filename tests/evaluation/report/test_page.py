"""The file as text: what a browser need not be asked about."""

import base64
import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.envs.core_teaching import evaluation as core_teaching
from coterie.evaluation.report.page import page
from coterie.evaluation.report.rundata import read_run
from coterie.evaluation.report_labels import Mark, Phase, ReportLabels, Tag

Run = Callable[..., Path]


class Elements(HTMLParser):
    """Every element that a parser finds, with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def written(path: Path, **settings: Any) -> str:
    return page(read_run(path), **settings)


def change(path: Path, **changes: Any) -> Path:
    """``path`` with fields of its JSON replaced."""
    path.write_text(json.dumps((json.loads(path.read_text()) if path.exists() else {}) | changes))
    return path


def data_of(html: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert match
    return json.loads(match[1])


def test_result_curves_pictures_and_episodes_are_there(run: Run) -> None:
    html = written(run())
    assert "<title>x: a run of Coterie</title>" in html
    # Pass@1 of alice: one of two problems, then both. The paired change is 0 or 1 by problem.
    assert re.search(
        r'Pass@1 alice</th><td>.500 <span class="interval">\[.00 1.00\]</span></td>', html
    )
    assert "+.500" in html
    assert "Who solves what" in html
    assert "alice only 50 %" in html
    # reward, correct, tags, time: too few to smooth
    assert html.count("<polyline") == 2 + 1 + 6 + 1
    shown = [episode["problem"] for episode in data_of(html)["episodes"]]
    assert shown == ["rescued", "hurt", "leaked", "deferred", "consulted", "failed"]


def test_nothing_comes_from_elsewhere(run: Run) -> None:
    html = written(run())
    assert not [word for word in ("http://", "https://", "@import", "url(") if word in html]
    for tag, attributes in Elements(html).elements:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img")
        for name in ("src", "href", "action", "data", "srcset", "poster"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:,")) or not value, (tag, name, value)
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)


def test_only_our_own_style_and_script_may_run(run: Run, hostile: list[Any]) -> None:
    html = written(run(hostile))
    elements = Elements(html).elements
    policy = next(a["content"] for _, a in elements if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for kind in ("style", "script"):
        (body,) = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.S)
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    # Attributes of style would need a policy that lets in everybody's.
    assert not any("style" in attributes for _, attributes in elements)


def test_hostile_text_is_data_and_nothing_else(run: Run, hostile: list[Any]) -> None:
    path = run()
    plain = written(path)
    (path / "episodes.jsonl").write_text(json.dumps(hostile[0]) + "\n")
    attacked = written(path)
    # No element more, whatever the models wrote.
    names, usual = ([tag for tag, _ in Elements(html).elements] for html in (attacked, plain))
    assert names.count("script") == usual.count("script") == 2
    assert "img" not in names
    shown = data_of(attacked)["episodes"][0]
    assert shown["problem"].startswith("</script><script>")
    assert shown["problem"].endswith("a‹U+202E›b␛[31mc‹U+200B›d")
    assert shown["gold"] == {"label": "right", "text": shown["problem"]}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\u200b]", attacked)


def test_hostile_names_of_metrics_and_settings_are_escaped(run: Run) -> None:
    path = run()
    evil = "<img src=x onerror=alert(1)>\x1b\u202e"
    choice = {"env": "core-teaching", "algo": "gspo", "roles": [evil]}
    change(path / "config.json", choice=choice, agents={evil: {"model": evil}})
    (path / "metrics.jsonl").write_text(
        "".join(json.dumps({"step": s, f"reward/{evil}/x": s, evil: 1}) + "\n" for s in (1, 2))
    )
    outcomes = json.loads((path / "evaluation" / "after.json").read_text())
    outcomes["correct"] = {evil: outcomes["correct"]["alice"], "bob": outcomes["correct"]["bob"]}
    for name in ("before", "after"):
        (path / "evaluation" / f"{name}.json").write_text(json.dumps(outcomes))
    html = written(path)
    assert not any(tag == "img" for tag, _ in Elements(html).elements)
    assert html.count("&lt;img src=x onerror=alert(1)&gt;␛‹U+202E›") > 5
    assert not re.search("[\x1b\u202e]", html)


def test_counts_here_and_in_the_whole_run(run: Run) -> None:
    html = written(run(), episodes=2)
    # The first and the last of six: rescued and failed.
    assert "2 of the run's 6 episodes are in this page: evenly spaced over the run." in html
    buttons = {
        a["data-tag"]: a
        for tag, a in Elements(html).elements
        if tag == "button" and "data-tag" in a
    }
    assert "1 here, 1 in the whole run" in (buttons["rescued"]["title"] or "")
    assert "0 here, 1 in the whole run" in (buttons["hurt"]["title"] or "")
    assert [name for name, a in buttons.items() if "disabled" not in a] == ["rescued", "failed"]


def test_an_environment_names_its_own_filters(
    run: Run, episode: Any, trace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one from elsewhere does, in the `Evaluation` that its `EnvSpec` names."""
    own = ReportLabels(
        tags=(Tag("agreed", "two wrote the same", (("same", True),)),),
        marks=(Mark("same", True, "agrees", "good"),),
        phases=(Phase("turn", "The second word", 2),),
    )
    plugin = dataclasses.replace(core_teaching.EVALUATION, labels=own)
    path = run([episode(1, "p", trace("alice_0", "7", "7", info={"same": True, "turn": 2}))])
    monkeypatch.setattr(core_teaching, "EVALUATION", plugin)
    html = written(path, only="agreed")
    offered = [a["data-tag"] for _, a in Elements(html).elements if "data-tag" in a]
    assert offered == ["agreed", "failed"]
    (shown,) = data_of(html)["episodes"]
    assert shown["tags"] == ["agreed"]
    (row,) = shown["traces"]
    assert (row["marks"], row["phase"]) == ([["agrees", "good"]], "The second word")
    with pytest.raises(UserError, match="--only hurt: episodes of this run can be agreed, failed"):
        written(path, only="hurt")


def test_a_run_that_paid_nothing_new_is_not_called_empty(run: Run) -> None:
    path = run()
    lines = [{"step": step, "reward/alice": 1.0} for step in (1, 2)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / "episodes.jsonl").write_text("")
    (path / "summary.json").unlink()
    html = written(path)
    assert "Nothing has been logged yet" not in html
    assert "The main metrics have not changed in 2 steps" in html


def test_the_header_tells_when_and_how_it_began(run: Run) -> None:
    path = run()
    begun = {"at": "2026-01-02 03:04 +0000", "commit": "abc-dirty"}
    change(path / "environment.json", begun=begun | {"command": "python train.py <x>"})
    html = written(path)
    assert "<dt>begun</dt><dd>2026-01-02 03:04 +0000</dd>" in html
    assert "<dt>commit</dt><dd>abc-dirty</dd>" in html
    assert "<code>python train.py &lt;x&gt;</code>" in html


def test_evaluations_between_steps_are_drawn(run: Run) -> None:
    path = run()
    before, after = {"pass@1/alice": 0.25}, {"pass@1/alice": 1.0}
    change(path / "summary.json", before=before, after=after)
    (path / "evaluations.jsonl").write_text('{"step": 2, "eval/pass@1/alice": 0.5}\n')
    first = data_of(written(path))["charts"][0]
    assert first["series"] == [{"name": "alice", "steps": [0, 2, 4], "values": [0.25, 0.5, 1.0]}]


def test_a_warm_up_has_its_own_dot_and_the_legend_its_value(run: Run) -> None:
    path = run()
    moments = {"before": 0.25, "warmed_up": 0.75, "after": 1.0}
    change(path / "summary.json", **{when: {"pass@1/bob": v} for when, v in moments.items()})
    html = written(path)
    first = data_of(html)["charts"][0]
    assert first["series"] == [{"name": "bob", "steps": [0, 0, 4], "values": [0.25, 0.75, 1.0]}]
    assert "bob 0.25 → 0.75 warmed up → 1" in html


@pytest.mark.parametrize(
    ("settings", "kept", "said"),
    [
        ({"episodes": 2, "which": "first"}, ["rescued", "hurt"], "this page: the first."),
        ({"only": "leaked"}, ["leaked"], "among those with the tag leaked"),
        ({"episodes": 0}, [], "None of the run's 6 episodes is in this page"),
    ],
)
def test_which_episodes_are_kept_is_said(
    run: Run, settings: dict[str, Any], kept: list[str], said: str
) -> None:
    html = written(run(), **settings)
    assert [episode["problem"] for episode in data_of(html)["episodes"]] == kept
    assert said in html


def test_long_episodes_are_thinned_to_the_room_there_is(run: Run, episode: Any, trace: Any) -> None:
    long = [episode(step, f"p{step}", trace("alice_0", "7", " 7" * 20_000)) for step in range(1, 6)]
    html = written(run(long), megabytes=0.9)
    # 20,000 tokens take about 0.27 MB: three of five fit, the first, the middle and the last.
    assert [episode["step"] for episode in data_of(html)["episodes"]] == [1, 3, 5]
    assert "only 3 of 5 fit into 0.9 MiB" in html


@pytest.mark.parametrize(
    ("without", "said"),
    [
        (("summary.json",), "The run has not ended: 4 of 4 steps are logged"),
        (("evaluation/after.json",), "There is no evaluation after training"),
        (("episodes.jsonl",), "No episode can be read here: episodes.jsonl is not there."),
        (("metrics.jsonl",), "No step has been logged"),
    ],
)
def test_what_is_missing_is_said(run: Run, without: tuple[str, ...], said: str) -> None:
    html = written(run(without=without))
    assert said in html
    assert "</html>" in html


def test_a_longer_run_says_what_its_results_are_of(run: Run) -> None:
    """It ended after three steps; a resumed run has logged a fourth and was killed."""
    path = run()
    ended = {"steps": 3, "after": {"pass@1/alice": 0.5}}
    (path / "summary.json").write_text(json.dumps(ended))
    said = "The run goes on: 4 of 4 steps are logged, and its results after training are of step 3."
    assert said in written(path)
    (after,) = read_run(path).evaluations
    assert after == {"step": 3, "pass@1/alice": 0.5}


def test_a_run_that_has_just_begun(run: Run) -> None:
    everything = ("summary.json", "metrics.jsonl", "episodes.jsonl")
    outcomes = ("evaluation/before.json", "evaluation/after.json")
    html = written(run(without=(*everything, *outcomes)))
    assert "No evaluation is stored with this run." in html
    assert "Nothing has been logged yet." in html
    assert "There are no episodes to read." in html


def test_damaged_lines_are_counted(run: Run) -> None:
    path = run()
    for name in ("metrics.jsonl", "episodes.jsonl"):
        with (path / name).open("a") as file:
            file.write('{"step": "one"}\n{"step": 5, "rew')
    html = written(path)
    assert "2 lines of metrics.jsonl cannot be read." in html
    assert "2 lines of episodes.jsonl hold no episode" in html


def test_roles_that_learn_differently_are_named(run: Run) -> None:
    path = run()
    agents = json.loads((path / "config.json").read_text())["agents"]
    agents["bob"] |= {"algorithm": "rloo", "learner": {"lr": 1e-4}}
    change(path / "config.json", agents=agents)
    assert f"bob ({agents['bob']['model']}, rloo, learning rate 0.0001)" in written(path)
    assert f"alice ({agents['alice']['model']})" in written(path)


def test_an_environment_that_is_not_at_hand_shows_the_stored_summary(run: Run) -> None:
    path = run()
    change(path / "config.json", choice={"env": "gone.module:Env", "roles": ["alice", "bob"]})
    change(
        path / "summary.json",
        before={"reward/team": 0.25, "undefined": None},
        after={"reward/team": 0.75, "undefined": None},
        intervals={"before": {"reward/team": [0.2, 0.3]}, "after": {}},
    )
    html = written(path)
    assert '.250 <span class="interval">[.20 .30]</span>' in html
    assert "<td>.750</td>" in html


def test_outcomes_of_another_version_are_survived(run: Run) -> None:
    path = run()
    for name in ("before", "after"):
        (path / "evaluation" / f"{name}.json").write_text('{"scores": [1, 2]}')
    (path / "summary.json").write_text('{"after": {"pass@1/alice": 0.5}}')
    html = written(path)
    assert "<td>.500</td>" in html


def test_a_missing_tokenizer_is_said_once(run: Run) -> None:
    path = run()
    change(
        path / "config.json",
        agents={"bob": {"model": "/nowhere/bob"}, "alice": {"model": "tiny:alice"}},
    )
    html = written(path)
    assert html.count("The tokenizer of bob is not on this machine") == 1


def test_who_sat_where_on_a_cluster_is_a_table(run: Run) -> None:
    path = run()
    assert "Processes of the run" not in written(path)
    learner = {"process": "learner of alice", "node": "<b>n1"}
    change(path / "summary.json", places=[learner, {"process": "engine 1", "node": "n2"}])
    html = written(path)
    assert '<th scope="col">process</th><th scope="col">node</th>' in html
    assert "<td>learner of alice</td><td>&lt;b&gt;n1</td>" in html

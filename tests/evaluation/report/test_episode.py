import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.evaluation.report.decode import RoleTokenizers
from coterie.evaluation.report.episode import all_visible, script_json, shown_episode
from coterie.evaluation.report_labels import Drawing, ReportLabels

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def show(tmp_path: Path, labels: ReportLabels) -> Make:
    decoder = RoleTokenizers(
        tmp_path, {"alice": {"model": "tiny:alice"}, "bob": {"model": "tiny:bob"}}
    )
    return lambda record: shown_episode(record, decoder, labels)


def test_a_trace_is_shown_token_by_token(show: Make, episode: Make, trace: Make) -> None:
    (shown,) = show(episode(3, "7 # 0 =", trace("alice_0", "7 # 0 =", " 7 </result>")))["traces"]
    given, sampled = shown["pieces"]
    assert given == {"kind": "given", "text": "7 # 0 ="}
    assert sampled["tokens"] == [" 7", " </result>"]
    assert sampled["logprobs"] == [-1.0, -0.693]
    assert sampled["finish"] == "eos"
    assert (shown["role"], shown["phase"]) == ("alice", "Round A: alone")
    assert shown["terms"] == [["exploitation", 1.0], ["rescue", 0.3], ["exploration", 0.0]]
    assert (shown["loss"], shown["advantage"], shown["weight"]) == (True, -0.5, 0.8)
    assert shown["marks"] == [["right", "good"]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"advantage": 0.5}, "advantage +0.5: the 2 underlined tokens become more likely"),
        (
            {"advantage": -1.25, "loss_weight": 0.5},
            "advantage −1.25, loss weight 0.5: the 2 underlined tokens become less likely",
        ),
        (
            {"advantage": 0.0},
            "advantage 0: the reward equals what it was compared with, so it does not move the 2 "
            "underlined tokens",
        ),
        (
            {"advantage": 0.0, "token_bonus": [[0.5, 0.0]]},
            "advantage 0: the reward equals what it was compared with, so it does not move the 2 "
            "underlined tokens; single tokens have an advantage of their own on top",
        ),
        ({"advantage": 1.0, "loss_weight": 0.0}, "not learned: advantage +1, loss weight 0"),
        ({"advantage": None}, "not learned: it entered no update"),
        ({"status": "failed: deadline"}, "not learned: failed: deadline"),
    ],
)
def test_what_the_update_does_is_one_sentence(
    show: Make, episode: Make, trace: Make, changes: dict[str, Any], sentence: str
) -> None:
    row = trace("alice_0", "7 # 0 =", " 7 </result>", loss_weight=1.0)
    (shown,) = show(episode(3, "7 # 0 =", row | changes))["traces"]
    assert shown["update"] == sentence


def test_a_turn_that_is_not_learned_is_not_underlined(
    show: Make, episode: Make, trace: Make
) -> None:
    row = trace("alice_0", "7 # 0 =", " 7 # 0 = 7", advantage=1.0, loss_weight=1.0)
    start, end = row["turns"][0]
    row |= {"turns": [[start, start + 2], [end - 1, end]], "logprobs": [[-0.1, -0.2], [-0.3]]}
    row |= {"finish": ["stop", "eos"], "untrained": [[start, start + 2]]}
    (shown,) = show(episode(1, "p", row))["traces"]
    assert [piece["loss"] for piece in shown["pieces"] if piece["kind"] == "sampled"] == [
        False,
        True,
    ]
    assert shown["update"] == "advantage +1: the underlined token becomes more likely"


def test_what_a_hint_adds_to_each_token(show: Make, episode: Make, trace: Make) -> None:
    row = trace("alice_0", "7 # 0 =", " 7 </result>")
    for stored, bonus in (([[0.25, -1]], [0.25, -1]), ([], [])):
        (shown,) = show(episode(3, "7 # 0 =", row | {"token_bonus": stored}))["traces"]
        assert shown["pieces"][1]["bonus"] == bonus


def test_several_turns_with_something_given_back(show: Make, episode: Make, trace: Make) -> None:
    row = trace("alice_0", "7 # 0 =", " 7 # 0 = 7")
    start, end = row["turns"][0]
    row |= {
        "turns": [[start, start + 2], [end - 1, end]],
        "logprobs": [[-0.1, -0.2], [-0.3]],
        "finish": ["stop", "eos"],
    }
    (shown,) = show(episode(1, "p", row))["traces"]
    assert [piece["kind"] for piece in shown["pieces"]] == ["given", "sampled"] * 2
    assert shown["pieces"][2]["text"] == " 0 ="
    assert shown["pieces"][3]["tokens"] == [" 7"]


def test_the_reward_of_an_episode_counts_an_agent_once(
    show: Make, episode: Make, trace: Make
) -> None:
    made = [("alice_0", 0.2), ("bob_0", 0.6), ("bob_0", 0.6), ("bob_0", 0.6)]
    rows = [trace(agent, "7 # 0 =", " 7", reward=reward) for agent, reward in made]
    assert show(episode(1, "p", *rows))["reward"] == pytest.approx(0.4)  # by rows 0.5
    # Where somebody learns, theirs is shown; where nobody does, that of all.
    rows[0] |= {"advantage": None}
    assert show(episode(1, "p", *rows))["reward"] == pytest.approx(0.6)
    frozen = [row | {"advantage": None} for row in rows]
    assert show(episode(1, "p", *frozen))["reward"] == pytest.approx(0.4)
    assert show(episode(1, "p", *[row | {"reward": None} for row in rows]))["reward"] is None


def test_without_probabilities_the_text_is_left(show: Make, episode: Make, trace: Make) -> None:
    """Servers may give none."""
    (shown,) = show(episode(1, "p", trace("alice_0", "7", " 7", logprobs=[[None]])))["traces"]
    assert shown["pieces"] == [{"kind": "given", "text": "7"}, {"kind": "written", "text": " 7"}]


def test_without_a_tokenizer_the_text_is_left(tmp_path: Path, episode: Make, trace: Make) -> None:
    decoder = RoleTokenizers(tmp_path, {"alice": {"model": "/nowhere"}})
    row = trace("alice_0", "7", " 7")
    # Of two pieces in a row that were given nobody knows any more which is which.
    unclear = row | {"texts": ["a", "b", "c"]}
    for record, kinds in ((row, ["given", "written"]), (unclear, ["text"] * 3)):
        (shown,) = shown_episode(episode(1, "p", record), decoder, ReportLabels())["traces"]
        assert [piece["kind"] for piece in shown["pieces"]] == kinds


def test_hints_consults_and_cascades(show: Make, episode: Make, trace: Make) -> None:
    calls = [
        {"expert_id": 1, "query": "q", "accepted": True, "result": "r", "states_gold": True},
        {"expert_id": 2, "query": "q", "accepted": False, "replied": True, "result": None},
        {"expert_id": 3, "query": "q", "accepted": True, "replied": False, "result": ""},
    ]
    shown = show(
        episode(
            1,
            "p",
            hints={"alice": "do this"},
            teachers={"alice": "bob_1"},
            reread_hints={"bob": "7"},
            rounds=[calls],
            cascade=[{"deferred": True, "cost": 67.0, "answered_by": None}],
            p_hat={"small": 0.5},
        )
    )
    assert shown["hints"] == [
        {"to": "alice", "by": "bob_1", "text": "do this", "again": False},
        {"to": "bob", "by": "", "text": "7", "again": True},
    ]
    assert [call["fate"] for call in shown["consults"][0]] == [
        "accepted",
        "rejected by the draw",
        "no reply",
    ]
    assert [call["states_gold"] for call in shown["consults"][0]] == [True, False, False]
    assert shown["cascade"] == [[["deferred", "yes"], ["cost", "67"]]]
    assert shown["facts"] == [["p_hat", "small 0.5"]]


@pytest.mark.parametrize(
    ("info", "phase"),
    [
        ({"round": "B", "hinted": True}, "Round B: again, with or without a hint"),
        ({"stated": True, "deferred": False}, "First answers"),
        ({"stated": True}, "Answers to what was deferred"),
        ({"consulted": False}, "The policy's conversation"),
        ({"asked": 1}, "Experts, who see one query each"),
        ({}, ""),
    ],
)
def test_phases(show: Make, episode: Make, trace: Make, info: dict[str, Any], phase: str) -> None:
    (shown,) = show(episode(1, "p", trace("bob_0", "7", " 7", info=info)))["traces"]
    assert shown["phase"] == phase


def test_confidence_is_a_number_or_nothing(show: Make, episode: Make, trace: Make) -> None:
    for stated, shown in ((0.25, 0.25), (None, None), (True, None), ("0.9", None)):
        row = trace("bob_0", "7", " 7", info={"confidence": stated})
        assert show(episode(1, "p", row))["traces"][0]["confidence"] == shown


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("number", "right"),
        ("code", "a solution; tests decide"),
        ("judged", "right, and a judge decides"),
    ],
)
def test_what_was_right(show: Make, episode: Make, kind: Any, label: str) -> None:
    shown = show(episode(1, "p") | {"gold": "7", "kind": kind})
    assert shown["gold"] == {"label": label, "text": "7"}


def test_a_gold_may_be_missing_and_a_long_one_is_cut(show: Make, episode: Make) -> None:
    def gold(text: str | None) -> Any:
        return show(episode(1, "p") | {"gold": text, "kind": "text"})["gold"]

    assert gold(None) is None
    assert gold(2000 * "x")["text"] == 2000 * "x"
    cut = gold(2000 * "x" + 3456 * "y")["text"]
    assert cut == 2000 * "x" + " … and 3,456 more characters"


@pytest.mark.parametrize("info", [{}, {"moves": 3}, {"moves": {}}])
def test_an_environment_draws_what_it_measured(
    tmp_path: Path, episode: Make, info: dict[str, Any]
) -> None:
    def draw(moves: Any) -> dict[str, str]:
        return {role: " > ".join(names) for role, names in moves.items()}

    labels = ReportLabels(drawings=(Drawing("Moves", "moves", draw),))
    decoder = RoleTokenizers(tmp_path, {})
    shown = shown_episode(episode(1, "p", moves={"white": ["e4", "d4"]}, won=True), decoder, labels)
    assert shown["drawings"] == [{"title": "Moves", "parts": [["white", "e4 > d4"]]}]
    assert shown["facts"] == [["won", "yes"]]
    # Nothing was measured, or something else, or nothing is to be drawn.
    assert shown_episode(episode(1, "p", **info), decoder, labels)["drawings"] == []


def test_plain_data_is_walked_keys_included() -> None:
    data = {"a\x00": ["\x01", {"k": ("\x02", 1.5, None, True)}]}
    assert all_visible(data) == {"a␀": ["␁", {"k": ["␂", 1.5, None, True]}]}


def test_json_cannot_end_or_change_its_script_element() -> None:
    value = {"</script>": "<!-- <script> ]]> & \" ' \\"}
    text = script_json(value)
    assert not set(text) & set("<>&")
    assert json.loads(text) == value


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        script_json([float("nan")])

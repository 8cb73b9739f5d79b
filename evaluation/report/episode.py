"""One episode of the log as plain data for the page, with all hidden characters made visible."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coterie.datatypes import role_of
from coterie.datatypes.visible import visible
from coterie.evaluation.report.decode import RoleTokenizers
from coterie.evaluation.report.scan import Record
from coterie.evaluation.report_labels import Drawing, Mark, ReportLabels

Shown = dict[str, Any]

_VERDICTS = (Mark("correct", True, "right", "good"), Mark("correct", False, "wrong", "bad"))
# Kind of answer -> label of its reference answer; "right" for all others.
_GOLD = {"code": "a solution; tests decide", "judged": "right, and a judge decides"}
_LONGEST_GOLD = 2000
# Hints for a second try and for rereading -> the roles whose traces they come from.
_HINTS = {"hints": "teachers", "reread_hints": "reread_teachers"}
# Measurements of an episode that the page shows elsewhere.
_PLACED = ("problem", "mode", *_HINTS, *_HINTS.values(), "rounds", "cascade")


def shown_episode(
    record: Record, decoder: RoleTokenizers, labels: ReportLabels, tags: Sequence[str] = ()
) -> Shown:
    """Everything that the page shows of one line of episodes.jsonl.

    Args:
        record: the line.
        decoder: decodes token ids.
        labels: marks, phases and drawings of the environment.
        tags: tags of the episode.
    """
    info = record["info"]
    agent_traces = [_trace(row, decoder, labels) for row in record["trajectories"]]
    placed = (*_PLACED, *(drawing.measured for drawing in labels.drawings))
    state = _state(record) if record.get("problem_shown") is False else ""
    return all_visible(
        {
            "step": record["step"],
            # An environment without problems shows its state instead.
            "problem": state or record["problem"],
            "state": bool(state),
            "gold": None if state else _gold(record),
            "mode": record["mode"],
            "seed": str(record["seed"]),
            "tags": list(tags),
            "hints": [hint for name in _HINTS for hint in _hints(info, name)],
            "consults": [_round(calls) for calls in _list(info.get("rounds"))],
            "cascade": [_pairs(_mapping(answer)) for answer in _list(info.get("cascade"))],
            "drawings": [shown for d in labels.drawings if (shown := _drawing(d, info))],
            "facts": _pairs({k: v for k, v in info.items() if k not in placed}),
            "reward": _mean_reward(agent_traces),
            "traces": agent_traces,
        }
    )


def _mean_reward(shown: Sequence[Shown]) -> float | None:
    """Mean reward of the agents that learn from the episode, or of all if none does."""
    # An agent whose context began anew has several rows, and counts once.
    learning = [trace for trace in shown if trace["loss"]]
    by_agent: dict[str, list[float]] = {}
    for trace in learning or shown:
        if trace["reward"] is not None:
            by_agent.setdefault(trace["agent"], []).append(trace["reward"])
    means = [math.fsum(rewards) / len(rewards) for rewards in by_agent.values()]
    return math.fsum(means) / len(means) if means else None


def _hints(info: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The episode's hints with their readers, their sources, and whether they are for rereading."""
    teachers = _mapping(info.get(_HINTS[name]))
    for role, text in _mapping(info.get(name)).items():
        by, again = str(teachers.get(role, "")), name == "reread_hints"
        yield {"to": str(role), "by": by, "text": str(text), "again": again}


def _drawing(drawing: Drawing, info: Mapping[str, Any]) -> Shown | None:
    """A drawing's title and texts by name; None if there is nothing to draw."""
    try:
        parts = drawing.draw(info[drawing.measured])
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        # The value is missing, or from another version of the environment.
        return None
    shown = [[str(name), str(text)] for name, text in parts.items()]
    return {"title": drawing.title, "parts": shown} if shown else None


def _state(record: Record) -> str:
    """The last prompt of the longest trace; of equally long ones, that of the last."""
    texts_by_trace = [row["texts"] for row in record["trajectories"]]
    longest = max(reversed(texts_by_trace), key=len, default=[])
    return longest[-2].strip() if len(longest) > 1 else ""


def _gold(record: Record) -> Shown | None:
    """The reference answer; None if the log has none."""
    gold = record.get("gold")
    if gold is None:
        return None
    rest = len(gold) - _LONGEST_GOLD
    more = f" … and {rest:,} more characters" if rest > 0 else ""
    label = _GOLD.get(record["kind"], "right")
    return {"label": label, "text": gold[:_LONGEST_GOLD] + more}


def _trace(row: Record, decoder: RoleTokenizers, labels: ReportLabels) -> Shown:
    info = row["info"]
    marks = (*_VERDICTS, *labels.marks)
    agent, status, weight = row["agent"], row["status"], row["loss_weight"]
    advantage = _number(row["advantage"])
    # A row that failed, or of a role that does not learn, has no advantage.
    learned = status == "ok" and advantage is not None and weight != 0
    pieces = _pieces(row, role_of(agent), decoder, learned=learned)
    return {
        "agent": agent,
        "role": role_of(agent),
        "phase": next((p.text for p in labels.phases if p.applies(info)), ""),
        "status": status,
        "reward": _number(row["reward"]),
        "terms": [[name, _number(value)] for name, value in row["reward_terms"].items()],
        "advantage": advantage,
        "weight": weight,
        "loss": learned,
        "update": _update(status, advantage, weight, pieces),
        "confidence": _number(info.get("confidence")),
        "answer": None if info.get("answer") is None else str(info["answer"]),
        "marks": [[m.text, m.tone] for m in marks if info.get(m.measured) == m.value],
        "pieces": pieces,
        "info": _pairs(info),
    }


def _update(status: str, advantage: float | None, weight: float, pieces: Sequence[Shown]) -> str:
    """One sentence on the effect of the update on the sampled tokens of a trace."""
    if status != "ok":
        return f"not learned: {status}"
    if advantage is None:
        return "not learned: it entered no update"
    value = f"advantage {advantage:+.3g}".replace("-", "−") if advantage else "advantage 0"
    if weight == 0:
        return f"not learned: {value}, loss weight 0"
    if weight != 1:
        value += f", loss weight {weight:g}"
    learned = [piece for piece in pieces if piece.get("loss")]
    count = sum(len(piece["tokens"]) for piece in learned)
    several = f"the {count} underlined tokens" if count else "its tokens"
    tokens, become = ("the underlined token", "becomes") if count == 1 else (several, "become")
    reward = f"{tokens} {become} {'more' if advantage > 0 else 'less'} likely"
    if not advantage:
        reward = f"the reward equals what it was compared with, so it does not move {tokens}"
    if any(any(piece["bonus"]) for piece in learned):
        reward += "; single tokens have an advantage of their own on top"
    return f"{value}: {reward}"


def _pieces(row: Record, role: str, decoder: RoleTokenizers, *, learned: bool) -> list[Shown]:
    """Prompts and sampled turns in order; sampled turns have tokens and log-probabilities if the
    tokenizer is known, else their text."""
    texts, ids, finish, turns = row["texts"], row["tokens"], row["finish"], _spans(row)
    if turns is None or not all(
        decoder.agrees(role, ids[start:end], texts) for start, end, _ in turns
    ):
        return _as_written(texts, finish)
    words = decoder.tokens(role, ids)
    if words is None:
        return _as_written(texts, finish)
    pieces: list[Shown] = []
    seen = 0
    bonuses, untrained = row.get("token_bonus"), row.get("untrained", [])
    for turn, (start, end, logprobs) in enumerate(turns):
        if start > seen:
            pieces.append({"kind": "given", "text": "".join(words[seen:start])})
        pieces.append(
            {
                "kind": "sampled",
                "tokens": words[start:end],
                "logprobs": [round(value, 3) for value in logprobs],
                # What a hint, or the turn's own reward, added to the advantage of each token.
                "bonus": bonuses[turn] if bonuses else [],
                "finish": finish[turn],
                "loss": learned and [start, end] not in untrained,
            }
        )
        seen = end
    if seen < len(words):
        pieces.append({"kind": "given", "text": "".join(words[seen:])})
    return pieces


def _as_written(texts: Sequence[str], finish: Sequence[str]) -> list[Shown]:
    # Prompts and answers alternate, unless a context began anew or an answer had no new prompt.
    alternate = len(texts) == 2 * len(finish)
    kinds = ("given", "written") if alternate else ("text", "text")
    return [{"kind": kinds[index % 2], "text": text} for index, text in enumerate(texts)]


def _spans(row: Record) -> list[tuple[int, int, list[float]]] | None:
    """(start, end, log-probabilities) of each sampled turn; None if one was not measured."""
    spans = [(start, end, values) for (start, end), values in zip(row["turns"], row["logprobs"])]
    return None if any(None in values for *_, values in spans) else spans


def _round(calls: Any) -> list[Shown]:
    """One round of consulting: each expert's query and reply."""
    return [
        {
            "expert": str(call.get("expert_id", "")),
            "query": str(call.get("query", "")),
            "result": None if not call.get("result") else str(call["result"]),
            "fate": _fate(call),
            "states_gold": call.get("states_gold") is True,
        }
        for call in _list(calls)
        if isinstance(call, Mapping)
    ]


def _fate(call: Mapping[str, Any]) -> str:
    if not call.get("accepted"):
        return "rejected by the draw"
    return "accepted" if call.get("result") else "no reply"


def _pairs(values: Mapping[str, Any]) -> list[list[str]]:
    """Name and value of each measurement as text; missing ones are left out."""
    return [[str(name), _text(value)] for name, value in values.items() if value is not None]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return round(value, 6)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def all_visible(value: Any) -> Any:
    """Plain data with :func:`visible` applied to every string, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(key)): all_visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [all_visible(item) for item in value]
    return value


def script_json(value: Any) -> str:
    """JSON for the inside of a ``<script>`` element, which ``</script>`` and ``<!--`` would end or
    change: ``<``, ``>`` and ``&`` are escaped.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")

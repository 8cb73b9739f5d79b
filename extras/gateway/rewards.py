"""What the value that a program returns pays each role."""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from coterie.envs.contract import why_no_reward
from coterie.extras.gateway.outcome import Record


class NoReward(Exception):
    """The value of a program pays nobody; the message is one sentence."""


class Unreadable:
    """Stands for a value that is neither text nor a number."""

    def __init__(self, value: Any) -> None:
        """``value``: of any class; its methods may raise anything."""
        try:
            self._shown = " ".join(repr(value).split())[:100]
        except Exception:
            self._shown = f"a {type(value).__name__}"

    def __repr__(self) -> str:
        return self._shown


def plain(value: Any) -> Any:
    """Convert what a program returned to Python's own types: text to grade, a number, or role ->
    number or list of numbers. What cannot be read becomes :class:`Unreadable`; anything else stays
    as it is.

    This runs in the program's thread, the only one that calls methods of the program's classes.
    """
    try:
        if isinstance(value, str):
            return str.__str__(value)  # a subclass could run its own code later
        if isinstance(value, Real):
            return _number(value)
        if isinstance(value, Mapping):
            return {_name(role): _numbers(reward) for role, reward in dict(value).items()}
    except Exception:
        return Unreadable(value)
    return value


def _name(role: Any) -> str:
    return str.__str__(role) if isinstance(role, str) else repr(Unreadable(role))


def _numbers(value: Any) -> Any:
    return [_number(each) for each in value] if isinstance(value, list | tuple) else _number(value)


def _number(value: Any) -> float | Unreadable:
    # float() takes arrays and tensors of one number, and also text, which is no reward.
    try:
        return Unreadable(value) if isinstance(value, str | bytes) else float(value)
    except Exception:
        return Unreadable(value)


def earned(
    title: str,
    value: Any,
    records: Mapping[str, Record],
    correct: Callable[[str], bool],
) -> dict[str, dict[str, Any]]:
    """Role -> what its last info says of its reward.

    Args:
        title: the program, which messages begin with.
        value: what the program returned, as :func:`plain` converts it.
        records: role -> its turns.
        correct: whether a text answers the problem.

    Raises:
        NoReward: the value is none of those that a program may return.
    """
    if isinstance(value, str):
        right = correct(value)
        return {
            role: {"reward_terms": {"correct": float(right)}, "correct": right} for role in records
        }
    by_role: Any = dict.fromkeys(records, value) if isinstance(value, float) else value
    if not isinstance(by_role, Mapping) or not set(by_role) <= set(records):
        raise NoReward(
            f"{title} gave {Unreadable(value)!r}; it must give a text to grade, a number, or a "
            f"dictionary by role ({', '.join(records)}) of numbers, or of lists with a number for "
            "each answer"
        )
    return {
        role: _paid(title, record, by_role[role]) if role in by_role else {"reward_terms": {}}
        for role, record in records.items()
    }


def _paid(title: str, record: Record, reward: Any) -> dict[str, Any]:
    """What a role earns by a number, or by a number for each answer that the program got."""
    by_turn = isinstance(reward, list)
    numbers = reward if by_turn else [reward]
    answers = record.calls - len(record.undelivered)
    if by_turn and len(numbers) != answers:
        raise NoReward(
            f"{title} gave {record.role} {len(numbers)} rewards, and it had {answers} answers; "
            "give a number for each answer, or one number"
        )
    for number in numbers:
        if why := why_no_reward(record.role, number):
            raise NoReward(f"{title}: {why}")
    info: dict[str, Any] = {"reward_terms": {"program": sum(numbers, 0.0)}}
    if by_turn:
        left, turns = iter(numbers), range(record.calls)
        info["turn_rewards"] = [0.0 if t in record.undelivered else next(left) for t in turns]
    return info

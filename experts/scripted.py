"""Scripted experts, for tests, controls and noise."""

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal

from coterie.datatypes import (
    Completion,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    TokenCodec,
    UserError,
    derive_seed,
    listed_moves,
)
from coterie.experts.replies import ExpertCounters, encode_reply
from coterie.experts.settings import ScriptedSettings

_NUMBER = re.compile(r"[+-]?\d{1,40}(?:\.\d{1,40})?", re.ASCII)
_RATIO = re.compile(r"([+-]?\d{1,40})/(\d{1,40})", re.ASCII)
# The default context rounds to 28 digits.
_EXACT = Context(prec=100)
_STEPS = (-10, -2, -1, 1, 2, 10)


class ScriptedPolicy:
    """Answers by a script; a reply is a function of settings, problem and seed."""

    def __init__(self, settings: ScriptedSettings, codec: TokenCodec) -> None:
        """
        Args:
            settings: the script.
            codec: the role's codec, for replies.
        """
        self.settings = settings
        self.counters = ExpertCounters()
        self._codec = codec

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Return the scripted reply.

        Raises:
            PolicyFailure: the script is silent.
            UserError: the script needs a problem or a list of moves, and there is none.
        """
        self.counters.calls += 1
        try:
            await asyncio.sleep(self.settings.delay_s)
        except asyncio.CancelledError:
            self.counters.failures["cancelled"] += 1
            raise
        if self.settings.kind == "random":
            text = random_move(prompt.text, prompt.seed)
        else:
            text = scripted_reply(self.settings, prompt.problem, prompt.seed)
        if text is None:
            self.counters.failures["silent"] += 1
            raise PolicyFailure("expert is silent")
        completion = encode_reply(text, self._codec, sampling.max_new_tokens)
        self.counters.add(completion)
        return completion


def scripted_reply(settings: ScriptedSettings, problem: Problem | None, seed: int) -> str | None:
    """Return the script's reply; None for silence.

    Args:
        settings: the script.
        problem: the problem; None if the environment has none.
        seed: the prompt's seed, which determines all randomness.

    Raises:
        UserError: the script needs the gold answer, and there is no problem.
    """
    if settings.kind == "silent":
        return None
    if settings.kind == "useless":
        return settings.useless_text
    if problem is None:
        raise UserError(
            f"a scripted expert of kind {settings.kind!r} reads the gold answer, and this "
            "environment hands on no problem: use kind 'useless', 'silent' or a model"
        )
    solution = str(problem.meta.get("solution", ""))
    if settings.kind == "gold-hint":
        return settings.hint_template.replace("{answer}", problem.gold)
    rng = random.Random(derive_seed(seed, "scripted"))
    if rng.random() < settings.p_right:
        answer = problem.gold
        if solution and "{solution}" in settings.template:
            return settings.template.replace("{solution}", solution).replace("{answer}", answer)
    elif settings.wrong:
        golds = {gold.strip() for gold in problem.golds}
        others = [text for text in settings.wrong if text.strip() not in golds]
        answer = rng.choice(others) if others else wrong_answer(problem, rng)
    else:
        answer = wrong_answer(problem, rng)
    return settings.template.replace("{solution}", f"Answer: {answer}").replace("{answer}", answer)


def random_move(context: str, seed: int) -> str:
    """Choose one of the moves in the last line such as ``Moves: 0 2 5``.

    Raises:
        UserError: there is no such line.
    """
    moves = listed_moves(context)
    if not moves:
        raise UserError(
            "scripted:random plays among the moves that a game lists after 'Moves:', and here "
            "none are listed; name another player"
        )
    return random.Random(derive_seed(seed, "random-move")).choice(moves)


class StoredPolicy:
    """Replays stored replies: expert k gives the k-th reply to a problem."""

    def __init__(self, replies: Mapping[str, Sequence[str]], codec: TokenCodec) -> None:
        """
        Args:
            replies: problem id -> replies, in the order of experts.
            codec: the role's codec, for replies.
        """
        self._replies = replies
        self._codec = codec

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Return the stored reply of the agent.

        Raises:
            PolicyFailure: there is none.
        """
        replies = self._replies.get(prompt.problem.id, ()) if prompt.problem else ()
        seat = int(prompt.agent.rpartition("_")[2])
        if seat >= len(replies):
            raise PolicyFailure("no reply is stored")
        return encode_reply(replies[seat], self._codec, sampling.max_new_tokens)


def wrong_answer(problem: Problem, rng: random.Random) -> str:
    """Return an answer to ``problem`` whose value differs from the gold answer.

    Choices get another letter, numbers and ratios change by a small step, lists get another entry,
    formulas get 1 added, other text is negated, and programs are left out.
    """
    gold = problem.gold.strip()
    if problem.kind == "choice":
        letters = [chr(ord("A") + i) for i in range(max(2, len(problem.choices)))]
        return rng.choice([letter for letter in letters if letter != gold.strip("()").upper()])
    if problem.kind in ("text", "qa", "judged"):
        return f"not {gold}"
    if problem.kind == "code":
        return "```python\n# " + str(problem.meta.get("entry_point", "")) + "\n```"
    if problem.kind == "list" and "," in gold:
        first, rest = gold.split(",", 1)
        # A number beyond every entry, so that the list is no reordering of the gold one.
        return f"{_beyond(gold)},{rest}" if _NUMBER.fullmatch(first.strip()) else f"{gold}, 0, 0"
    if _NUMBER.fullmatch(gold.replace(",", "")):
        return _other_number(problem, rng)
    return _move(gold, rng)


def _other_number(problem: Problem, rng: random.Random) -> str:
    """A number that differs from every wording of the answer by more than the tolerance."""
    plain = [text.strip().replace(",", "") for text in problem.golds]
    golds = [Decimal(text) for text in plain if _NUMBER.fullmatch(text)]
    scale = int(problem.tolerance) + 1
    moved = [_EXACT.add(golds[0], Decimal(step * scale)) for step in _STEPS]
    wrong = [
        number
        for number in moved
        if all(abs(_EXACT.subtract(number, right)) > problem.tolerance for right in golds)
    ]
    return format(rng.choice(wrong or [_EXACT.add(max(golds), Decimal(scale))]), "f")


def _move(gold: str, rng: random.Random) -> str:
    step = rng.choice(_STEPS)
    ratio = _RATIO.fullmatch(gold.replace(",", ""))
    if ratio and int(ratio[2]):
        top, bottom = int(ratio[1]), int(ratio[2])
        return f"{top + step * bottom}/{bottom}"
    return f"{gold}+1" if gold else "0"


def _beyond(gold: str) -> str:
    """A number larger than every number in ``gold``."""
    digits = max((len(run) for run in re.findall(r"\d+", gold)), default=0)
    return "1" + "0" * min(digits, 60)

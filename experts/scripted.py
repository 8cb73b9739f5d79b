"""Experts that follow a script: for tests, controls and noise settings."""

import asyncio
import random
from typing import Any

from experts.perturb import wrong_answer
from experts.replies import ExpertCounters, encode_reply
from experts.settings import ScriptedSettings
from vocabulary import (
    Completion,
    PolicyFailure,
    Problem,
    Prompt,
    Sampling,
    TokenCodec,
    UserError,
    derive_seed,
)


class ScriptedPolicy:
    """Answers by a script; a reply is a function of the settings, the problem and the seed."""

    def __init__(self, settings: ScriptedSettings, codec: TokenCodec) -> None:
        """
        Args:
            settings: the script.
            codec: the role's, in which replies are encoded.
        """
        self.settings = settings
        self.counters = ExpertCounters()
        self._codec = codec

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """The scripted reply.

        Raises:
            PolicyFailure: the script is silent.
            UserError: the script needs the gold answer, and the environment gives no problem.
        """
        self.counters.calls += 1
        try:
            await asyncio.sleep(self.settings.delay_s)
        except asyncio.CancelledError:
            self.counters.failures["cancelled"] += 1
            raise
        text = scripted_reply(self.settings, prompt.problem, prompt.seed)
        if text is None:
            self.counters.failures["silent"] += 1
            raise PolicyFailure("expert is silent")
        completion = encode_reply(text, self._codec, sampling.max_new_tokens)
        self.counters.add(completion)
        return completion

    def identity(self) -> dict[str, Any]:
        """Whatever decides how a given prompt is answered, for caches."""
        return {"policy": "scripted", **vars(self.settings)}


def scripted_reply(settings: ScriptedSettings, problem: Problem | None, seed: int) -> str | None:
    """What the script says, or None for silence."""
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
        others = [text for text in settings.wrong if text.strip() != problem.gold.strip()]
        answer = rng.choice(others) if others else wrong_answer(problem, rng)
    else:
        answer = wrong_answer(problem, rng)
    return settings.template.replace("{solution}", f"Answer: {answer}").replace("{answer}", answer)

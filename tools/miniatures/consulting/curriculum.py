"""The two phases of a warm start."""

import random
from functools import partial

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.consulting.corpus import (
    call_example,
    expert_example,
    lone_example,
    returned_example,
)
from launch.tiny.consulting.recipes import ConsultingRecipe
from launch.tiny.example import Example
from launch.tiny.fitting import Fit, Report
from launch.tiny.phases import first_phase, second_phase
from launch.tiny.teaching.corpus import draw_any, draw_length, draw_strong
from launch.tiny.teaching.habits import habits_of
from problems.chains import Chain

# Shares of phase 2's batches for a policy: on its own, with a panel, with replies.
_ALONE, _PANEL = 0.35, 0.3


def warm_start(
    recipe: ConsultingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
    rng = random.Random(recipe.seed)
    habits = habits_of(recipe.role, recipe.weak, recipe.wrong)
    uniform = rng.random

    # The chains of a batch have one length, so that little is padded.
    def strong_batch(operators: str) -> list[Example]:
        length = draw_length(uniform)
        chains = [draw_strong(operators, length, uniform) for _ in range(recipe.batch)]
        if not recipe.consults:
            return [expert_example(chain, uniform) for chain in chains]
        return [lone_example(chain, habits, uniform, panel=False) for chain in chains]

    def mixed_batch() -> list[Example]:
        length = draw_length(uniform)
        chains = [draw_any(length, uniform) for _ in range(recipe.batch)]
        if not recipe.consults:
            return [expert_example(chain, uniform) for chain in chains]
        u = uniform()
        if u < _ALONE:
            return [lone_example(chain, habits, uniform, panel=False) for chain in chains]
        if u < _ALONE + _PANEL:
            return [first_turn(chain) for chain in chains]
        return [
            returned_example(
                chain,
                habits,
                uniform,
                decomposed=recipe.decomposed,
                unavailable=recipe.unavailable,
                cut=recipe.cut,
                scrambled=recipe.scrambled,
            )
            for chain in chains
        ]

    def first_turn(chain: Chain) -> Example:
        if uniform() < recipe.asking:
            return call_example(chain, habits, uniform, decomposed=recipe.decomposed)[0]
        return lone_example(chain, habits, uniform, panel=True)

    model.train()
    fit = Fit(model, tokenizer, recipe.learning_rate)
    stages = [
        partial(strong_batch, recipe.strong[:count]) for count in range(1, len(recipe.strong) + 1)
    ]
    first_phase(fit, recipe, stages, report, "strong operations")
    second_phase(fit, recipe, mixed_batch, report, "all operations")
    model.eval()

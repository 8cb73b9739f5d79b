"""The two phases of a warm start."""

import random
from functools import partial

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.example import Example
from launch.tiny.fitting import Fit, Report
from launch.tiny.phases import first_phase, second_phase
from launch.tiny.teaching.corpus import (
    cold_example,
    draw_any,
    draw_length,
    draw_strong,
    hinted_example,
)
from launch.tiny.teaching.habits import habits_of
from launch.tiny.teaching.recipes import TeachingRecipe


def warm_start(
    recipe: TeachingRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
    rng = random.Random(recipe.seed)
    habits = habits_of(recipe.role, recipe.weak, recipe.wrong)
    uniform = rng.random

    # The chains of a batch have one length, so that nothing is padded.
    def strong_batch(operators: str) -> list[Example]:
        length = draw_length(uniform)
        chains = [draw_strong(operators, length, uniform) for _ in range(recipe.batch)]
        return [cold_example(chain, habits, uniform) for chain in chains]

    def mixed_batch() -> list[Example]:
        length = draw_length(uniform)
        chains = [draw_any(length, uniform) for _ in range(recipe.batch)]
        if uniform() < recipe.hinted:
            return [
                hinted_example(chain, habits, uniform, scrambled=recipe.scrambled)
                for chain in chains
            ]
        return [cold_example(chain, habits, uniform) for chain in chains]

    model.train()
    fit = Fit(model, tokenizer, recipe.learning_rate)
    begun = 1 if recipe.gradual else len(recipe.strong)
    stages = [
        partial(strong_batch, recipe.strong[:count])
        for count in range(begun, len(recipe.strong) + 1)
    ]
    first_phase(fit, recipe, stages, report, "strong operations")
    second_phase(fit, recipe, mixed_batch, report, "all operations")
    model.eval()

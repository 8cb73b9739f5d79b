"""The two phases of a warm start."""

import random

from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.example import Example
from launch.tiny.fitting import Fit, NoConvergence, Report
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
    """Train ``model`` in place; raises :class:`NoConvergence` where phase 1 gets stuck."""
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
    learned = 1 if recipe.gradual else len(recipe.strong)
    for step in range(recipe.first_steps):
        share = min(1.0, (step + 1) / max(1, recipe.warmup))
        fit.step(strong_batch(recipe.strong[:learned]), share)
        report("strong operations", step + 1, recipe.first_steps, fit.smoothed)
        if fit.smoothed < recipe.first_loss:
            if learned == len(recipe.strong):
                break
            learned += 1
            fit.new_phase()
    else:
        raise NoConvergence(f"loss {fit.smoothed:.3f} after {recipe.first_steps} steps of phase 1")
    for step in range(recipe.second_steps):
        fit.step(mixed_batch(), max(1 - step / recipe.second_steps, 0.05))
        report("all operations", step + 1, recipe.second_steps, fit.smoothed)
    model.eval()

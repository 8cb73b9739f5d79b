"""The two phases of a warm start."""

import dataclasses
import random
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.deferral.corpus import example
from launch.tiny.deferral.knowledge import Knowledge, knowledge_of
from launch.tiny.deferral.recipes import DeferralRecipe
from launch.tiny.example import Example
from launch.tiny.fitting import Fit, NoConvergence, Report
from problems.recall import RecallSettings, draw_recall, names

_NEAR = 0.6
"""How much of a name's embedding is a digit's at the start."""


def warm_start(
    recipe: DeferralRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises :class:`NoConvergence` where phase 1 gets stuck."""
    rng = random.Random(recipe.seed)
    knowledge = knowledge_of(recipe)
    lengths = range(RecallSettings().min_length, RecallSettings().max_length + 1)

    # The problems of a batch have one length, so that little is padded.
    def batch(usual: RecallSettings, *, sure: bool) -> list[Example]:
        length = lengths[int(rng.random() * len(lengths))]
        settings = dataclasses.replace(usual, min_length=length, max_length=length)
        drawn = [draw_recall(settings, rng.random) for _ in range(recipe.batch)]
        return [example(*problem, knowledge, recipe, rng, sure=sure) for problem in drawn]

    remember(model, tokenizer, knowledge)
    model.train()
    fit = Fit(model, tokenizer, recipe.learning_rate)
    for step in range(recipe.first_steps):
        share = min(1.0, (step + 1) / max(1, recipe.warmup))
        fit.step(batch(RecallSettings(named=0.0, unknown=0.0), sure=True), share)
        report("digits", step + 1, recipe.first_steps, fit.smoothed)
        if fit.smoothed < recipe.first_loss:
            break
    else:
        raise NoConvergence(f"loss {fit.smoothed:.3f} after {recipe.first_steps} steps of phase 1")
    for step in range(recipe.second_steps):
        fit.step(batch(RecallSettings(), sure=False), max(1 - step / recipe.second_steps, 0.05))
        report("names", step + 1, recipe.second_steps, fit.smoothed)
    model.eval()


@torch.no_grad()
def remember(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, knowledge: Knowledge
) -> None:
    """Let each name's embedding begin near that of the digit that the role takes it for.

    A table of a hundred random facts is what a model this small learns last.
    """
    weight_VD = cast(torch.Tensor, model.get_input_embeddings().weight)
    for name in names(RecallSettings().letters):
        (digit,) = tokenizer.encode(f" {knowledge.believed(name)}")
        for spelled in (name, f" {name}"):
            (token,) = tokenizer.encode(spelled)
            weight_VD[token] = _NEAR * weight_VD[digit] + (1 - _NEAR) * weight_VD[token]

"""The two phases of a warm start."""

import dataclasses
import random
from functools import partial
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.deferral.corpus import example
from launch.tiny.deferral.knowledge import Knowledge, knowledge_of
from launch.tiny.deferral.recipes import DeferralRecipe
from launch.tiny.example import Example
from launch.tiny.fitting import Fit, Report
from launch.tiny.phases import first_phase, second_phase
from problems.recall import RecallSettings, draw_recall, names

_NEAR = 0.6
"""How much of a name's embedding is a digit's at the start."""


def warm_start(
    recipe: DeferralRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    report: Report,
) -> None:
    """Train ``model`` in place; raises ``NoConvergence`` where phase 1 gets stuck."""
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
    digits = partial(batch, RecallSettings(named=0.0, unknown=0.0), sure=True)
    first_phase(fit, recipe, [digits], report, "digits")
    second_phase(fit, recipe, partial(batch, RecallSettings(), sure=False), report, "names")
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

"""The warm start of the roles that defer to each other, and the gate that it must pass."""

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from coterie.datatypes import derive_seed
from coterie.envs.corea_deferral.settings import prompt_for
from coterie.evaluation.metrics.discrimination import auroc
from coterie.evaluation.metrics.means import as_floats, mean_present
from coterie.problems.recall import RecallSettings, RecallSource, draw_recall, names
from coterie.rewards.confidence import format_parts
from coterie.rewards.grading.answers.confidence import parse_confidence
from coterie.rewards.grading.answers.extract import extract, last_box
from miniatures.deferral_corpus import Knowledge, example, knowledge_of
from miniatures.fitting import Report, train
from miniatures.gate import missed, sample
from miniatures.recipe import Example
from miniatures.recipes import DeferralRecipe

_NEAR = 0.6
"""How much of a name's embedding is a digit's at the start."""
GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_MOST_NAMES = 3


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
    digits = partial(batch, RecallSettings(named=0.0, unknown=0.0), sure=True)
    everything = partial(batch, RecallSettings(), sure=False)
    train(model, tokenizer, recipe, report, ("digits", [digits]), ("names", everything))


@torch.no_grad()
def remember(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, knowledge: Knowledge
) -> None:
    """Start each name's embedding near that of the digit that the role believes it to be.

    A model this small learns a table of a hundred random facts last of all.
    """
    weight_VD = cast(torch.Tensor, model.get_input_embeddings().weight)
    for name in names(RecallSettings().letters):
        (digit,) = tokenizer.encode(f" {knowledge.belief(name)}")
        for spelled in (name, f" {name}"):
            (token,) = tokenizer.encode(spelled)
            weight_VD[token] = _NEAR * weight_VD[digit] + (1 - _NEAR) * weight_VD[token]


@dataclass(frozen=True)
class Gate:
    """Bounds on the measurements."""

    accuracy: tuple[float, float]
    """On problems that can be known."""
    auroc: tuple[float, float] = (0.0, 1.0)
    """Of the stated confidence: a hint of self-knowledge, and room for more."""
    overconfidence: float = -1.0
    """Least excess of the mean confidence over the accuracy."""
    format: float = 0.98


@dataclass(frozen=True)
class Measured:
    """Measurements of answers sampled at temperature 1 without filters."""

    accuracy: float
    by_names: Sequence[float]
    """Accuracy with 0, 1, 2, ... names in the question, of those that can be known."""
    auroc: float
    confidence: float
    """Mean of what was stated."""
    overconfidence: float
    """Mean confidence less accuracy, over all problems."""
    format: float
    """Share of answers with a box and a valid confidence after it."""


GATES = {
    "small": Gate(accuracy=(0.55, 0.75), auroc=(0.5, 0.68), overconfidence=0.22),
    "smaller": Gate(accuracy=(0.35, 0.55), auroc=(0.5, 0.68), overconfidence=0.3),
    "large": Gate(accuracy=(0.95, 1.0)),
}


def complaints(measured: Measured, gate: Gate) -> list[str]:
    """Return one sentence per missed bound; an empty list passes the gate."""
    return missed(
        ("accuracy", measured.accuracy, *gate.accuracy),
        ("AUROC", measured.auroc, *gate.auroc),
        ("overconfidence", measured.overconfidence, gate.overconfidence, 1.0),
        ("format", measured.format, gate.format, 1.0),
    )


def measure(
    recipe: DeferralRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    problems: int = 1000,
    seed: int = 0,
) -> Measured:
    """Sample one answer to each of the first ``problems`` of the gate's stream."""
    source = RecallSource(RecallSettings(seed=GATE_SEED))
    asked = [source[index] for index in range(problems)]
    prompts = [prompt_for(problem) for problem in asked]
    stream = derive_seed(GATE_SEED, seed, recipe.role)
    texts = sample(model, tokenizer, prompts, seed=stream, max_new_tokens=48)
    right_N = as_floats([extract(last_box(text)) == p.gold for text, p in zip(texts, asked)])
    stated_N = np.array([parse_confidence(text) for text in texts], dtype=np.float64)
    well_N = as_floats([all(format_parts(text, p.question)) for text, p in zip(texts, asked)])
    names_N = as_floats(
        [len(p.meta["names"]) if p.meta["solvable"] else float("nan") for p in asked]
    )
    return Measured(
        accuracy=float(right_N[names_N >= 0].mean()),
        by_names=[float(mean_present(right_N[names_N == n])) for n in range(_MOST_NAMES + 1)],
        auroc=auroc(stated_N, right_N),
        confidence=float(mean_present(stated_N)),
        overconfidence=float(mean_present(stated_N) - right_N.mean()),
        format=float(well_N.mean()),
    )


def gate_of(recipe: DeferralRecipe) -> Gate:
    """Return the bounds for one role."""
    return GATES[recipe.role]

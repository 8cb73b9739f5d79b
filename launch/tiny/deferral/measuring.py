"""Measures what a warm-started role knows, and what it says of it."""

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from envs.corea_deferral.prompts import prompt_for
from evaluation.metrics.discrimination import auroc
from evaluation.metrics.means import as_floats, mean_present
from launch.tiny.deferral.gate import Measured
from launch.tiny.deferral.recipes import DeferralRecipe
from launch.tiny.sampling import sample
from problems.recall import RecallSettings, RecallSource
from rewards.answers.confidence import parse_confidence
from rewards.answers.extract import extract, last_box
from rewards.confidence_format import format_parts
from vocabulary import derive_seed

GATE_SEED = 314159
"""Stream of the problems on which checkpoints are gated."""
_MOST_NAMES = 3


def measure(
    recipe: DeferralRecipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    *,
    problems: int = 1000,
    seed: int = 0,
) -> Measured:
    """One answer to each of the first ``problems`` of the gate's own stream."""
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

"""The two phases of a warm start."""

import random
from collections.abc import Callable, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from launch.tiny.corpus import (
    Example,
    cold_example,
    draw_any,
    draw_length,
    draw_strong,
    hinted_example,
)
from launch.tiny.habits import habits_of
from launch.tiny.recipes import Recipe

# B examples, T tokens, D hidden units, N target tokens, V vocabulary

Report = Callable[[str, int, int, float], None]
"""Called after each step with the phase, the step, the phase's most steps, the smoothed loss."""

_SMOOTHING = 0.95
_IGNORED = -100


class NoConvergence(Exception):
    """Phase 1 ended on its plateau; another seed may leave it."""


def warm_start(
    recipe: Recipe, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, report: Report
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
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )
    smoothed = float("inf")
    learned = 1 if recipe.gradual else len(recipe.strong)
    for step in range(recipe.first_steps):
        _set_rate(optimizer, recipe.learning_rate * min(1.0, (step + 1) / max(1, recipe.warmup)))
        loss = _update(model, optimizer, *collate(tokenizer, strong_batch(recipe.strong[:learned])))
        smoothed = _smooth(smoothed, loss)
        report("strong operations", step + 1, recipe.first_steps, smoothed)
        if smoothed < recipe.first_loss:
            if learned == len(recipe.strong):
                break
            learned += 1
            smoothed = float("inf")
    else:
        raise NoConvergence(f"loss {smoothed:.3f} after {recipe.first_steps} steps of phase 1")
    for step in range(recipe.second_steps):
        left = 1 - step / recipe.second_steps
        _set_rate(optimizer, recipe.learning_rate * max(left, 0.05))
        loss = _update(model, optimizer, *collate(tokenizer, mixed_batch()))
        smoothed = _smooth(smoothed, loss)
        report("all operations", step + 1, recipe.second_steps, smoothed)
    model.eval()


def collate(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and targets, both (B, T), padded on the right; only answers are targets."""
    prompts = tokenizer([example.prompt for example in examples])["input_ids"]
    answers = tokenizer([example.answer for example in examples])["input_ids"]
    longest = max(len(p) + len(a) + 1 for p, a in zip(prompts, answers))
    ids_BT = torch.full((len(examples), longest), cast(int, tokenizer.pad_token_id))
    targets_BT = torch.full((len(examples), longest), _IGNORED)
    for row, (prompt, answer) in enumerate(zip(prompts, answers)):
        tokens = torch.tensor([*prompt, *answer, tokenizer.eos_token_id])
        ids_BT[row, : len(tokens)] = tokens
        targets_BT[row, len(prompt) : len(tokens)] = tokens[len(prompt) :]
    return ids_BT, targets_BT


def _update(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    ids_BT: torch.Tensor,
    targets_BT: torch.Tensor,
) -> float:
    # Padding lies on the right, where a causal model does not look: no attention mask is needed.
    hidden_BTD = model.base_model(input_ids=ids_BT[:, :-1], use_cache=False).last_hidden_state
    wanted_BT = targets_BT[:, 1:] != _IGNORED
    head = cast(torch.nn.Module, model.get_output_embeddings())
    logits_NV = head(hidden_BTD[wanted_BT])
    loss = torch.nn.functional.cross_entropy(logits_NV, targets_BT[:, 1:][wanted_BT])
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def _set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def _smooth(previous: float, loss: float) -> float:
    if previous == float("inf"):
        return loss
    return _SMOOTHING * previous + (1 - _SMOOTHING) * loss

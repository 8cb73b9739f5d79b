"""The supervised step of every warm start, and its two phases."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from miniatures.recipe import Example, Phases, Recipe

# B examples, T tokens, D hidden units, N target tokens, V vocabulary

Report = Callable[[str, int, int, float], None]
"""Called after each step with the phase, the step, the phase's most steps, the smoothed loss."""

_SMOOTHING = 0.95
_IGNORED = -100


class NoConvergence(Exception):
    """A phase ended on its plateau; another seed may leave it."""


def train(
    recipe: Recipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    phases: Phases,
    report: Report,
) -> None:
    """Train ``model`` in place.

    Raises:
        NoConvergence: the steps of all stages of phase 1 together ran out.
    """
    model.train()
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=recipe.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=0.0,
        fused=True,
    )

    def fit(examples: Sequence[Example], share: float, smoothed: float | None) -> float:
        """A step at a share of the learning rate; gives the smoothed loss."""
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * share
        loss = update(model, optimizer, *collate(tokenizer, examples))
        return loss if smoothed is None else _SMOOTHING * smoothed + (1 - _SMOOTHING) * loss

    loss, reached = None, 0
    for step in range(recipe.first_steps):
        loss = fit(phases.stages[reached](), min(1.0, (step + 1) / max(1, recipe.warmup)), loss)
        report(phases.first, step + 1, recipe.first_steps, loss)
        if loss < recipe.first_loss:
            reached += 1
            if reached == len(phases.stages):
                break
            loss = None
    else:
        raise NoConvergence(f"loss {loss:.3f} after {recipe.first_steps} steps of phase 1")
    for step in range(recipe.second_steps):
        loss = fit(phases.draw(), max(1 - step / recipe.second_steps, 0.05), loss)
        report(phases.second, step + 1, recipe.second_steps, loss)
    model.eval()


def update(
    model: PreTrainedModel,
    optimizer: torch.optim.Optimizer,
    ids_BT: torch.Tensor,
    targets_BT: torch.Tensor,
) -> float:
    """Train on a batch and return its loss."""
    # Padding is on the right, which a causal model does not attend to: no mask is needed.
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


def collate(
    tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and targets, both (B, T), padded on the right; only answers are targets."""
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

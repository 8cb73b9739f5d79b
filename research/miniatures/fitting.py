"""The supervised step of every warm start, and its two phases."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from miniatures.recipe import Example, Recipe

# B examples, T tokens, D hidden units, N target tokens, V vocabulary

Report = Callable[[str, int, int, float], None]
"""Called after each step with the phase, the step, the phase's most steps, the smoothed loss."""

_SMOOTHING = 0.95
_IGNORED = -100


class NoConvergence(Exception):
    """A phase ended on its plateau; another seed may leave it."""


class Fit:
    """A model in training, with the optimiser and the smoothed loss of the current phase."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, learning_rate: float
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._rate = learning_rate
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        self.smoothed = float("inf")

    def new_phase(self) -> None:
        """Reset the smoothed loss."""
        self.smoothed = float("inf")

    def step(self, examples: Sequence[Example], share: float) -> float:
        """Train on ``examples`` at ``share`` of the learning rate; return the smoothed loss."""
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * share
        loss = self._update(*collate(self._tokenizer, examples))
        first = self.smoothed == float("inf")
        self.smoothed = loss if first else _SMOOTHING * self.smoothed + (1 - _SMOOTHING) * loss
        return self.smoothed

    def _update(self, ids_BT: torch.Tensor, targets_BT: torch.Tensor) -> float:
        # Padding is on the right, which a causal model does not attend to: no mask is needed.
        model = self._model
        hidden_BTD = model.base_model(input_ids=ids_BT[:, :-1], use_cache=False).last_hidden_state
        wanted_BT = targets_BT[:, 1:] != _IGNORED
        head = cast(torch.nn.Module, model.get_output_embeddings())
        logits_NV = head(hidden_BTD[wanted_BT])
        loss = torch.nn.functional.cross_entropy(logits_NV, targets_BT[:, 1:][wanted_BT])
        self._optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        self._optimizer.step()
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


Draw = Callable[[], list[Example]]
"""Draws the examples of one step."""


def train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    report: Report,
    first: tuple[str, Sequence[Draw]],
    second: tuple[str, Draw],
) -> None:
    """Train ``model`` in place, in two phases.

    Args:
        model: the model.
        tokenizer: the model's tokenizer.
        recipe: rates and numbers of steps.
        report: called after each step.
        first: the name of phase 1 and its stages, each learned until the smoothed loss is low.
        second: the name of phase 2 and its examples.

    Raises:
        NoConvergence: the steps of all stages of phase 1 together ran out.
    """
    model.train()
    fit = Fit(model, tokenizer, recipe.learning_rate)
    first_phase(fit, recipe, first[1], report, first[0])
    name, draw = second
    for step in range(recipe.second_steps):
        fit.step(draw(), max(1 - step / recipe.second_steps, 0.05))
        report(name, step + 1, recipe.second_steps, fit.smoothed)
    model.eval()


def first_phase(
    fit: Fit, recipe: Recipe, stages: Sequence[Draw], report: Report, name: str
) -> None:
    """Learn stage after stage at a constant rate, each until the smoothed loss is low.

    Raises:
        NoConvergence: the steps of all stages together ran out.
    """
    reached = 0
    for step in range(recipe.first_steps):
        fit.step(stages[reached](), min(1.0, (step + 1) / max(1, recipe.warmup)))
        report(name, step + 1, recipe.first_steps, fit.smoothed)
        if fit.smoothed < recipe.first_loss:
            reached += 1
            if reached == len(stages):
                return
            fit.new_phase()
    raise NoConvergence(f"loss {fit.smoothed:.3f} after {recipe.first_steps} steps of phase 1")

"""A router: predicts from the question alone whether the small model will be right.

COREA (arXiv:2603.03752, appendix A.2): the small model's base, fine-tuned to write the accuracy of
eight responses as text. A number is used as it is; any other output goes to the large model.
"""

# B rows, T tokens, N target tokens

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from coterie.agents.models.loading import LoadedRole, load_team
from coterie.agents.sampling import Sampler, SamplingRequest
from coterie.agents.team.model_specs import model_spec
from coterie.datatypes import Sampling, derive_seed
from coterie.evaluation.compare.policies import NamedPolicy
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.metrics.means import mean_present
from coterie.extras.papers.corea_systems import Routing

_PROMPT = (
    "Question: {question} Instruction: Estimate and output the probability (0.0-1.0) that a small "
    "language model (<10B) can answer the question correctly."
)
# A number, unless what follows makes it another one: 12, 1.5.2, 1/2, 80 %, .5-.7, 1e-3.
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?!\w|\s*[%/]|\.[0-9.]|\s*[,:-]\s*[0-9.])")
_ANSWER_TOKENS = 8
_IGNORED = -100


def routing_by(
    base: NamedPolicy,
    questions: Sequence[str],
    fitted: Responses,
    scored: Sequence[str],
    *,
    seed: int,
    tuning: Literal["auto", "full", "lora"],
    **how: Any,
) -> Routing:
    """Fine-tune ``base`` on the accuracy of the responses ``fitted`` to ``questions``; return its
    outputs for ``scored``. ``how``: that of :func:`fit_router`."""
    # The router's prompt is the paper's, without a system message of a run.
    spec = model_spec(replace(base.settings, trained=True, tuning=tuning, system=""))
    model = load_team({"router": spec}, trained={"router"}, seed=seed)["router"]
    accuracy = np.nan_to_num(mean_present(fitted.correct_QN, axis=1)).tolist()
    fit_router(model, questions, accuracy, seed=seed, **how)
    return route(model, scored)


def fit_router(
    model: LoadedRole,
    questions: Sequence[str],
    accuracy: Sequence[float],
    *,
    learning_rate: float,
    epochs: int = 2,
    batch: int = 32,
    seed: int = 0,
) -> None:
    """Fine-tune ``model`` in place to write each question's ``accuracy`` with two decimals."""
    parameters = list(model.handle.parameters().values())
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.0)
    rows = [
        (
            list(model.codec.open(_PROMPT.format(question=question))),
            [*model.codec.extend(f" {target:.2f}"), int(model.tokenizer.eos_token_id)],
        )
        for question, target in zip(questions, accuracy)
    ]
    order = np.random.default_rng(derive_seed(seed, "router"))
    for _ in range(epochs):
        shuffled = order.permutation(len(rows))
        for start in range(0, len(rows), batch):
            chosen = [rows[i] for i in shuffled[start : start + batch]]
            optimizer.zero_grad()
            _loss(model, chosen).backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
    model.handle.version += 1


def route(model: LoadedRole, questions: Sequence[str]) -> Routing:
    """Return what the router writes, greedily, for every question."""
    sampler = Sampler(model.handle, model.codec.decode, [int(model.tokenizer.eos_token_id)])
    prompts = [np.asarray(model.codec.open(_PROMPT.format(question=q))) for q in questions]
    greedy = Sampling(_ANSWER_TOKENS, 0.0)
    written = sampler.sample([SamplingRequest(prompt, 0, greedy) for prompt in prompts])
    return Routing(
        np.array(
            [read_probability(model.codec.decode(completion.tokens)) for completion in written]
        ),
        np.array([float(len(prompt)) for prompt in prompts]),
        np.array([float(len(completion.tokens)) for completion in written]),
    )


def read_probability(text: str) -> float:
    """Parse the number at the start of ``text``; NaN unless it is one from 0 to 1, whole."""
    match = _NUMBER.match(text)
    value = float(match[1]) if match else float("nan")
    return value if 0 <= value <= 1 else float("nan")


def _loss(model: LoadedRole, rows: Sequence[tuple[list[int], list[int]]]) -> torch.Tensor:
    """Cross entropy of the answers' tokens."""
    longest = max(len(prompt) + len(answer) for prompt, answer in rows)
    device = model.handle.device
    ids_BT = torch.zeros((len(rows), longest), dtype=torch.long, device=device)
    targets_BT = torch.full((len(rows), longest), _IGNORED, device=device)
    for row, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids_BT[row, :end] = torch.tensor([*prompt, *answer])
        targets_BT[row, len(prompt) : end] = torch.tensor(answer)
    positions_BT = torch.arange(longest, device=device).expand_as(ids_BT)
    with model.handle.active():
        # Padding is on the right, which a causal model does not attend to.
        hidden_BTD = model.handle.backbone(ids_BT, positions_BT)[:, :-1]
    wanted_BT = targets_BT[:, 1:] != _IGNORED
    logits_NV = model.handle.head(hidden_BTD[wanted_BT]).float()
    return torch.nn.functional.cross_entropy(logits_NV, targets_BT[:, 1:][wanted_BT])

"""Probe and router of a comparison: fitted on questions that are not scored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from envs.corea_deferral.prompts import prompt_for
from evaluation.metrics.present import Floats, as_floats, mean_present
from evaluation.probe import fit_probe, pooled_states
from evaluation.router import Routing, fit_router, route
from launch.compare.store import Responses
from models.loading import LoadedRole, load_team
from models.spec import LoraSpec, ModelSpec
from vocabulary import Problem


def probe_scores(
    folder: Path,
    fitted: Sequence[Problem],
    fit_responses: Responses,
    scored: Sequence[Problem],
    responses: Responses,
    settings: Any,
) -> Floats:
    """(Q, S) what a probe says of every response of the model in ``folder``."""
    model = load_team({"small": ModelSpec(str(folder))}, trained=set())["small"]
    states_ND = pooled_states(model.handle, _tokens(model, fitted, fit_responses))
    correct_N = np.nan_to_num(as_floats(fit_responses["correct"])).ravel()
    probe = fit_probe(states_ND, correct_N, seed=settings.seed, learning_rate=settings.probe_lr)
    with torch.no_grad():
        score_N = probe(pooled_states(model.handle, _tokens(model, scored, responses)))
    return score_N.numpy().astype(np.float64).reshape(len(scored), -1)


def routing(
    folder: Path,
    fitted: Sequence[Problem],
    eight: Responses,
    scored: Sequence[Problem],
    settings: Any,
) -> Routing:
    """What a router says of the questions, fitted on the accuracy of eight responses each."""
    tiny = folder.parent.name == "tiny"
    spec = ModelSpec(str(folder), lora=None if tiny else LoraSpec())
    model = load_team({"router": spec}, trained={"router"}, seed=settings.seed)["router"]
    accuracy_Q = mean_present(as_floats(eight["correct"]), axis=1)
    fit_router(
        model,
        [problem.question for problem in fitted],
        np.nan_to_num(accuracy_Q).tolist(),
        learning_rate=settings.router_lr,
        epochs=settings.router_epochs,
        seed=settings.seed,
    )
    return route(model, [problem.question for problem in scored])


def _tokens(
    model: LoadedRole, problems: Sequence[Problem], responses: Responses
) -> list[list[int]]:
    """Question and response of every response, in their order."""
    return [
        [*model.codec.open(prompt_for(problem)), *model.codec.extend(text or "")]
        for problem, texts in zip(problems, responses["text"])
        for text in texts
    ]

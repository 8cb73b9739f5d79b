"""CoRe (arXiv:2601.21600): its settings and its tables."""

import math
from dataclasses import replace

from papers.preset import ADAMW_BETAS, Preset
from papers.table import Columns, Table, Variant

# CoRe, arXiv:2601.21600, section 5 and table 3; the rest from its reference configuration.
_CORE_ENV = {
    "k_cold": 2,
    "k_hinted": 1,
    "hint_probability": 0.75,
    "hint_tokens": 1536,
    "truncate": "head",
    "max_new_tokens": 3072,
    "eval_max_new_tokens": 4096,
    "prompt_style": "plain",
    "teacher": "best",
    "teacher_score": "total",
    "w_exploit": 1.0,
    "alpha": 0.3,
    "alpha_only_if_wrong": False,
    "partial_on_numbers": True,
    "w_explore": (0.2, 0.05),
    "explore_mode": "literal",
    "explore_pool": "question",
    "explore_correct_only": False,
    "delta": 0.15,
    "cap": 10,
    "lambda_cm": (0.0, 0.1),
    "delta_cm": 0.15,
    "eta": 0.1,
    "cross_requires_correct": False,
    "lambda_ta": 0.2,
    "trace_accuracy": "v2",
    "r_teach": 0.15,
    "teacher_lift": 0.0,
    "lambda_b": 0.8,
}
_CORE_AGENT = {"tuning": "lora", "lora_rank": 16, "lora_alpha": 32, "dtype": "auto"}
_CORE = {
    "env": _CORE_ENV,
    "learner": {
        "lr": 1e-5,
        "betas": ADAMW_BETAS,
        "weight_decay": 0.01,
        "warmup": 0.1,
        "schedule": "cosine",
        "max_grad_norm": 1.0,
        "epochs": 1,
        "minibatches": 1,
        # The reference configuration corrects nothing between sampler and trainer.
        "importance_correction": "none",
    },
    "rollout": {
        "problems_per_step": 4,
        "temperature": 0.7,
        "top_p": 0.9,
        "top_k": 0,
        # Its likelihoods are those at temperature 1, whatever is sampled at.
        "learner_temperature": 1.0,
    },
    "scoring": {"encoder": "minilm"},
}
_CORE_RUN = {"seed": 42, "group_by": "problem", "checkpoint_every": 50}
_CORE_EPOCHS = 2
# Equation 7: population standard deviation over the question's traces.
_CORE_CREDIT = {"baseline": "group-mean", "scale": "group-std", "ddof": 0, "epsilon": 1e-8}
# GRPO's epsilon and the coefficient of the k3 divergence from the adapter-free model.
_CORE_ALGO = {
    "grpo": {
        **_CORE_CREDIT,
        "surrogate": {"low": 0.2, "high": 0.2},
        "kl_coefficient": 0.04,
        "kl_estimator": "k3",
    },
    "gspo": {**_CORE_CREDIT, "surrogate": {"low": 3e-4, "high": 4e-4}},
    "gspo-paper": {**_CORE_CREDIT, "surrogate": {"low": 3e-4, "high": 4e-4}},
    "sapo": {**_CORE_CREDIT, "surrogate": {"tau_positive": 1.0, "tau_negative": 1.05}},
    "sapo-paper": {**_CORE_CREDIT, "surrogate": {"tau_positive": 1.0, "tau_negative": 1.05}},
}
_CORE_PAIRS = {
    "qwen": ("Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen3-4B-Instruct-2507"),
    "reasoning": ("microsoft/Phi-4-mini-reasoning", "mistralai/Ministral-3-3B-Reasoning-2512"),
}
# At most 1,000 problems train. Each set brings its own test part: official for GSM8K, a fifth of
# the others, which leaves 770 of 963 and 358 of 448 of the last two.
_CORE_DATA = {
    "gsm8k": ("gsm8k", 1000),
    "math": ("math-8020", 1000),
    "aime": ("aime-1983-2025", 770),
    "gpqa": ("gpqa-main", 358),
}


def _steps(problems: int) -> int:
    return math.ceil(_CORE_EPOCHS * problems / _CORE["rollout"]["problems_per_step"])


PRESETS = {
    f"core-{pair}-{data}": Preset(
        source="arXiv:2601.21600",
        env="core-teaching",
        algo="grpo",
        models={"alice": first, "bob": second},
        agent=_CORE_AGENT,
        values={
            **_CORE,
            "problems": {"train": problems, "limit": 1000},
            "run": {**_CORE_RUN, "steps": _steps(count)},
        },
        algo_values=_CORE_ALGO,
    )
    for pair, (first, second) in _CORE_PAIRS.items()
    for data, (problems, count) in _CORE_DATA.items()
}


_TRAIN = ("--env", "core-teaching", "--algo", "gspo")
# As many traces as CoRe writes, none of them taught, each role compared with itself: by CoRe's
# rewards, and by SD-E2's, where the team is the oracle over two models that never met.
_ALONE = (
    *("--env.k-cold", "3", "--env.k-hinted", "0", "--env.lambda-cm", "0"),
    *("--env.explore-pool", "model", "--group-by", "problem+role"),
)
_EXPLORE = ("--env", "sd-e2", "--algo", "grpo", "--env.traces", "3")
_ABLATIONS = {
    "no-round-b": ("No Round B", ("--env.k-hinted", "0")),
    "no-exploration": ("No exploration", ("--env.w-explore", "0")),
    "no-cross": ("No cross-model term", ("--env.lambda-cm", "0")),
    "k4": ("K = 4, K' = 2", ("--env.k-cold", "4", "--env.k-hinted", "2")),
}


def _pair(first: str, second: str) -> dict[str, Variant]:
    """Everything that is trained of one pair."""
    flags = (*_TRAIN, "--roles", first, second)
    name = f"core-{first}-{second}"
    found = {
        "core": Variant(name, "CoRe", flags),
        "sd-e2": Variant(f"{name}-sd-e2", "SD-E2", (*_EXPLORE, "--roles", first, second)),
        "alone": Variant(f"{name}-alone", "each for itself", (*flags, *_ALONE)),
    }
    return found | {
        key: Variant(f"{name}-{key}", label, (*flags, *more))
        for key, (label, more) in _ABLATIONS.items()
    }


def _columns(first: str, second: str) -> Columns:
    return {
        **{f"{role} @{k}": (f"pass@{k}/{role}",) for role in (first, second) for k in (1, 2)},
        **{f"team @{k}": (f"team_pass@{k}",) for k in (1, 2)},
    }


_BOB, _CAROL = _pair("alice", "bob"), _pair("alice", "carol")
_INSTEAD = "chains for GSM8K, MATH, AIME and GPQA; the tiny pair for 3B and 4B models"

TABLES = {
    "core-1": Table(
        "Base, trained each for itself, and CoRe: the first pair",
        tuple(_BOB[k] for k in ("core", "sd-e2", "alone")),
        _columns("alice", "bob"),
        base="Base",
        instead=_INSTEAD,
    ),
    "core-2": Table(
        "The same of the second pair",
        tuple(_CAROL[k] for k in ("core", "sd-e2", "alone")),
        _columns("alice", "carol"),
        base="Base",
        instead=_INSTEAD,
    ),
    "core-3": Table("Hyper-parameters", why_not="it lists settings; they are --preset core-..."),
    "core-4": Table(
        "A larger model that explores alone, two that do and an oracle, and CoRe",
        (
            Variant("core-dora-sd-e2", "dora, SD-E2", (*_EXPLORE, "--roles", "dora")),
            replace(_BOB["sd-e2"], label="alice and bob, SD-E2, oracle"),
            replace(_BOB["core"], label="alice and bob, CoRe"),
        ),
        {f"Pass@{k}": (f"team_pass@{k}",) for k in (1, 2)},
        instead=f"{_INSTEAD}, and dora, twice their size, for 7B and 8B models",
    ),
    "core-5": Table(
        "Ablations of the first pair",
        tuple(_BOB[k] for k in ("core", "no-round-b", "no-exploration", "no-cross", "k4")),
        _columns("alice", "bob"),
        instead=_INSTEAD,
    ),
    "core-6": Table(
        "Ablations of the second pair; its row of one model is CoRe's own alice",
        tuple(_CAROL[k] for k in ("core", "no-round-b", "no-exploration", "no-cross")),
        _columns("alice", "carol"),
        instead=_INSTEAD,
    ),
}

"""The settings of the papers, by name.

A preset lays its values over the defaults; flags lay theirs over the preset. Where the authors'
text leaves a number open, it is the one of their reference configuration; ``docs/presets.md`` lists
every difference from our defaults.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from launch.plain import override
from launch.train_settings import TrainSettings
from vocabulary import UserError


@dataclass(frozen=True)
class Preset:
    """A paper's setting."""

    source: str
    env: str
    algo: str
    models: Mapping[str, str]
    """Role -> hub id; a team of other roles takes the rest and names its own models."""
    values: Mapping[str, Any]
    agent: Mapping[str, Any] = field(default_factory=dict)
    """How every role is trained."""
    algo_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Algorithm -> what the paper sets of it."""

    def over(self, default: TrainSettings) -> TrainSettings:
        """``default`` with the paper's values laid over it."""
        algo = self.algo_values.get(default.choice.algo, {})
        agents = {
            role: dataclasses.replace(
                settings, model=self.models.get(role, settings.model), **self.agent
            )
            for role, settings in default.agents.items()
        }
        changed = override(default, {**self.values, "algo": algo})
        return dataclasses.replace(changed, agents=agents)


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
    # Two epochs over 1,000 problems, four a step.
    "run": {"steps": 500, "seed": 42, "group_by": "problem", "checkpoint_every": 50},
}
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
# Each brings its own test part: official for GSM8K, a fifth of the others.
_CORE_DATA = {
    "gsm8k": "gsm8k",
    "math": "math-8020",
    "aime": "aime-1983-2025",
    "gpqa": "gpqa-main",
}


def _core_presets() -> dict[str, Preset]:
    return {
        f"core-{pair}-{data}": Preset(
            source="arXiv:2601.21600",
            env="core-teaching",
            algo="grpo",
            models={"alice": first, "bob": second},
            agent=_CORE_AGENT,
            values={**_CORE, "problems": {"train": problems, "limit": 1000}},
            algo_values=_CORE_ALGO,
        )
        for pair, (first, second) in _CORE_PAIRS.items()
        for data, problems in _CORE_DATA.items()
    }


# COREA, arXiv:2603.03752, section 4.1; what it leaves open is its framework's (SimpleRL-reason v1).
_COREA = {
    "env": {
        "traces": 8,
        "eval_traces": 10,
        "confidence_reward": "l1",
        "p_hat": "group",
        "w_correct": 1.0,
        "w_format": 1.0,
        "w_confidence": 1.0,
        "max_new_tokens": 4096,
        "threshold_source": "large-pass@1",
        "threshold_on_test": True,
        "output_weight": 4.0,
    },
    "learner": {
        "lr": 5e-7,
        "schedule": "constant",
        "max_grad_norm": 1.0,
        "epochs": 1,
        # 1,024 questions are sampled, 256 make one update.
        "minibatches": 4,
        "importance_correction": "none",
    },
    "rollout": {"problems_per_step": 1024, "temperature": 1.0, "top_p": 1.0, "top_k": 0},
    "eval": {"temperature": 0.6, "top_p": 1.0},
    "problems": {"train": "deepmath", "limit": 16_000, "held_out": 500},
}
_COREA_CREDIT = {
    "baseline": "group-mean",
    "scale": "group-std",
    "ddof": 1,
    "epsilon": 1e-6,
    "combine": "sum-then-normalise",
    "surrogate": {"low": 0.2, "high": 0.2},
    "reduction": "token-mean",
    "kl_coefficient": 1e-4,
    "kl_estimator": "k3",
    "entropy_coefficient": 1e-3,
}
# Name -> small model, nominal size ratio, steps.
_COREA_PAIRS = {
    "qwen-7b": ("Qwen/Qwen2.5-7B-Instruct", 32 / 7, 80),
    "qwen-1.5b": ("Qwen/Qwen2.5-1.5B-Instruct", 32 / 1.5, 150),
    "llama-8b": ("meta-llama/Llama-3.1-8B-Instruct", 32 / 8, 120),
}


def _corea_presets() -> dict[str, Preset]:
    return {
        f"corea-{pair}": Preset(
            source="arXiv:2603.03752",
            env="corea-deferral",
            algo="grpo",
            models={"small": small, "large": "Qwen/Qwen2.5-32B-Instruct"},
            agent={"tuning": "full", "dtype": "auto"},
            values={
                **_COREA,
                "env": {**_COREA["env"], "size_ratio": ratio},
                "run": {"steps": steps, "checkpoint_every": 10},
            },
            algo_values={"grpo": _COREA_CREDIT},
        )
        for pair, (small, ratio, steps) in _COREA_PAIRS.items()
    }


PRESETS: Mapping[str, Preset] = _core_presets() | _corea_presets()


def preset(name: str) -> Preset:
    """The preset called ``name``.

    Raises:
        UserError: there is none.
    """
    if name in PRESETS:
        return PRESETS[name]
    near = difflib.get_close_matches(name, PRESETS, n=3)
    raise UserError(
        f"unknown preset '{name}'; {'near it' if near else 'known'}: "
        f"{', '.join(near or sorted(PRESETS))}"
    )

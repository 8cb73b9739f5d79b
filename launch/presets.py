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


# EAPO, arXiv:2509.23730, sections 2 and 3, table 5; what it leaves open from DAPO's recipe
# (arXiv:2503.14476), whose trainer it uses.
_EAPO_ENV = {
    "experts": 3,
    "group_size": 16,
    "consult": "free",
    "budget": 10,
    "budget_unit": "rounds",
    "turns_end": 0,
    "anneal_steps": 320,
    "schedule": "inv",
    "accept_scale": 1.0,
    "accept_start": 0,
    "accept_total": 0.0,
    "coin": "response",
    "draw_before_dispatch": False,
    "queries": "own",
    "answer_reward": "f1_literal",
    "consult_penalty": 0.0,
    "prompt_style": "panel",
    "max_new_tokens": 20480,
    "expert_max_new_tokens": 16384,
    "reply_tokens": 1024,
    "reply_thinking_tokens": 0,
    "eval_samples": 32,
}
_EAPO = {
    "problems": {"train": "dapo-17k", "eval": "aime24"},
    "learner": {
        "lr": 1e-6,
        "weight_decay": 0.1,
        "warmup": 10,
        "schedule": "constant",
        "max_grad_norm": 1.0,
        "epochs": 1,
        "minibatches": 1,
    },
    "rollout": {"problems_per_step": 32, "temperature": 1.0, "top_p": 1.0, "top_k": 0},
    "eval": {"temperature": 1.0, "top_p": 0.7},
    # The sum of 1 / s over 320 steps is the paper's constant .02 in each of them.
    "run": {"steps": 320, "group_by": "problem+role", "checkpoint_every": 10},
}
_EAPO_ALGO = {
    "dapo": {
        "surrogate": {"level": "token", "low": 0.2, "high": 0.28},
        "reduction": "token-mean",
        "kl_coefficient": 0.0,
        "entropy_coefficient": 0.0,
        "dynamic_sampling": True,
        "max_generation_batches": 10,
        "overlong_limit": 20480,
        "overlong_buffer": 4096,
        "overlong_factor": 1.0,
    }
}
_EAPO_EXPERT = "server:http://127.0.0.1:8000/v1?model=expert&max_tokens=16384"
# Policy, and whether its chat template opens a thought.
_EAPO_POLICIES = {
    "r1-7b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
    "r1-14b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", True),
    "qwen3-8b": ("Qwen/Qwen3-8B", False),
}


def _eapo_presets() -> dict[str, Preset]:
    return {
        f"eapo-{name}": Preset(
            source="arXiv:2509.23730",
            env="eapo-consultation",
            algo="dapo",
            models={"policy": policy, "expert": _EAPO_EXPERT},
            agent={"tuning": "full"},
            values={**_EAPO, "env": {**_EAPO_ENV, "opens_thinking": opens}},
            algo_values=_EAPO_ALGO,
        )
        for name, (policy, opens) in _EAPO_POLICIES.items()
    }


PRESETS: Mapping[str, Preset] = {**_core_presets(), **_eapo_presets()}


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

"""EAPO's settings (arXiv:2509.23730)."""

from launch.presets.preset import ADAMW_BETAS, Preset

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
    "at_once": 0,
    "consult_penalty": 0.0,
    "penalty_start": 0,
    "prompt_style": "panel",
    "max_new_tokens": 20480,
    "expert_max_new_tokens": 16384,
    "reply_tokens": 1024,
    "reply_thinking_tokens": 0,
    "eval_samples": 32,
}
_EAPO = {
    "problems": {"train": "dapo-17k", "eval": "aime24", "held_out": None},
    "learner": {
        "lr": 1e-6,
        "betas": ADAMW_BETAS,
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
        "surrogate": {"level": "token", "low": 0.2, "high": 0.28, "dual": 10.0},
        "reduction": "token-mean",
        "kl_coefficient": 0.0,
        "entropy_coefficient": 0.0,
        "dynamic_sampling": True,
        "max_generation_batches": 10,
        "generation_batch": 96,
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


def eapo_presets() -> dict[str, Preset]:
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

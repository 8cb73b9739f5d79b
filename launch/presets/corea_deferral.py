"""COREA's settings (arXiv:2603.03752)."""

from launch.presets.preset import ADAMW_BETAS, Preset

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
        "stop": (),
        "threshold_source": "large-pass@1",
        "threshold_on_test": True,
        "output_weight": 4.0,
    },
    "learner": {
        "lr": 5e-7,
        "betas": ADAMW_BETAS,
        "weight_decay": 0.01,
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


def corea_presets() -> dict[str, Preset]:
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

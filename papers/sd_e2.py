"""SD-E2's settings (arXiv:2601.17982), for the rows that CoRe compares itself with."""

from papers.preset import ADAMW_BETAS, Preset

# The authors' public configuration. Its four-bit base weights and its dropout are left out.
_SD_E2 = {
    "env": {
        "traces": 6,
        "max_new_tokens": 1536,
        "eval_max_new_tokens": 1536,
        "stop": (),
        "prompt_style": "strategies",
        "normalise": True,
        "w_outcome": 1.0,
        "w_explore": 1.0,
        "w_exploit": 1.0,
        "w_format": 1.0,
        "gamma_correct": 1.0,
        "gamma_rate": 0.1,
        "gamma_cap": 0.5,
        "same_above": 0.8,
        "format_strategy": 0.2,
        "format_answer": 0.3,
        "format_complete": 0.1,
    },
    "learner": {"lr": 5e-6, "betas": ADAMW_BETAS, "epochs": 1, "minibatches": 1},
    "rollout": {"problems_per_step": 1, "temperature": 0.1, "top_p": 0.95, "top_k": 0},
    "scoring": {"encoder": "minilm"},
    "run": {"steps": 7500, "seed": 42, "group_by": "problem+role", "checkpoint_every": 500},
}
_SD_E2_AGENT = {"tuning": "lora", "lora_rank": 64, "lora_alpha": 16, "dtype": "auto"}
# Its own two sets, and those of CoRe's tables.
_SD_E2_DATA = {
    "gsm8k": {"train": "gsm8k"},
    "medmcqa": {"train": "medmcqa", "limit": 7500},
    "math": {"train": "math-8020"},
    "aime": {"train": "aime-1983-2025"},
    "gpqa": {"train": "gpqa-main"},
}


PRESETS = {
    f"sd-e2-{data}": Preset(
        source="arXiv:2601.17982",
        env="sd-e2",
        algo="grpo",
        # bob takes part where --roles names him.
        models={"alice": "Qwen/Qwen2.5-3B-Instruct", "bob": "Qwen/Qwen3-4B-Instruct-2507"},
        agent=_SD_E2_AGENT,
        values={**_SD_E2, "problems": problems},
    )
    for data, problems in _SD_E2_DATA.items()
}

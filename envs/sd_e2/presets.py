"""SD-E2 (arXiv:2601.17982): its settings, for the rows that CoRe compares itself with.

"Configuration" is that of the authors' public code.
"""

from coterie.envs.preset import ADAMW, TINY, Departure, Preset, Setting

_SETTINGS = {
    "env.traces": Setting(6, "configuration"),
    "env.max_new_tokens": Setting(1536, "configuration", TINY),
    # CoRe compares under its own protocol, and says so of everything that it measures.
    "env.eval_max_new_tokens": Setting(
        4096,
        "CoRe, section 5.2",
        TINY,
        paper="1,536 tokens at temperature 0.1 and top-p 0.95 (configuration)",
        departs="these are rows of CoRe's tables, whose protocol is one for all",
    ),
    "env.stop": Setting((), "configuration"),
    "env.prompt_style": Setting(
        "strategies", "configuration", "the tiny team cannot read instructions"
    ),
    "env.normalise": Setting(True, "configuration"),
    "env.w_outcome": Setting(1.0, "configuration"),
    "env.w_explore": Setting(1.0, "configuration"),
    "env.w_exploit": Setting(1.0, "configuration"),
    "env.w_format": Setting(1.0, "configuration"),
    "env.gamma_correct": Setting(1.0, "configuration"),
    "env.gamma_rate": Setting(0.1, "configuration"),
    "env.gamma_cap": Setting(0.5, "configuration"),
    "env.same_above": Setting(0.8, "configuration"),
    "env.format_strategy": Setting(0.2, "configuration"),
    "env.format_answer": Setting(0.3, "configuration"),
    "env.format_complete": Setting(0.1, "configuration"),
    "agents.tuning": Setting("lora", "configuration", "tiny models are trained whole"),
    "agents.lora_rank": Setting(64, "configuration", "that of CoRe's"),
    "agents.lora_alpha": Setting(16, "configuration", "that of CoRe's"),
    "learner.lr": Setting(5e-6, "configuration", TINY),
    **ADAMW,
    "learner.epochs": Setting(1, "configuration"),
    "learner.minibatches": Setting(1, "configuration"),
    "rollout.problems_per_step": Setting(1, "configuration", "one question is a noisy step"),
    "rollout.temperature": Setting(
        0.1, "configuration", "at .1 six traces hardly differ, and equal ones teach nothing"
    ),
    "rollout.top_p": Setting(
        0.95, "configuration", "importance ratios are only right for what was sampled from"
    ),
    "rollout.top_k": Setting(0, "configuration"),
    "eval.temperature": Setting(0.7, "CoRe's reference configuration", "that of training"),
    "eval.top_p": Setting(0.9, "CoRe's reference configuration", "that of training"),
    "scoring.encoder": Setting(
        "minilm", "configuration", "it would cost twenty times a tiny model's whole step"
    ),
    "run.steps": Setting(7500, "configuration", TINY),
    "run.seed": Setting(42, "configuration", "any"),
    "run.group_by": Setting(
        "problem+role", "configuration", "the environment's own, which is the same"
    ),
    "run.checkpoint_every": Setting(500, "configuration", "tiny checkpoints are cheap"),
}
# Name -> models by role. bob takes part where --roles names him: CoRe's tables 1, 2 and 4.
_MODELS = {
    "": {"alice": "Qwen/Qwen2.5-3B-Instruct", "bob": "Qwen/Qwen3-4B-Instruct-2507"},
    "reasoning-": {
        "alice": "microsoft/Phi-4-mini-reasoning",
        "bob": "mistralai/Ministral-3-3B-Reasoning-2512",
    },
    "qwen-7b-": {"alice": "Qwen/Qwen2.5-7B-Instruct"},
    "phi-7b-": {"alice": "microsoft/Phi-3-small-8k-instruct"},
    "ministral-8b-": {"alice": "mistralai/Ministral-3-8B-Reasoning-2512"},
}
_LIMIT = 7500
_DATA = {
    "gsm8k": "gsm8k",
    "math": "math-8020",
    "aime": "aime-1983-2025",
    "gpqa": "gpqa-main",
    "medmcqa": "medmcqa",
}


def _data(problems: str) -> dict[str, Setting]:
    # Its own sets and sizes; all of every other set trains.
    limit = _LIMIT if problems == "medmcqa" else None
    source = "configuration" if problems in ("gsm8k", "medmcqa") else "CoRe, section 5.1"
    return {
        "problems.train": Setting(problems, source, TINY),
        "problems.limit": Setting(limit, source, "all"),
    }


PRESETS = {
    f"sd-e2-{name}{data}": Preset(
        paper="arXiv:2601.17982",
        env="sd-e2",
        algo="grpo",
        models=models,
        settings={**_SETTINGS, **_data(problems)},
    )
    for name, models in _MODELS.items()
    for data, problems in _DATA.items()
}

DEPARTURES = (
    Departure(
        "weights",
        "four-bit base, adapters with dropout 0.1 (configuration)",
        "the base as published, no dropout",
        "another base would be needed, and CoRe's has neither",
    ),
    Departure(
        "exploitation",
        "named and weighted, and not computed in the public code",
        "the share of strategies that are right",
        "the abstract calls it the efficiency of the solution",
    ),
    Departure(
        "models",
        "3B models; those of CoRe's tables 2 and 4 are CoRe's choice (section 5.1)",
        "the same settings for all of them",
        "CoRe names no others",
    ),
    Departure(
        "Phi-3-small",
        "CoRe, table 4",
        "needs `--agents.alice.trust-remote-code`",
        "its code comes with the checkpoint, and a preset does not trust it for you",
    ),
    Departure(
        "steps",
        f"{_SETTINGS['run.steps'].value:,} of one question, for 3B models (configuration)",
        "the same for every set, so that a small one is gone through many times",
        "`--steps` shortens it",
    ),
)

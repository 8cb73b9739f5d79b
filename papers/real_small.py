"""Two small chat models on one GPU or a CPU: no paper's settings."""

from coterie.papers.preset import Preset, Setting

_OURS = "ours"
_SMALL, _OTHER = "HuggingFaceTB/SmolLM2-360M-Instruct", "Qwen/Qwen2.5-0.5B-Instruct"

REAL_SMALL = Preset(
    paper="",
    env="core-teaching",
    algo="gspo",
    models={
        **dict.fromkeys(("alice", "small", "policy", "solver"), _SMALL),
        **dict.fromkeys(("bob", "large", "expert"), _OTHER),
    },
    settings={
        "problems.train": Setting(
            "hub:garrethlee/svamp",
            _OURS,
            "such models can learn word problems of one step",
        ),
        "env.max_new_tokens": Setting(256, _OURS, "answers to them are short"),
        "rollout.problems_per_step": Setting(8, _OURS, "a step takes a minute on two cores"),
        "learner.lr": Setting(2e-4, _OURS, "1e-4 moves an adapter of such a model too slowly"),
        "run.steps": Setting(200, _OURS, "hundreds of steps, as few groups have a signal at first"),
    },
    anywhere=True,
)
"""100 million to a billion weights; what it does not name follows from the models."""

"""The spec of ``corea-deferral``: defaults and suite."""

from coterie.envs.corea_deferral.settings import CoreaDeferralSettings
from coterie.envs.env_spec import EnvSpec, never_rereads

SPEC = EnvSpec(
    name="corea-deferral",
    version=0,
    factory="coterie.envs.corea_deferral:CoreaDeferralEnv",
    settings=CoreaDeferralSettings,
    roles=("small", "large"),
    evaluation="coterie.envs.corea_deferral.evaluation:EVALUATION",
    rereads=never_rereads,
    learns=lambda settings: settings.learners,
    learning=lambda roles: {"learners": roles},
    defaults={
        "problems": {"train": "recall"},
        "learner": {"lr": 2e-3, "schedule": "linear"},
        "run": {"steps": 900},
        "agents": {"large": {"trained": False}},
    },
    larger={
        # Chat models end their answers. Small ones state no confidence by themselves.
        "env": {"max_new_tokens": 512, "stop": (), "prefill_confidence": True},
        "learner": {"schedule": "constant"},
    },
    presets="coterie.envs.corea_deferral.presets:PRESETS",
    tables="coterie.envs.corea_deferral.tables",
    suite={
        "name": "corea",
        "problems": ("recall",),
        "role": "small",
        # Mode eval would defer; in training a learner answers with its confidence.
        "mode": "train",
        "settings": {"traces": 1, "learners": ("small",)},
    },
)

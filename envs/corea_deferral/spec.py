"""What is known of ``corea-deferral`` before it is built: its defaults and its suite."""

from coterie.envs.corea_deferral.settings import CoreaDeferralSettings
from coterie.envs.env_spec import EnvSpec, reads_nothing_again

SPEC = EnvSpec(
    name="corea-deferral",
    version=0,
    shipped=True,
    factory="coterie.envs.corea_deferral:CoreaDeferralEnv",
    settings=CoreaDeferralSettings,
    roles=("small", "large"),
    evaluation="coterie.envs.corea_deferral.evaluation:EVALUATION",
    rereads=reads_nothing_again,
    learns=lambda settings: settings.learners,
    learning=lambda roles: {"learners": roles},
    defaults={
        "problems": {"train": "recall"},
        "learner": {"lr": 2e-3, "schedule": "linear"},
        "run": {"steps": 900},
        "agents": {"large": {"trained": False}},
    },
    larger={
        # The prompt asks for a box and a confidence in any case; they end an answer by themselves.
        "env": {"max_new_tokens": 512, "stop": ()},
        "learner": {"schedule": "constant"},
    },
    presets="coterie.envs.corea_deferral.presets:PRESETS",
    tables="coterie.envs.corea_deferral.tables",
    suite={
        "name": "corea",
        "problems": ("recall",),
        "role": "small",
        # Its evaluation defers; in training a learner just answers, with its confidence.
        "mode": "train",
        "settings": {"traces": 1, "learners": ("small",)},
    },
)

"""What is known of ``core-teaching`` before it is built: its defaults, and who asks what in it."""

from pathlib import Path

from coterie.envs.core_teaching.check import check
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.envs.env_spec import EnvSpec

SPEC = EnvSpec(
    name="core-teaching",
    version=0,
    shipped=True,
    factory="coterie.envs.core_teaching:CoreTeachingEnv",
    settings=CoreTeachingSettings,
    roles=("alice", "bob"),
    evaluation="coterie.envs.core_teaching.evaluation:EVALUATION",
    rereads=lambda settings: settings.reread != "none",
    check=check,
    defaults={
        # Half of the problems are one role's, and the other half practically never.
        "problems": {"train": "chains?mix=0.5,0.5,0&min_length=5&max_length=5"},
        "algo": {"distillation": {"beta": 1.0, "likeliest": 64, "fade": 1.0}},
        "run": {"group_by": "problem+role"},
    },
    larger={
        "env": {
            # Peer distillation stays as it is: four cold traces, the wrong ones read again.
            "prompt_style": "answer",
            "max_new_tokens": 512,
            "hint_tokens": 256,
            "k_cold": 4,
        }
    },
    suite={
        "name": "core",
        # The families that one tiny model knows and the other does not, and their mixture.
        "problems": ("chains?mix=1,0,0", "chains?mix=0,1,0", "chains?mix=0,0,1"),
        "role": "alice",
        "silent": ("bob",),
        "settings": {"k_cold": 1, "k_hinted": 0},
    },
    unnamed={"reread": "none", "reread_least": 0.0},
    presets="coterie.envs.core_teaching.presets:PRESETS",
    tables="coterie.envs.core_teaching.tables",
    baseline=Path(__file__).parent / "alone.json",
)

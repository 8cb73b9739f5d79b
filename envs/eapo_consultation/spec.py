"""The spec of ``eapo-consultation``: defaults and suite."""

from collections.abc import Iterator
from typing import Any

from coterie.envs.eapo_consultation.settings import EapoConsultationSettings
from coterie.envs.env_spec import EnvSpec
from coterie.envs.settings import check_rereading

PROBLEMS = "chains?mix=0,1,0&min_length=4&max_length=4&answer=all"


def check(settings: EapoConsultationSettings, run: Any) -> Iterator[tuple[bool, str]]:
    """Implement :attr:`coterie.envs.EnvSpec.check`: rereading needs distillation and vice versa."""
    return check_rereading(settings.reread, run, remedy="add --env.lone 1 --env.reread wrong")


SPEC = EnvSpec(
    name="eapo-consultation",
    version=0,
    factory="coterie.envs.eapo_consultation:EapoConsultationEnv",
    settings=EapoConsultationSettings,
    roles=("policy", "expert"),
    evaluation="coterie.envs.eapo_consultation.evaluation:EVALUATION",
    rereads=lambda settings: settings.reread != "none",
    check=check,
    learns=lambda settings: ("policy",),
    defaults={
        "problems": {"train": PROBLEMS, "held_out": 128},
        "algo": {"distillation": {"beta": 1.0, "likeliest": 64}},
        # 1.2 million policy tokens
        "run": {"steps": 165},
        "agents": {"expert": {"trained": False}},
    },
    larger={
        "env": {
            "prompt_style": "answer",
            "max_new_tokens": 512,
            "expert_max_new_tokens": 256,
            "reply_tokens": 256,
            "eval_samples": 4,
            # Help fades over the same share of the run as with the tiny team.
            "accept_span": 240.0,
            "penalty_start": 240,
        },
        "problems": {"held_out": None},  # as many as the run's length allows
    },
    # The same share of 40 steps.
    small={"env": {"accept_span": 48.0, "penalty_start": 48}},
    presets="coterie.envs.eapo_consultation.presets:PRESETS",
    tables="coterie.envs.eapo_consultation.tables",
    suite={
        "name": "eapo",
        "problems": (PROBLEMS,),
        "role": "policy",
        "workflow": "workflow",
        "settings": {"lone": 0, "reread": "none"},
    },
)

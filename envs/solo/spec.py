"""The spec of ``solo``: defaults."""

from coterie.envs.env_spec import EnvSpec, never_rereads
from coterie.envs.solo.environment import SoloSettings

SPEC = EnvSpec(
    name="solo",
    version=0,
    factory="coterie.envs.solo:SoloEnv",
    settings=SoloSettings,
    roles=("solver",),
    evaluation="coterie.envs.solo.evaluation:EVALUATION",
    rereads=never_rereads,
    defaults={
        # Prompt and length of the tiny team's models.
        "env": {
            "prompt": "Question: {question}\nLet's solve this step by step:",
            "max_new_tokens": 48,
        },
        "agents": {"solver": {"model": "tiny:alice"}},
    },
    larger={"env": {"prompt": SoloSettings().prompt, "max_new_tokens": 512}},
    # Without a penalty answers can grow until the limit cuts them
    # (research/2026-11-models-that-reason.md).
    small={"algo": {"overlong_limit": 256, "overlong_buffer": 64, "overlong_factor": 0.5}},
)

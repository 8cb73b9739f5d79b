"""The spec of ``sd-e2``: defaults."""

from coterie.envs.env_spec import EnvSpec, never_rereads
from coterie.envs.sd_e2.settings import SdE2Settings

SPEC = EnvSpec(
    name="sd-e2",
    version=0,
    factory="coterie.envs.sd_e2:SdE2Env",
    settings=SdE2Settings,
    roles=("alice",),
    evaluation="coterie.envs.sd_e2.evaluation:EVALUATION",
    rereads=never_rereads,
    presets="coterie.envs.sd_e2.presets:PRESETS",
    larger={"env": {"prompt_style": "answer", "max_new_tokens": 512}},
)

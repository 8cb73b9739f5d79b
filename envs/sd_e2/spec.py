"""What is known of ``sd-e2`` before it is built: its defaults."""

from coterie.envs.env_spec import EnvSpec, reads_nothing_again
from coterie.envs.sd_e2.settings import SdE2Settings

SPEC = EnvSpec(
    name="sd-e2",
    version=0,
    shipped=True,
    factory="coterie.envs.sd_e2:SdE2Env",
    settings=SdE2Settings,
    roles=("alice",),
    evaluation="coterie.envs.sd_e2.evaluation:EVALUATION",
    rereads=reads_nothing_again,
    presets="coterie.envs.sd_e2.presets:PRESETS",
    larger={"env": {"prompt_style": "answer", "max_new_tokens": 512}},
)

"""From a role's settings to what is loaded for it; cheap to import, and reads no weights."""

from collections.abc import Mapping

from launch.players import check_players, local_models
from launch.settings import AgentSettings
from models.locate import check
from models.spec import LoraSpec, ModelSpec


def model_spec(settings: AgentSettings) -> ModelSpec:
    """What to load for one role."""
    tiny = settings.model.startswith("tiny:")
    lora = settings.tuning == "lora" or (settings.tuning == "auto" and not tiny)
    return ModelSpec(
        model=settings.model,
        lora=LoraSpec(rank=settings.lora_rank, alpha=settings.lora_alpha)
        if lora and settings.trained
        else None,
        chat=settings.chat,
        dtype=settings.dtype,
        device=settings.device,
        context=settings.context,
        revision=settings.revision,
        trust_remote_code=settings.trust_remote_code,
    )


def check_models(agents: Mapping[str, AgentSettings]) -> None:
    """Look at every model's files without reading weights.

    Raises:
        UserError: one that cannot be had.
    """
    check_players(agents)
    for settings in local_models(agents).values():
        check(model_spec(settings))

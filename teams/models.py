"""From a role's settings to what is loaded for it; cheap to import, and reads no weights."""

from collections.abc import Mapping
from dataclasses import replace

from coterie.agents.engine.settings import VllmSettings, check_engine
from coterie.datatypes import UserError
from coterie.experts.naming import is_player
from coterie.models.locate import adapter_base, check, hub_snapshot
from coterie.models.spec import LoraSpec, ModelSpec
from coterie.teams.players import check_players, local_models
from coterie.teams.settings import AgentSettings


def model_spec(settings: AgentSettings) -> ModelSpec:
    """What to load for one role: a model, or an adapter on the base that it names.

    Raises:
        UserError: full weights are to be trained where only an adapter is named.
    """
    base = adapter_base(settings.model)
    if base and settings.trained and settings.tuning == "full":
        raise UserError(f"{settings.model} is an adapter: --agents.ROLE.tuning full needs a model")
    return ModelSpec(
        model=base or settings.model,
        lora=_lora(settings, base),
        chat=settings.chat,
        dtype=settings.dtype,
        device=settings.device,
        context=settings.context,
        revision=settings.revision,
        trust_remote_code=settings.trust_remote_code,
    )


def _lora(settings: AgentSettings, base: str | None) -> LoraSpec | None:
    if base:
        return LoraSpec(adapter=settings.model)
    tiny = settings.model.startswith("tiny:")
    lora = settings.tuning == "lora" or (settings.tuning == "auto" and not tiny)
    return LoraSpec(settings.lora_rank, settings.lora_alpha) if lora and settings.trained else None


def check_engines(engine: str, vllm: VllmSettings, agents: Mapping[str, AgentSettings]) -> None:
    """Refuse engines that cannot sample for these roles' models.

    Raises:
        UserError: one sentence that names the flag.
    """
    models = local_models(agents).values()
    check_engine(engine, vllm, [(model.device, model.engine_device) for model in models])


def pin_commits(agents: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """The same settings with the commit of every model of the hub: what a branch names changes."""
    found = dict(agents)
    for role, settings in agents.items():
        if not is_player(settings.model) and (snapshot := hub_snapshot(model_spec(settings))):
            found[role] = replace(settings, revision=snapshot.name)
    return found


def check_models(agents: Mapping[str, AgentSettings]) -> None:
    """Look at every model's files without reading weights.

    Raises:
        UserError: one that cannot be had.
    """
    check_players(agents)
    for role, settings in local_models(agents).items():
        check(model_spec(settings), role=role, trained=settings.trained)

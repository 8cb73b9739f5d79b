"""Model specs from roles' settings; cheap to import, and reads no weights."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coterie.agents.models.locate import NamedAdapter, check_model, hub_snapshot, named_adapter
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.models.system_message import check_system
from coterie.agents.team.players import SEAT, check_players, local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.vllm.settings import VllmSettings, check_engine
from coterie.datatypes import UserError, named_below, refuse
from coterie.experts.naming import is_player


def model_spec(settings: AgentSettings) -> ModelSpec:
    """Return the model of a role, or the adapter with its base model.

    Raises:
        UserError: the settings name an adapter, and full weights or LoRA targets.
    """
    adapter = named_adapter(settings.model, settings.revision)
    if adapter and settings.lora_targets:
        raise UserError(
            f"{settings.model} is an adapter, which has its layers: leave out "
            "--agents.ROLE.lora-targets"
        )
    if adapter and settings.trained and settings.tuning == "full":
        raise UserError(f"{settings.model} is an adapter: --agents.ROLE.tuning full needs a model")
    return ModelSpec(
        model=adapter.base if adapter else settings.model,
        lora=LoraSpec(adapter=str(adapter.folder)) if adapter else _new_adapter(settings),
        chat=settings.chat,
        system=settings.system,
        dtype=settings.dtype,
        recompute=settings.recompute,
        device=settings.device,
        context=settings.context,
        revision=_base_revision(settings, adapter),
        trust_remote_code=settings.trust_remote_code,
    )


def after_training(settings: AgentSettings, folder: Path) -> AgentSettings:
    """Return the settings that load what a role has learned.

    Args:
        settings: of the role in its run.
        folder: the weights or the adapter that the run has written.

    Raises:
        UserError: the adapter does not name its base model.
    """
    revision = None
    if adapter := named_adapter(str(folder)):
        began = model_spec(settings)
        # The commit of an adapter that the run began with is none of their common base.
        revision = began.revision if began.model == adapter.base else None
    return replace(settings, model=str(folder), trained=False, revision=revision, lora_targets=())


def _base_revision(settings: AgentSettings, adapter: NamedAdapter | None) -> str | None:
    if adapter is None:
        return settings.revision
    # A given revision belongs to the adapter if that comes from the hub.
    given = None if adapter.from_hub else settings.revision
    return given or adapter.base_revision


def _new_adapter(settings: AgentSettings) -> LoraSpec | None:
    tiny = settings.model.startswith("tiny:")
    lora = settings.tuning == "lora" or (settings.tuning == "auto" and not tiny)
    if not (lora and settings.trained):
        return None
    return LoraSpec(settings.lora_rank, settings.lora_alpha, settings.lora_targets)


def check_engines(
    engine: str,
    vllm: VllmSettings,
    agents: Mapping[str, AgentSettings],
    *,
    here: bool = True,
    gpus: bool = True,
) -> None:
    """Refuse engines that do not support these roles' models.

    Args:
        engine: ``local`` or ``vllm``.
        vllm: settings of the engines.
        agents: role -> its player.
        here: whether this process starts them.
        gpus: whether there are GPUs where others start them.

    Raises:
        UserError: names the flag.
    """
    for role, agent in agents.items():
        _check_tensor_parallel(role, agent, engine, here=here)
    models = local_models(agents).values()
    devices = [(model.device, model.engine_device) for model in models]
    adapters = any(model_spec(model).lora is not None for model in models)
    auto = None if here else "cuda:0" if gpus else "cpu"
    check_engine(engine, vllm, devices, adapters=adapters, auto=auto)


def _check_tensor_parallel(role: str, agent: AgentSettings, engine: str, *, here: bool) -> None:
    count = agent.tensor_parallel
    if count == 1:
        return
    flag = f"--agents.{role}.tensor-parallel"
    device = agent.device if agent.engine_device == "auto" else agent.engine_device
    refuse(
        (engine != "vllm", f"{flag} needs --engine vllm"),
        (device == "cpu", f"{flag} needs GPUs, and the engine of {role} is on a CPU"),
    )
    if here:
        from torch import cuda

        first = int(device.partition(":")[2] or 0)
        if first + count > cuda.device_count():
            raise UserError(
                f"{flag} {count} needs that many GPUs from cuda:{first} on, and this machine has "
                f"{cuda.device_count()}"
            )


def pin_commits(agents: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """Set the revision of every hub model to its commit, because branches move."""
    pinned = dict(agents)
    for role, settings in agents.items():
        if is_player(settings.model):
            continue
        adapter = named_adapter(settings.model, settings.revision)
        if adapter and adapter.from_hub:
            snapshot = adapter.folder
        else:
            snapshot = hub_snapshot(model_spec(settings))
        if snapshot:
            pinned[role] = replace(settings, revision=snapshot.name)
    return pinned


def check_models(agents: Mapping[str, AgentSettings]) -> None:
    """Check every model's files without reading weights.

    Raises:
        UserError: a model is missing or unusable.
    """
    check_players(agents)
    for role, settings in local_models(agents).items():
        with named_below(f"--agents.{role.partition(SEAT)[0]}."):
            spec = checked_spec(settings, role=role, trained=settings.trained)
            check_system(spec, role.partition(SEAT)[0])
            if spec.chat == "template":
                # What takes time to import waits until a template is asked for.
                from coterie.agents.models.codec import read_frame
                from coterie.agents.models.load_tokenizer import load_tokenizer

                read_frame(load_tokenizer(spec))


def checked_spec(settings: AgentSettings, **more: Any) -> ModelSpec:
    """Check a model's files, with ``more`` for :func:`check_model`; return its spec.

    Raises:
        UserError: it is missing or unusable.
    """
    spec = model_spec(settings)
    check_model(spec, **more)
    # A hub id turns out to be an adapter only after the check has downloaded its description.
    if (known := model_spec(settings)) != spec:
        check_model(known, **more)
    return known


def check_tool_templates(
    agents: Mapping[str, AgentSettings], tools: Mapping[str, Sequence[Mapping[str, Any]]]
) -> None:
    """Refuse tools of an environment that a role's chat template cannot offer, before weights are
    read.

    Args:
        agents: role -> its player.
        tools: role -> its tools in the format of chat templates.

    Raises:
        UserError: names the role and its model.
    """
    for name, settings in local_models(agents).items():
        role = name.partition(SEAT)[0]
        if not tools.get(role) or settings.chat == "plain":
            continue
        # What takes time to import waits until there are tools.
        from coterie.agents.models.codec import HFCodec
        from coterie.agents.models.load_tokenizer import load_tokenizer

        codec = HFCodec(load_tokenizer(model_spec(settings)), chat=settings.chat)
        if why := codec.why_no_tools(tools[role]):
            raise UserError(
                f"{role} may call tools and is played by {settings.model}, {why}; take another "
                f"model, or say --agents.{role}.chat plain, which describes tools in the prompt"
            )

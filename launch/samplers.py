"""What samples from the models of a team: this process, or engines."""

from collections.abc import Collection, Mapping

from agents.engine.fleet import Fleet, Seat
from agents.engine.settings import VllmSettings
from agents.local import LocalPolicy
from launch.models import model_spec
from launch.settings import AgentSettings
from models.loading import LoadedRole
from vocabulary import Policy


def samplers(
    models: Mapping[str, AgentSettings],
    loaded: Mapping[str, LoadedRole],
    *,
    learns: Collection[str],
    vllm: VllmSettings | None,
    seed: int,
) -> tuple[Mapping[str, Policy], Fleet | None]:
    """A policy for every model, by its name, and with ``vllm`` the engines behind them, which are
    still to be started."""
    if vllm is None:
        return {name: LocalPolicy(one.handle, one.codec) for name, one in loaded.items()}, None
    seats = [
        Seat(name, one, model_spec(models[name]), name in learns, models[name].engine_device)
        for name, one in loaded.items()
    ]
    fleet = Fleet(seats, vllm, seed=seed)
    return fleet.policies, fleet

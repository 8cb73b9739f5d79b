"""A sentence on the number formats and threads of models on a processor."""

from collections import defaultdict
from collections.abc import Callable, Mapping

import torch

from coterie.agents.models.number_format import number_format_of
from coterie.agents.models.spec import TINY_BYTES
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.team import Team


def tell_computing(
    team: Team, agents: Mapping[str, AgentSettings], tell: Callable[[str], object]
) -> None:
    """Report number format and threads of models in this process that are not tiny nor on a GPU.

    Args:
        team: holds the models.
        agents: settings by role.
        tell: shows a sentence.
    """
    roles_by_format: dict[str, list[str]] = defaultdict(list)
    for role, agent in local_models(agents).items():
        loaded = team.loaded.get(role)
        if loaded is None or loaded.handle.device.type != "cpu":
            continue
        if loaded.handle.weight_bytes <= TINY_BYTES:
            continue
        chosen = number_format_of(model_spec(agent), trained=agent.trained)
        roles_by_format[f"{chosen.name} ({chosen.why})"].append(role)
    threads = torch.get_num_threads()
    for number_format, roles in roles_by_format.items():
        tell(
            f"{', '.join(roles)} compute{'s' * (len(roles) == 1)} in {number_format}, on {threads} "
            f"thread{'s' * (threads != 1)}"
        )

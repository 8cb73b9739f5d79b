"""The sampling parameters of each role."""

from collections.abc import Mapping

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Sampling
from coterie.training.config.run_settings import MAX_NEW_TOKENS, EvalSettings, RolloutSettings


def role_sampling(
    rollout: RolloutSettings,
    agents: Mapping[str, AgentSettings],
    evaluation: EvalSettings | None = None,
) -> dict[str, Sampling]:
    """Role -> its sampling parameters in training or in an evaluation.

    Args:
        rollout: values for all roles.
        agents: role -> its settings, which override those.
        evaluation: settings that override both; None: this is training.
    """
    overrides = evaluation or EvalSettings()
    return {
        role: Sampling(
            MAX_NEW_TOKENS,
            _first(overrides.temperature, agent.temperature, rollout.temperature),
            _first(overrides.top_p, agent.top_p, rollout.top_p),
            rollout.top_k,
        )
        for role, agent in agents.items()
    }


def learner_temperature(rollout: RolloutSettings, agent: AgentSettings) -> float:
    """The temperature of the probabilities that a role's learner computes."""
    return _first(rollout.learner_temperature, agent.temperature, rollout.temperature)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)

"""How each role's answers are sampled."""

from collections.abc import Mapping

from coterie.agents.team.settings import AgentSettings
from coterie.datatypes import Sampling
from coterie.training.config.run_settings import MAX_NEW_TOKENS, EvalSettings, RolloutSettings


def role_sampling(
    rollout: RolloutSettings,
    agents: Mapping[str, AgentSettings],
    evaluation: EvalSettings | None = None,
) -> dict[str, Sampling]:
    """Role -> how it is sampled in training, or in an evaluation.

    Args:
        rollout: what holds for all roles.
        agents: role -> its own settings, which come first.
        evaluation: what comes before those; None: this is training.
    """
    asked = evaluation or EvalSettings()
    return {
        role: Sampling(
            MAX_NEW_TOKENS,
            _first(asked.temperature, agent.temperature, rollout.temperature),
            _first(asked.top_p, agent.top_p, rollout.top_p),
            rollout.top_k,
        )
        for role, agent in agents.items()
    }


def learner_temperature(rollout: RolloutSettings, agent: AgentSettings) -> float:
    """The temperature of a role's probabilities as its learner takes them."""
    return _first(rollout.learner_temperature, agent.temperature, rollout.temperature)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)

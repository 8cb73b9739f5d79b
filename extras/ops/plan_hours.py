"""What a step has, and roughly how long a run takes: arithmetic and memory traffic over what cards
of its size do.

No model answers as long as it may every time, so this is the most; evaluation is not counted.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from coterie import envs
from coterie.envs.contract import role_of
from coterie.models.spec import ModelSpec
from coterie.teams.footprint import Footprint
from coterie.training.train_settings import TrainSettings

CARDS = (
    (32, "an RTX 4090", 165e12, 1.0e12),
    (48, "an L40S", 362e12, 0.86e12),
    (100, "an A100", 312e12, 2.0e12),
    (math.inf, "an H200", 989e12, 4.8e12),
)
"""(GiB at most, name, bfloat16 operations a second, bytes a second), by the makers' data sheets,
without sparsity."""
_CPU = ("two CPU cores", 1e11, 2e10)
_OF_PEAK, _OF_BANDWIDTH = 0.4, 0.6
"""Shares of those that a learner and a decoder get."""


@dataclass(frozen=True)
class RolePlan:
    """What one model of the run does in a step."""

    rows: int
    """0 where training does not ask it."""
    prompt: int
    """Tokens of the longest prompt."""
    longest: int
    """Tokens of the longest row."""
    answer: int
    """Tokens that it may write."""
    found: Footprint
    device: str
    spec: ModelSpec
    trained: bool
    devices: int = 1
    """GPUs over which its learner lies in shards."""
    bits: int = 32
    """Of a number that it computes with."""
    imitated: int = 0
    """Worked solutions in a step of the warm-up."""


def hours(
    settings: TrainSettings, roles: Mapping[str, RolePlan], cards: Mapping[str, int | None]
) -> float:
    """Hours of a run.

    Args:
        settings: of the run.
        roles: its models.
        cards: device -> bytes.
    """
    sampling = learning = imitating = 0.0
    for one in roles.values():
        _, peak, bandwidth = _speeds(one.device, cards.get(one.device))
        found = one.found
        if not one.rows:
            continue
        # Chen et al., arXiv:1604.06174, and Kaplan et al., arXiv:2001.08361: 2 operations a weight
        # and token forward, 2 for gradients of activations, 2 for those of weights.
        if one.trained:
            once = 2 + 2 + 2 * (one.spec.lora is None) + 2 * found.recomputes
            each = once * settings.learner.epochs + 2 * _readings(settings)
            work = one.rows * one.longest * each * found.parameters
            speed = _OF_PEAK * peak * one.devices
            learning += work / speed
            # A worked solution is as long as an answer at most, and is read once.
            imitating += one.imitated * one.longest * once * found.parameters / speed
        side = min(one.rows, settings.vllm.max_sequences)
        # Every token reads the weights once for all rows, and each row's own cache.
        read = found.parameters * (4 if one.device == "cpu" else 2)
        read += side * one.longest / 2 * found.cache_per_token
        passes = math.ceil(one.rows / side) * one.answer
        sampling += passes * read / (_OF_BANDWIDTH * bandwidth)
        sampling += one.rows * one.prompt * 2 * found.parameters / (_OF_PEAK * peak)
    seconds = settings.run.steps * (sampling + learning) + settings.warmup.steps * imitating
    return seconds / 3600


def _readings(settings: TrainSettings) -> float:
    """How often a step computes a row's log-probabilities without learning it, at most."""
    algo = settings.algo
    # Of the weights before several updates, and of the reference; of both for the reward.
    often = (settings.learner.optimizer_steps > 1) + (algo.kl_coefficient > 0)
    often += 2 * (algo.kl_in_reward > 0)
    # Behind the other context, and behind the row's own, until that has faded.
    return often + 2 * (algo.distillation.beta > 0) * (algo.distillation.fade or 1.0)


def card_name(device: str, card: int | None) -> str:
    """Whose speed is taken for a device of so many bytes."""
    return _speeds(device, card)[0]


def _speeds(device: str, card: int | None) -> tuple[str, float, float]:
    if device == "cpu":
        return _CPU
    size = (card or 0) / 2**30
    return next(tuple(rest) for most, *rest in CARDS if size <= most)  # type: ignore[return-value]


def rows_of(settings: TrainSettings, role: str) -> tuple[int, float]:
    """(rows of one step, different prompts a row)."""
    choice = settings.choice
    env = envs.make(
        choice.env,
        settings=settings.env,
        roles=choice.roles if settings.env is not None else None,
    )
    agents = sum(role_of(agent) == role for agent in env.possible_agents)
    replicas = settings.rollout.replicas or int(env.metadata.get("replicas", 1))
    # Who is asked the same at the beginning shares it, and replicas do.
    first, _ = env.reset(seed=0)
    asked_first = Counter(
        seen["tokens"].tobytes()
        for agent, seen in first.items()
        if role_of(agent) == role and seen.get("active", 1)
    )
    env.close()
    rows = max(1, replicas * agents)
    alike = replicas * max(asked_first.values()) if asked_first else 1
    learns = envs.spec(choice.env).learns
    asked = learns is None or role in learns(settings.env)
    return asked * settings.rollout.problems_per_step * rows, (rows - alike + 1) / rows

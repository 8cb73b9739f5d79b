"""A few episodes of a run, played as in training and watched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollouts import Collector, Deadlines, tasks_for
from training.doctor.watch import Asked, WatchedEnv, WatchedPolicy
from training.session import Session
from training.settings import MAX_NEW_TOKENS
from vocabulary import Episode, Policy, Problem, Sampling, Trajectory, derive_seed

_PROBLEMS, _REPLICAS = 8, 4


@dataclass(frozen=True)
class Observed:
    """What was played."""

    episodes: Sequence[Episode]
    asked: Mapping[str, Sequence[Asked]]
    """By role, in the order of the answers."""
    broken: Sequence[str]
    """Agents whose context was not continued at its end, once for each time."""

    def rows(self, role: str | None = None) -> list[Trajectory]:
        """One role's rows, or all."""
        return [
            row
            for episode in self.episodes
            for row in episode.trajectories
            if role in (None, row.role)
        ]


def few(session: Session, problems: Sequence[Problem]) -> tuple[Sequence[Problem], int]:
    """(as many of a step's problems as tell enough, episodes of each)."""
    count = min(_PROBLEMS, session.settings.rollout.problems_per_step)
    return problems[:count], min(_REPLICAS, session.replicas)


async def observe(
    session: Session, problems: Sequence[Problem], policies: Mapping[str, Policy], *, name: str
) -> Observed:
    """Play the first ``problems`` of training; ``name`` seeds what is sampled."""
    rollout = session.settings.rollout
    taken, replicas = few(session, problems)
    watched = {role: WatchedPolicy(policy) for role, policy in policies.items()}
    broken: list[str] = []
    collector = Collector(
        lambda: WatchedEnv(session.make_env(), broken),
        watched,
        sampling=Sampling(MAX_NEW_TOKENS, rollout.temperature, rollout.top_p, rollout.top_k),
        deadlines=Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s),
        concurrency=rollout.concurrency,
    )
    seed = derive_seed(session.settings.run.seed, "doctor", name)
    episodes = await collector.collect(tasks_for(taken, seed=seed, step=1, replicas=replicas))
    return Observed(episodes, {role: one.asked for role, one in watched.items()}, broken)

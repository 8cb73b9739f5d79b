"""Play a few episodes as in training, and record the calls of the policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from coterie.datatypes import (
    Completion,
    Episode,
    Policy,
    Problem,
    Prompt,
    Sampling,
    Trajectory,
    derive_seed,
)
from coterie.rollouts import Collector, Deadlines, tasks_for
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.train_settings import TrainSettings
from coterie.training.runtime import Runtime
from coterie.training.session import Session

_PROBLEMS, _REPLICAS = 8, 4


@dataclass(frozen=True)
class PolicyCall:
    """A call that a policy answered."""

    prompt: Prompt
    sampling: Sampling
    completion: Completion


class RecordedPolicy:
    """A :class:`coterie.datatypes.Policy` that wraps another policy and records its calls."""

    def __init__(self, policy: Policy) -> None:
        self.calls: list[PolicyCall] = []
        self._policy = policy

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        completion = await self._policy(prompt, sampling)
        self.calls.append(PolicyCall(prompt, sampling, completion))
        return completion


@dataclass(frozen=True)
class Observed:
    """Records of the played episodes."""

    episodes: Sequence[Episode]
    calls: Mapping[str, Sequence[PolicyCall]]
    """Role -> answered calls, in order of the answers."""

    def rows(self, role: str | None = None) -> list[Trajectory]:
        """The rows of one role, or of all roles."""
        return [
            row
            for episode in self.episodes
            for row in episode.trajectories
            if role in (None, row.role)
        ]


class Examined(Session):
    """A session with the settings and the runtime parts that the doctor needs."""

    def __init__(self, runtime: Runtime, settings: TrainSettings) -> None:
        """``settings``: the settings from which ``runtime`` was built."""
        super().__init__(runtime)
        self.settings = settings
        self.sampling = role_sampling(settings.rollout, settings.agents)
        self.group_key = runtime.sampler.group_key


async def observe(
    session: Examined, problems: Sequence[Problem], policies: Mapping[str, Policy], *, name: str
) -> Observed:
    """Play the first of ``problems``, a few times each; at most what a training step plays.
    ``name`` seeds the sampling, so that each round of episodes has its own samples."""
    rollout, runtime = session.settings.rollout, session.runtime
    recorded = {role: RecordedPolicy(policy) for role, policy in policies.items()}
    collector = Collector(
        runtime.make_env,
        recorded,
        sampling=session.sampling,
        deadlines=Deadlines(rollout.call_deadline_s, rollout.episode_deadline_s),
        concurrency=rollout.concurrency,
    )
    seed = derive_seed(session.settings.run.seed, "doctor", name)
    replicas = min(_REPLICAS, runtime.sampler.replicas)
    taken = problems[: min(_PROBLEMS, rollout.problems_per_step)]
    episodes = await collector.collect(tasks_for(taken, seed=seed, step=1, replicas=replicas))
    return Observed(episodes, {role: policy.calls for role, policy in recorded.items()})

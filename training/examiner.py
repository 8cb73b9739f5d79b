"""Evaluation of a run's team on its held-out problems."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from coterie.datatypes import Episode, Problem, UserError, derive_seed
from coterie.evaluation.by_set import estimate, with_sets
from coterie.evaluation.evaluation import Evaluation, Outcomes, Resampled
from coterie.rollouts import Collector, tasks_for
from coterie.training.config.run_settings import EvalSettings
from coterie.training.run.directory import RunDirectory


class Examiner:
    """Plays the episodes of an evaluation and stores their outcomes."""

    def __init__(
        self,
        evaluation: Evaluation,
        collector: Collector,
        held_out: Sequence[Problem],
        *,
        sets_of_problem: Sequence[Sequence[str]] = (),
        roles: Sequence[str],
        env_settings: Any,
        settings: EvalSettings,
        seed: int,
        run: RunDirectory,
    ) -> None:
        self.evaluation = evaluation
        self.roles = roles
        self._collector = collector
        self.problems = held_out
        """The evaluation's problems; empty: nothing is evaluated."""
        self._sets_of_problem = sets_of_problem
        """The sets of each problem; empty for a single set."""
        self._env_settings = env_settings
        self._settings = settings
        self._seed = seed
        self._run = run
        self.failed: Counter[str] = Counter()
        """Reason -> number of answers in the newest evaluation that failed for it."""
        self.answers = 0
        """Answers in the newest evaluation."""
        self.episodes: list[Episode] = []
        """Episodes of the newest evaluation; empty if its outcomes were read from the run."""

    @property
    def headline(self) -> list[str]:
        """Names of a step's metrics that the progress bar shows."""
        return self.evaluation.headline(self.roles)

    def failures(self) -> str:
        """A sentence on the failed answers of the newest evaluation; empty without any."""
        if not self.failed:
            return ""
        reason, count = self.failed.most_common(1)[0]
        return (
            f"{self.failed.total()} of {self.answers} answers failed and are excluded; {count} of "
            f"them: {reason}"
        )

    async def examine(self) -> Outcomes:
        """Play every evaluation problem, with the same seeds each time."""

        async def play(
            problems: Sequence[Problem], *, mode: str, replicas: int = 1
        ) -> list[Episode]:
            seed = derive_seed(self._seed, "evaluation")
            episodes = await self._collector.collect(
                tasks_for(problems, seed=seed, mode=mode, replicas=replicas)
            )
            # An agent counts once, however many rows its contexts made.
            agents = [{row.agent: row.status for row in e.trajectories} for e in episodes]
            statuses = [status for by_agent in agents for status in by_agent.values()]
            self.failed.update(status for status in statuses if status != "ok")
            self.answers += len(statuses)
            self.episodes += episodes
            return episodes

        self.failed.clear()
        self.answers, self.episodes = 0, []
        outcomes = await self.evaluation.examine(
            play, self.problems, self.roles, self._env_settings
        )
        return with_sets(outcomes, self._sets_of_problem)

    def expected(self, name: str) -> int:
        """About how many answers the evaluation ``name`` takes; 0 if its outcomes are stored."""
        if name in ("before", "warmed-up") and self._stored(f"evaluation/{name}.json") is not None:
            return 0
        return len(self.problems) * self.evaluation.answers(self.roles, self._env_settings)

    async def evaluate(self, name: str) -> Outcomes:
        """The outcomes of the evaluation ``name``.

        They are stored in ``evaluation/NAME.json``. A resumed run reads them from there, except
        those after training.

        Raises:
            UserError: the stored outcomes are damaged.
        """
        file = f"evaluation/{name}.json"
        outcomes = self._stored(file) if name != "after" else None
        if outcomes is None:
            outcomes = await self.examine()
            self._run.write_json(file, outcomes)
        return outcomes

    def _stored(self, file: str) -> Outcomes | None:
        try:
            stored = self._run.read_json(file)
            if stored is not None:
                # Damaged outcomes should be found now, not after training.
                self.estimate({**stored}, resamples=1)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(
                f"{self._run.path / file} cannot be read as an evaluation's outcomes, and cannot "
                "be measured again; restore it, or start a new run with another --run-dir"
            ) from None
        return stored

    def estimate(
        self, outcomes: Outcomes | None, resamples: int | None = None
    ) -> dict[str, Resampled]:
        """Metrics of ``outcomes`` by name, of each of several sets as well.

        Args:
            outcomes: of an evaluation; None: there are no metrics.
            resamples: of the bootstrap; None: the number in the settings.
        """
        if outcomes is None:
            return {}
        resamples = self._settings.resamples if resamples is None else resamples
        return estimate(self.evaluation, outcomes, resamples, self._seed)

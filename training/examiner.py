"""Evaluation of a run's team on its held-out problems."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from coterie.datatypes import Episode, Problem, UserError, derive_seed
from coterie.evaluation.evaluation import Evaluation, Outcomes, Resampled
from coterie.rollouts import Collector, tasks_for
from coterie.training.rundir import RunDirectory
from coterie.training.settings import EvalSettings


class Examiner:
    """Samples the evaluation's episodes, and keeps what came out."""

    def __init__(
        self,
        evaluation: Evaluation,
        collector: Collector,
        held_out: Sequence[Problem],
        *,
        roles: Sequence[str],
        env_settings: Any,
        settings: EvalSettings,
        seed: int,
        run: RunDirectory,
    ) -> None:
        self.evaluation = evaluation
        self.roles = roles
        self._collector = collector
        self._held_out = held_out
        self._env_settings = env_settings
        self._settings = settings
        self._seed = seed
        self._run = run
        self.failed: Counter[str] = Counter()
        """Of the evaluation sampled last: why answers failed -> how many."""
        self.answers = 0
        """All of them."""
        self.episodes: list[Episode] = []
        """Of the evaluation sampled last; empty where it was stored."""

    @property
    def headline(self) -> list[str]:
        """Metrics of a step that the progress bar shows."""
        return self.evaluation.headline(self.roles)

    def failures(self) -> str:
        """A sentence on the answers that failed in the evaluation sampled last, if any did."""
        if not self.failed:
            return ""
        reason, count = self.failed.most_common(1)[0]
        return (
            f"{self.failed.total()} of {self.answers} answers failed and are excluded; {count} of "
            f"them: {reason}"
        )

    async def examine(self) -> Outcomes:
        """Play every held-out problem, with the same seeds each time."""

        async def play(
            problems: Sequence[Problem], *, mode: str, replicas: int = 1
        ) -> list[Episode]:
            seed = derive_seed(self._seed, "evaluation")
            episodes = await self._collector.collect(
                tasks_for(problems, seed=seed, mode=mode, replicas=replicas)
            )
            rows = [row for episode in episodes for row in episode.trajectories]
            self.failed.update(row.status for row in rows if row.status != "ok")
            self.answers += len(rows)
            self.episodes += episodes
            return episodes

        self.failed.clear()
        self.answers, self.episodes = 0, []
        return await self.evaluation.examine(play, self._held_out, self.roles, self._env_settings)

    def expected(self, name: str) -> int:
        """Answers of models that the evaluation called ``name`` takes, about."""
        if name in ("before", "warmed-up") and self._stored(f"evaluation/{name}.json") is not None:
            return 0
        return len(self._held_out) * self.evaluation.answers(self.roles, self._env_settings)

    async def evaluate(self, name: str) -> Outcomes | None:
        """The evaluation called ``name``, stored with the run; None without held-out problems.

        What a run that is resumed had evaluated before, it does not sample again.

        Raises:
            UserError: what is stored is damaged.
        """
        if not self._held_out:
            return None
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
                # Now rather than when training has ended.
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
        """Metrics of what was sampled."""
        if outcomes is None:
            return {}
        return self.evaluation.estimate(
            outcomes, self._settings.resamples if resamples is None else resamples, self._seed
        )

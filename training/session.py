"""The verbs of the training loop in ``train.py``, each a few calls to the parts of the runtime."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from coterie.agents.team.backend import Died, RoleLearner
from coterie.algorithms import Credit
from coterie.algorithms.nonfinite import NotFinite
from coterie.algorithms.role_algorithms import assign_credit_by_role
from coterie.cli.progress import ANSWERED, ENDED, READ, Pulse, Sum
from coterie.datatypes import UserError
from coterie.evaluation.evaluation import Outcomes
from coterie.problems.prepare import PreparedProblems
from coterie.problems.stream import Position
from coterie.training.batch import StepBatch, rows_of, with_divergences
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run import checkpoint_paths
from coterie.training.run.checkpoint import Progress
from coterie.training.run.conclusion import tell
from coterie.training.run.log import Logbook
from coterie.training.run.recorder import is_due
from coterie.training.run.role_failures import not_finite
from coterie.training.run.stage_progress import learning, stage, stage_of_step
from coterie.training.runtime import Runtime, build

T = TypeVar("T")

_MOMENTS = {
    "before": "before training",
    "warmed-up": "after the warm-up",
    "after": "after training",
}


class Session(AbstractContextManager["Session"]):
    """A run for the training loop: its methods are the loop's verbs."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime, self.run = runtime, runtime.directory
        self.team, self.console = runtime.team, runtime.console
        self.sampler, self._examiner = runtime.sampler, runtime.examiner
        self._checkpointer, self._settings = runtime.checkpointer, runtime.settings
        self._position = Position(self._progress.cursor, self._progress.difficulty)
        """Where the stream stands after the newest step."""
        self._times: dict[str, float] = {}
        """Phase -> its seconds in the newest step."""
        self._bar: Callable[[str], None] | None = None
        """Shows the part of a step on the progress bar of the open logbook."""

    def warm_up(self, check: Callable[[], None]) -> Outcomes | None:
        """Have roles imitate worked solutions before they are rewarded (``--warmup.steps``).

        Args:
            check: called after each step; raises to stop.

        Returns:
            Outcomes of an evaluation after the warm-up; None without a warm-up.
        """
        warmup = self.runtime.warmup
        if not (last := warmup.last):
            return None
        first = self._progress.warmed + 1
        if first <= last:
            self.run_async(self.team.backend.rest())  # free sampling memory first
            slow = self.runtime.slow
            for step in warmup.steps(first, self.run, self.console, check, slow=slow):
                self._checkpointer.advance(warmed=step)
                if step == last or is_due(step, self._settings.checkpoint_every):
                    self.save()
        return self.evaluate("warmed-up")

    def open_logbook(self) -> Logbook:
        """Open the log of each step's numbers, with the progress bar."""
        book = self.runtime.recorder.open_logbook(
            self.console, self._progress.step + 1, self._examiner.headline
        )
        self._bar = book.part
        return book

    def steps_left(self) -> Iterator[int]:
        """The numbers of the steps that are left, from 1 in a new run."""
        for step in range(self._progress.step + 1, self._settings.steps + 1):
            if self._sampled_enough:
                break
            yield step

    def sample(self, step: int) -> StepBatch:
        """The episodes of a step, played now with the newest weights or taken from ahead."""
        answers, taught = self.sampler.answers, len(self.team.teachers)
        what, read = ("sampling and reading", (READ,)) if taught else ("sampling", ())
        total = answers * (1 + taught / len(self.team.policies))
        with self._timed("sample"), self._part(f"step {step}", what, total, read):
            batch, self._position = self.run_async(self.sampler.batch(step))
        return batch

    def credit(self, batch: StepBatch) -> Credit:
        """The advantages of a step's rows, each compared with its group."""
        algorithms = self.runtime.algorithms
        with self._part(f"step {self._progress.step + 1}", "assigning credit"):
            rows, stats = with_divergences(batch.rows, self.team.trained, algorithms)
        averages = self._progress.averages
        credit = assign_credit_by_role(rows, self.sampler.group_key, algorithms, averages)
        if read := [each for of_role in batch.readings_by_role.values() for each in of_role]:
            stats["teacher_tokens"] = sum(len(reading.logp_N) for reading in read if reading)
            stats["teacher_unread"] = sum(reading is None for reading in read)
        return replace(credit, stats={**credit.stats, **stats})

    def sample_ahead(self, step: int) -> None:
        """With ``--rollout.overlap``, start to play ``step`` with the current weights, unless
        training ends before it."""
        if self.sampler.overlaps and not self._is_last(step - 1):
            self.run_async(self.sampler.begin(step))

    def update(self, batch: StepBatch, credit: Credit) -> dict[str, float]:
        """Let every trained role learn from its own rows; metrics by ``learner/ROLE/NAME``.

        Raises:
            UserError: weights or losses are not finite.
        """
        step = self._progress.step + 1

        def learned(role: str, trained: RoleLearner) -> dict[str, float]:
            try:
                return trained.update(*rows_of(batch, credit, role))
            except NotFinite as why:
                raise not_finite(self.run, role, step, why) from None

        def learn() -> dict[str, float]:
            return {
                f"learner/{role}/{name}": value
                for role, metrics in self.team.backend.learn(learned).items()
                for name, value in metrics.items()
            }

        rows = sum(row.role in self.team.trained for row in batch.rows)
        slow = self.runtime.slow
        shown = learning(self.console, f"step {step}", rows, slow=slow, bar=self._bar)
        with self._timed("update"), shown:
            # Episodes that are played ahead need the event loop meanwhile.
            return self.run_async(asyncio.to_thread(learn)) if self.sampler.is_ahead else learn()

    def record(
        self,
        step: int,
        batch: StepBatch,
        credit: Credit,
        learner_metrics: Mapping[str, float],
        logbook: Logbook,
    ) -> None:
        """Log the step, which counts as done from here on.

        Arguments as of :meth:`coterie.training.run.recorder.StepRecorder.log`.
        """
        recorder = self.runtime.recorder
        with self._timed("record"):
            recorder.log(step, batch, credit, learner_metrics, self._times, logbook)
            self._times.clear()  # what follows is in the next line
        recorder.report(step, batch, credit, learner_metrics)
        self._checkpointer.advance(
            step=step,
            cursor=self._position.cursor,
            difficulty=self._position.difficulty,
            averages=credit.averages,
        )

    def evaluate_between(self, step: int, logbook: Logbook) -> None:
        """Evaluate on the held-out problems and log the metrics, if it is due
        (``--eval.every``)."""
        if is_due(step, self.runtime.evaluate_every) and not self._is_last(step):
            with self._part(f"step {step}", "evaluating", self._examiner.expected("between")):
                outcomes = self.ask(self._examiner.examine())
            measured = self._examiner.estimate(outcomes, resamples=1)
            logbook.evaluation(step, {f"eval/{name}": m.value for name, m in measured.items()})

    def checkpoint(self, step: int) -> None:
        """Save a checkpoint, if it is due."""
        if is_due(step, self._settings.checkpoint_every) or self._is_last(step):
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the last whole step."""
        step, warmed = self._progress.step, self._progress.warmed
        title = f"step {step}" if step or not warmed else f"warmup step {warmed}"
        with self._timed("checkpoint"), self._part(title, "saving"):
            self._checkpointer.save()

    def evaluate(self, name: str) -> Outcomes | None:
        """Outcomes on the held-out problems, or those that the run has stored.

        Args:
            name: ``before``, ``warmed-up`` or ``after``; ``evaluation/NAME.json`` stores them.

        Returns:
            The outcomes; None without held-out problems.
        """
        observer = self.runtime.observer
        if name == "before":
            observer.look_at_settings()
        if not self._examiner.problems:
            return None
        answers, title = self._examiner.expected(name), f"evaluating {_MOMENTS[name]}"
        # No answers: an earlier start of the run has stored the outcomes.
        with stage(self.console, title, answers) if answers else nullcontext():
            outcomes = self.ask(self._examiner.evaluate(name))
        if failures := self._examiner.failures():
            tell(self.console, failures)
        observer.look_at_evaluation(self._examiner.episodes, f"evaluation {_MOMENTS[name]}: ")
        return outcomes

    def conclude(
        self, before: Outcomes | None, after: Outcomes | None, warmed_up: Outcomes | None = None
    ) -> None:
        """Write the trained models and the summary, and show the table.

        Args:
            before: outcomes before training.
            after: outcomes after training.
            warmed_up: outcomes between warm-up and training.
        """
        steps, tally = self._progress.step, self._checkpointer.tally
        with self._part(f"step {steps}", "keeping the trained models"):
            self.runtime.conclusion.write(before, after, warmed_up, steps=steps, tally=tally)

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work``, which samples from policies, with the newest weights."""

        async def with_newest_weights() -> T:
            await self.sampler.settle()
            async with self.team.answering():
                return await work

        return self.run_async(with_newest_weights())

    def run_async(self, work: Coroutine[Any, Any, T]) -> T:
        """Run ``work`` to its end on the run's own event loop."""
        return self.runtime.run_async(work)

    def __exit__(self, *raised: Any) -> None:
        self.runtime.closing.close()
        error = raised[1] if raised else None
        if isinstance(error, UserError) and not isinstance(error, Died):
            self.run.discard_unbegun()
        if isinstance(error, Died):
            goes_on = checkpoint_paths.latest(self.run.checkpoints) is not None
            then = "continues from its last checkpoint" if goes_on else "starts it again"
            raise UserError(f"{error}; --resume {self.run.path} {then}") from None

    @property
    def _progress(self) -> Progress:
        return self._checkpointer.progress

    @property
    def _sampled_enough(self) -> bool:
        return 0 < self._settings.tokens <= self._checkpointer.tally.learner_tokens

    def _is_last(self, step: int) -> bool:
        return step == self._settings.steps or self._sampled_enough

    def _part(
        self, step: str, what: str, answers: float = 0, read: tuple[Pulse, ...] = ()
    ) -> AbstractContextManager[None]:
        """Show the progress of a part of a step, if the models are slow; ``read`` counts beside the
        answers."""
        title, slow = f"{step}: {what}", self.runtime.slow
        pulses = Sum(ANSWERED, *read), Sum(ENDED, *read)
        return stage_of_step(self.console, title, answers, slow=slow, bar=self._bar, pulses=pulses)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self._times[phase] = time.perf_counter() - start


def open_session(settings: TrainSettings, problems: PreparedProblems) -> Session:
    """Start a new run, or continue one from its last checkpoint (the order of a resume is in
    :mod:`coterie.training.run.checkpointer`).

    Raises:
        UserError: a part cannot be loaded, started or restored, or a process of it dies.
    """
    try:
        return Session(build(settings, problems))
    except Died as error:
        raise UserError(
            f"{error}, while the run started; nothing is lost: give the same command again"
        ) from None

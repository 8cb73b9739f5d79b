"""Writes a step's metrics, episodes and transcripts, and reports what went wrong in it."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console

from coterie.agents.team.players import player_counters
from coterie.agents.team.team import Team
from coterie.algorithms import Credit
from coterie.experts.pool import last_words
from coterie.training.batch import StepBatch, advantages_by_row, token_bonuses_by_row
from coterie.training.config.run_settings import RunSettings
from coterie.training.run.directory import RunDirectory
from coterie.training.run.episode_records import episode_record, transcript
from coterie.training.run.log import Logbook
from coterie.training.run.role_failures import role_failures, why_no_signal
from coterie.training.run.sinks import open_sinks
from coterie.training.run.step_metrics import reward_metrics, rollout_metrics
from coterie.training.run.summary import Tally
from coterie.training.run.symptoms import Observer

_SIGNAL_STEP = 3
"""The step in which a role that never had a signal is reported."""


class StepRecorder:
    """Logs every step of a run."""

    def __init__(
        self,
        run: RunDirectory,
        team: Team,
        tally: Tally,
        observer: Observer,
        settings: RunSettings,
        tell: Callable[[str], None],
        *,
        resumed: bool,
    ) -> None:
        """
        Args:
            run: holds the logs.
            team: who plays.
            tally: counts the run's tokens.
            observer: reports symptoms in the answers.
            settings: which logs are written, and how often.
            tell: shows a sentence.
            resumed: whether the run has done steps before.
        """
        self._run, self._team, self._tally, self._observer = run, team, tally, observer
        self._settings, self._tell = settings, tell
        self._reported: set[str] = set()
        """Roles about which a sentence was shown."""
        self._without_signal = set[str]() if resumed else set(team.trained)
        """Trained roles that have had nothing to learn from so far."""

    def open_logbook(self, console: Console, first: int, measured: Sequence[str]) -> Logbook:
        """Open the log of the numbers of each step.

        Args:
            console: shows them.
            first: number of the first step.
            measured: names of metrics that the progress bar shows beside rewards.
        """
        return Logbook(
            self._run,
            console,
            first=first,
            last=self._settings.steps,
            headline=[*(f"reward/{role}" for role in self._team.trained), *measured],
            sinks=open_sinks(self._settings, self._run, self._tell),
        )

    def log(
        self,
        step: int,
        batch: StepBatch,
        credit: Credit,
        learner_metrics: Mapping[str, float],
        times: Mapping[str, float],
        logbook: Logbook,
    ) -> None:
        """Write the numbers and the episodes of ``step``.

        Args:
            step: from 1.
            batch: its episodes.
            credit: the advantage of each row.
            learner_metrics: by ``learner/ROLE/NAME``.
            times: seconds by phase.
            logbook: also shows the numbers.
        """
        trained = self._team.trained
        tokens = self._tally.add(batch.played, trained)
        metrics = {
            **reward_metrics(batch.played),
            **{f"credit/{name}": value for name, value in credit.stats.items()},
            **learner_metrics,
            **rollout_metrics(batch, tokens, self._tally),
            **player_counters(self._team.policies),
            **{f"time/{name}_s": seconds for name, seconds in times.items()},
        }
        logbook.step(step, metrics)
        advantages = advantages_by_row(batch.rows, credit)
        if self._settings.episodes_log:
            bonuses = token_bonuses_by_row(batch.rows, trained)
            self._run.append(
                "episodes.jsonl", [episode_record(e, advantages, bonuses) for e in batch.episodes]
            )
        if is_due(step, self._settings.transcripts_every):
            logbook.text(step, "transcript", transcript(batch.episodes[0]))
            logbook.episodes(step, batch.episodes, advantages)

    def report(
        self, step: int, batch: StepBatch, credit: Credit, learner_metrics: Mapping[str, float]
    ) -> None:
        """Report what keeps a role from learning or answering, once for each role.

        Arguments as of :meth:`log`.
        """
        trained = self._team.trained
        rows = batch.played
        frozen = self._team.policies.keys() - trained
        said = {role: last_words(self._team.policies[role]) for role in frozen}
        sentences = role_failures(rows, learner_metrics, trained=trained, frozen=said)
        self._without_signal -= {
            row.role for row, advantage in zip(batch.rows, credit.advantage_B) if advantage
        }
        # Distillation moves weights without any advantage.
        self._without_signal -= {
            role
            for role in self._without_signal
            if learner_metrics.get(f"learner/{role}/grad_norm")
        }
        if step == _SIGNAL_STEP:
            sentences |= why_no_signal(rows, self._without_signal)
        for role in sorted(sentences.keys() - self._reported):
            self._tell(f"step {step}: {role} {sentences[role]}")
        self._reported |= sentences.keys()
        self._observer.look_at(batch.episodes, f"step {step}: ", batch.readings_by_role)


def is_due(step: int, every: int) -> bool:
    """Whether work of every ``every`` steps is due after ``step``; 0: never."""
    return every > 0 and step % every == 0

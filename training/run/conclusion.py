"""The end of a run: its models, ``summary.json`` and the final table.

The rows of the table come from the environment's evaluation, the columns from
:func:`coterie.evaluation.run_table.comparison`.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console

from coterie.agents.team.team import Team
from coterie.evaluation.evaluation import Outcomes
from coterie.evaluation.run_table import comparison
from coterie.evaluation.table import without_zero
from coterie.training.examiner import Examiner
from coterie.training.run.baseline import Baseline
from coterie.training.run.directory import METRICS, RunDirectory
from coterie.training.run.step_metrics import paid_shares
from coterie.training.run.summary import Tally, places_table, summary


@dataclass(frozen=True)
class Conclusion:
    """Writes and shows the results of a run."""

    run: RunDirectory
    console: Console
    team: Team
    examiner: Examiner
    config: Mapping[str, Any]
    """Every setting, as JSON data."""
    baseline: Baseline
    """Its figures stand in the table's last column."""
    dropped: int
    """Number of training problems that were left out because their prompts are too long."""
    terms: Collection[str] | None
    """Reward terms that have a weight; None: all terms."""

    def write(
        self,
        before: Outcomes | None,
        after: Outcomes | None,
        warmed_up: Outcomes | None,
        *,
        steps: int,
        tally: Tally,
    ) -> None:
        """Write the trained models and the summary, and show the table.

        Args:
            before: outcomes of the evaluation before training; None: nothing was evaluated.
            after: of the one after training.
            warmed_up: of the one between the warm-up and reward training.
            steps: number of training steps.
            tally: their tokens and seconds.
        """
        for role, trained in self.team.trained.items():
            self.run.write_model(role, trained.export)
        estimate = self.examiner.estimate
        first, between, last = estimate(before), estimate(warmed_up), estimate(after)
        wall_s, baseline, backend = tally.wall_s(), self.baseline, self.team.backend
        spent = backend.spent()
        paid = paid_shares(self.run.read_log(METRICS), self.team.trained, self.terms)
        facts: dict[str, Any] = {
            "steps": steps,
            "dropped_prompts": self.dropped,
            "config": dict(self.config),
        }
        optional = {
            "alone": asdict(baseline) if baseline.metrics else None,
            "places": backend.places(),
            "spent": spent,
            "paid": paid,
        }
        facts |= {name: fact for name, fact in optional.items() if fact}
        result = summary(first, last, wall_s, tally.tokens, between) | facts
        self.run.write_json("summary.json", result)
        if last:
            rows = self.examiner.evaluation.table(self.examiner.roles, first, last)
            self.console.print(comparison(first, last, rows, baseline.metrics, between))
            if baseline.metrics:
                tell(self.console, baseline.sentence)
        if paid:
            tell(self.console, paid_sentence(paid))
        if spent:
            self.console.print(places_table(spent))
        tell(
            self.console,
            f"{steps} step{'s' * (steps != 1)}, {tally.tokens:,} sampled tokens, {wall_s:.0f} s; "
            f"all of it is in {self.run.path}",
        )


def paid_sentence(paid: Mapping[str, Mapping[str, float]]) -> str:
    """The line below the table: the share of each role's answers that a reward term paid; ``-``
    for a role that has no such term.

    >>> paid_sentence({"format": {"alice": 0.25, "bob": 0.5}, "hint": {"bob": 0.5}})
    'share of answers paid by term, alice bob: format .25 .50, hint - .50 (last tenth of the steps)'
    """
    roles = dict.fromkeys(role for by_role in paid.values() for role in by_role)
    terms = ", ".join(
        " ".join((term, *(without_zero(by_role[r], 2) if r in by_role else "-" for r in roles)))
        for term, by_role in paid.items()
    )
    return f"share of answers paid by term, {' '.join(roles)}: {terms} (last tenth of the steps)"


def tell(console: Console, sentence: str) -> None:
    """Show a sentence literally, because text of models and users is not markup."""
    console.print(sentence, markup=False, soft_wrap=True)

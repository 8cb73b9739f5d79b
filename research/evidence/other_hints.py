"""Peer distillation with the hint of *another* problem of the step: a control of the evidence.

    python research/evidence/other_hints.py --env evidence.other_hints:SPEC --algo gspo \
        --env.hint-of other-same --run-dir runs/other

The environment is ``core-teaching``; it also reports the hint that each role could have. This
program is the loop of ``train.py`` with a line more: after the sampling of a step the rows that
are to be read again get another problem's hint. It takes the flags of ``train.py``.
"""

# A context is what stands before a row's first sampled token.

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

if __name__ == "__main__":
    ROOT = Path(__file__).resolve().parents[2]
    sys.path[:1] = [str(ROOT), str(ROOT / "research")]
    os.environ.setdefault("OMP_NUM_THREADS", "1")

from coterie.datatypes import Episode, Problem, Trajectory
from coterie.envs.core_teaching.environment import CoreTeachingEnv
from coterie.envs.core_teaching.hints import hints_for
from coterie.envs.core_teaching.settings import CoreTeachingSettings
from coterie.envs.core_teaching.spec import SPEC as CORE
from coterie.envs.prompts import strategy_prompt
from coterie.envs.turns import Conversation
from coterie.training.batch import StepBatch

HintOf = Literal["own", "other-same", "other-cross"]
OFFERS = "offers"
"""Key of the episode's info: role -> [its peer's hint, the peer's share of right traces]."""
ASKED = "asked"
"""Key of the episode's info: [question, kind of its answer, its family]."""


@dataclass(frozen=True)
class OtherSettings(CoreTeachingSettings):
    """The settings of ``core-teaching``, with one for whose hint is read."""

    hint_of: HintOf = "own"
    """own: of the problem itself, as core-teaching does it; other-same: of another problem of the
    step, of the same family; other-cross: of the other family."""


class OtherHintsEnv(CoreTeachingEnv):
    """``core-teaching``, which reports the hint that there is for each role, wanted or not."""

    settings_class = OtherSettings

    def _reread_hints(self, problem: Any, traces: Any, weights: Any, step: int) -> Any:
        # By correctness alone, the reward of these runs, right traces are equally good.
        hints = hints_for(
            *(traces, [1.0] * len(traces), problem, self.settings, self.meters),
            lambda text: self.scorer.check(text, problem).correct,
            step=step,
            among="peer",
        )
        share = {
            trace.agent: sum(t.verdict.correct for t in traces if t.role == trace.role)
            / sum(t.role == trace.role for t in traces)
            for trace in traces
        }
        self._offers = {role: [hint.text, share[hint.teacher]] for role, hint in hints.items()}
        return super()._reread_hints(problem, traces, weights, step)

    def conversation(self, problem: Any, options: Any, random: Any) -> Conversation:
        self._offers: dict[str, list[Any]] = {}
        outcome = yield from super().conversation(problem, options, random)
        asked = [problem.question, problem.kind, family(problem)]
        episode = {**outcome.episode, OFFERS: self._offers, ASKED: asked}
        return replace(outcome, episode=episode)


SPEC = replace(
    CORE,
    name="evidence.other_hints:SPEC",
    factory=OtherHintsEnv,
    settings=OtherSettings,
    baseline=None,
    presets=None,
    tables=None,
)


def family(problem: Problem) -> str:
    """The problem's category; without one what its question needs: the signs ``+ -``, the signs
    ``@ #``, names of constants."""
    needs = {"+-": "+-", "@#": "@#", "names": "αβγδεζηθικλμνξοπρστυφχψω"}
    marked = (kind for kind, marks in needs.items() if {*marks} & {*problem.question})
    return problem.meta.get("category") or " ".join(marked)


def other_hint(episodes: Sequence[Episode], place: int, role: str, hint_of: HintOf) -> str | None:
    """The hint for ``role`` on the problem at ``place`` of a step; None if there is none.

    Among the other problems of the family asked for with a right trace of the peer: the next one,
    round about, on which the peer is right in at least half of its traces; else the one with the
    largest share of them.
    """
    own = episodes[place]
    if hint_of == "own":
        return own.info[OFFERS][role][0]
    following = [*episodes[place + 1 :], *episodes[:place]]
    others = [
        episode.info[OFFERS][role]
        for episode in following
        if role in episode.info[OFFERS]
        if episode.problem_id != own.problem_id
        if (episode.info[ASKED][2] == own.info[ASKED][2]) == (hint_of == "other-same")
    ]
    # max keeps the first of equals.
    return max(others, key=lambda offer: min(offer[1], 0.5))[0] if others else None


def with_other_hints(
    batch: StepBatch, hint_of: HintOf, context: Callable[[str, Problem, str], Any]
) -> tuple[StepBatch, Mapping[str, tuple[int, int]]]:
    """The step with other hints in the contexts of its rereading.

    Args:
        batch: of one step.
        hint_of: whose hint.
        context: role, problem and hint -> the ids of that prompt.

    Returns:
        The batch; and role -> (rows that core-teaching reads again, those of them with a hint).
    """
    changed: dict[int, Trajectory] = {}
    counts: dict[str, tuple[int, int]] = {}
    for place, episode in enumerate(batch.episodes):
        for row in episode.trajectories:
            if row.reread_after is None:
                continue
            hint = other_hint(batch.episodes, place, row.role, hint_of)
            question, kind, _ = episode.info[ASKED]
            problem = Problem(episode.problem_id, question, "", kind)
            after = None if hint is None else context(row.role, problem, hint)
            changed[id(row)] = replace(row, reread_after=after)
            asked, shown = counts.get(row.role, (0, 0))
            counts[row.role] = asked + 1, shown + (hint is not None)
    episodes = [
        replace(e, trajectories=tuple(changed.get(id(row), row) for row in e.trajectories))
        for e in batch.episodes
    ]
    rows = [changed.get(id(row), row) for row in batch.rows]
    return replace(batch, episodes=episodes, rows=rows), counts


def main(argv: Sequence[str]) -> int:
    """Train; see ``train.py``, whose loop this is."""
    import json

    import numpy as np

    from coterie.cli.command_line import parse
    from coterie.training.config.preflight import preflight
    from coterie.training.session import open_session

    settings = parse(argv)
    own: Any = settings.env

    with open_session(settings, preflight(settings)) as session:

        def context(role: str, problem: Problem, hint: str) -> Any:
            ids = session.team.codecs[role].open(strategy_prompt(problem, own.prompt_style, hint))
            return np.asarray(ids, dtype=np.int64)

        before = session.evaluate("before")
        with session.open_logbook() as logbook:
            for step in session.steps_left():
                batch, counts = with_other_hints(session.sample(step), own.hint_of, context)
                credit = session.credit(batch)
                metrics = session.update(batch, credit)
                session.record(step, batch, credit, metrics, logbook)
                with (session.run.path / "other_hints.jsonl").open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"step": step, **counts}) + "\n")
                session.checkpoint(step)
        session.conclude(before, session.evaluate("after"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

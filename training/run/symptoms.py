"""Symptoms in the answers of a model that does not learn, and the flags that help.

The thresholds are here, and in cut_off.py. Each sentence links docs/my-model-does-not-learn.md, or
the page of what it is about.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from coterie.agents.models.number_format import native_bfloat16, native_int8, number_format_of
from coterie.agents.models.size import is_tiny
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms.batching import by_agent
from coterie.datatypes import Episode, Reading, Trajectory
from coterie.training.config.model_defaults import has_large, rate_of
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.cut_off import FEWEST_ANSWERS, PAGE, cut_off, is_cut_off, limit_of

FEWEST_GROUPS = 8
"""Fewest groups for which their signal is reported."""
NONE_STATED = 0.5
"""Smallest share of answers without a stated answer that is reported."""
ALIKE = 0.9
"""Smallest share of groups with equal answers that is reported."""
UNREAD = 0.05
"""Share of right tries with a hint below which the model does not read hints."""
UNREADABLE = 0.1
"""Smallest share of rows unreadable for their teacher that is reported."""
TEACHERS = "docs/algorithms.md#distillation-from-a-teacher"
TOO_FAST = 5.0
"""Multiple of the usual learning rate at which a model breaks."""


@dataclass(frozen=True)
class AnswerCounts:
    """Counts over the answers of a step or an evaluation."""

    answers: int = 0
    unstated: int = 0
    """Answers in which the checker finds no stated answer."""
    broken_off: int = 0
    """Answers that were cut off at the limit of tokens."""
    groups: int = 0
    """Groups of at least two answers to one problem."""
    all_right: int = 0
    all_wrong: int = 0
    hinted: int = 0
    """Tries behind a hint after failed tries."""
    rescued: int = 0
    """Those of them that are right."""


def count(
    episodes: Iterable[Episode],
    roles: Collection[str],
    group_key: str,
    taught: Collection[str] = (),
    *,
    limit: int,
) -> AnswerCounts:
    """Count the answers of ``roles``. An agent has one answer, however many rows its contexts made.

    Args:
        episodes: of a step or an evaluation.
        roles: those that learn.
        group_key: key of ``row.groups`` that names the groups to compare; rows without it are
            grouped by problem and role.
        taught: roles that learn from a teacher, too. Groups of theirs alone need no different
            answers, and are not counted.
        limit: of tokens in an answer.
    """
    agents: list[tuple[str, list[Trajectory]]] = []
    for episode in episodes:
        learning = [row for row in episode.trajectories if row.role in roles and row.trainable]
        agents += [
            (episode.problem_id, [learning[i] for i in indices]) for indices in by_agent(learning)
        ]
    # Each row of an agent has all of its measurements.
    rows = [(problem, contexts[0]) for problem, contexts in agents]
    groups, untaught = defaultdict[Any, list[bool]](list), set[Any]()
    for problem, row in rows:
        if "correct" in row.info:
            group = row.groups.get(group_key, (problem, row.role))
            groups[group].append(bool(row.info["correct"]))
            if row.role not in taught:
                untaught.add(group)
    compared = [groups[group] for group in groups if group in untaught and len(groups[group]) > 1]
    return AnswerCounts(
        answers=len(rows),
        unstated=sum(_states_none(row) for _, row in rows),
        broken_off=sum(any(is_cut_off(row, limit) for row in contexts) for _, contexts in agents),
        groups=len(compared),
        all_right=sum(map(all, compared)),
        all_wrong=sum(not any(right) for right in compared),
        hinted=sum(bool(row.info.get("eligible")) for _, row in rows),
        rescued=sum(bool(row.info.get("rescued")) for _, row in rows),
    )


def _states_none(row: Trajectory) -> bool:
    return row.info.get("answer", "") is None


def symptoms(
    counts: AnswerCounts, settings: TrainSettings, *, evaluated: bool = False
) -> dict[str, str]:
    """Symptom -> one sentence about it, with the flag that helps.

    Args:
        counts: of a step or an evaluation.
        settings: of the run.
        evaluated: whether it was an evaluation.
    """
    sentences: dict[str, str] = {}
    if counts.answers >= FEWEST_ANSWERS and counts.unstated >= NONE_STATED * counts.answers:
        sentences["unstated"] = (
            f"the checker finds no final answer in {counts.unstated} of {counts.answers} "
            f"responses: {_form_advice(settings)} ({PAGE}#format)"
        )
    limit, flag = limit_of(settings.env, evaluated=evaluated)
    if sentence := cut_off(counts.broken_off, counts.answers, limit, flag):
        sentences["broken off"] = sentence
    if counts.hinted >= FEWEST_ANSWERS and counts.rescued < UNREAD * counts.hinted:
        sentences["unread"] = (
            f"only {counts.rescued} of {counts.hinted} tries with a hint are right, so hints teach "
            f"nothing: put hints into half of the warm-up ({PAGE}#hints)"
        )
    alike = counts.all_right + counts.all_wrong
    # A role's own weights, after a right trace, also teach where all answers are right.
    rereads = any(each.distillation.from_itself for each in settings.learned_by.values())
    if (
        counts.groups >= FEWEST_GROUPS
        and alike >= ALIKE * counts.groups
        and not (rereads and counts.all_right)
    ):
        sentences["alike"] = (
            f"{alike} of {counts.groups} groups have no signal ({counts.all_right} all right, "
            f"{counts.all_wrong} all wrong): {_level_advice(counts, settings)} ({PAGE}#signal)"
        )
    return sentences


def unreadable(readings: Mapping[str, Sequence[Reading | None]]) -> dict[str, str]:
    """Symptom -> one sentence about a teacher that cannot read the rows of its pupil.

    Args:
        readings: role -> what its teacher has read of each row; None: it cannot read the row.
    """
    sentences: dict[str, str] = {}
    for role, of_rows in readings.items():
        unread = sum(reading is None for reading in of_rows)
        if unread and unread >= UNREADABLE * len(of_rows):
            sentences[f"unreadable {role}"] = (
                f"the teacher of {role} cannot read {unread} of {len(of_rows)} rows, mostly "
                f"because they are too long for it: lower --agents.{role}.context, or take another "
                f"teacher ({TEACHERS})"
            )
    return sentences


def at_start(settings: TrainSettings) -> dict[str, str]:
    """Symptom -> one sentence about settings with which models that are not tiny learn nothing, or
    slowly."""
    sentences: dict[str, str] = {}
    if not has_large(settings.agents):
        return sentences
    for role, agent in settings.agents.items():
        if not agent.trained or is_tiny(agent.model, agent.revision):
            continue
        usual, rate = rate_of([agent]), settings.learner_of(role).lr
        if rate > TOO_FAST * usual:
            # One sentence for a flag of the whole team.
            sentences[f"rate {agent.learner_at(role)}"] = (
                f"{agent.learner_at(role)}lr is {rate:g}, which breaks models of this size: "
                f"{usual:g} is usual ({PAGE}#learning-rate)"
            )
    slow = [
        role
        for role, agent in settings.agents.items()
        if agent.dtype == "float32" and agent.device in ("auto", "cpu") and native_bfloat16()
    ]
    if slow:
        flags = " ".join(f"--agents.{role}.dtype auto" for role in slow)
        sentences["float32"] = (
            f"{_compute(slow)} in float32 on a processor that is faster in bfloat16: "
            f"{flags} ({PAGE}#speed)"
        )
    if slow := [*_faster_in_int8(settings.agents)]:
        flags = " ".join(f"--agents.{role}.dtype int8" for role in slow)
        sentences["int8"] = (
            f"{_compute(slow)} in float32 on a processor that is faster in 8 bits: {flags} "
            f"({PAGE}#speed)"
        )
    return sentences


def _compute(roles: Sequence[str]) -> str:
    return f"{' and '.join(roles)} compute{'s' * (len(roles) == 1)}"


def _faster_in_int8(agents: Mapping[str, AgentSettings]) -> Iterator[str]:
    """Roles whose frozen weights would be multiplied faster in 8 bits."""
    if native_bfloat16() or not native_int8():
        return
    for role, agent in local_models(agents).items():
        spec = model_spec(agent)
        full = agent.trained and spec.lora is None
        chosen = number_format_of(spec, trained=agent.trained)
        plain = chosen.name == "float32" and chosen.codes is None
        if (
            agent.dtype == "auto"
            and plain
            and not full
            and not is_tiny(agent.model, agent.revision)
        ):
            yield role


def _form_advice(settings: TrainSettings) -> str:
    style = getattr(settings.env, "prompt_style", None)
    if style is not None and style != "answer":
        return "--env.prompt-style answer asks for one"
    return "warm the model up on worked solutions, --warmup.steps 100"


def _level_advice(counts: AnswerCounts, settings: TrainSettings) -> str:
    source = " ".join(settings.problems.sources)
    if counts.all_right > counts.all_wrong:
        return f"name harder problems than --problems.train {source}"
    return (
        f"name easier problems than --problems.train {source}, or warm the model up, "
        "--warmup.steps 100"
    )


class Observer:
    """Reports what keeps a run's team from learning, each symptom once."""

    def __init__(
        self,
        settings: TrainSettings,
        roles: Collection[str],
        group_key: str,
        tell: Callable[[str], None],
    ) -> None:
        """
        Args:
            settings: of the run.
            roles: those that learn.
            group_key: names the groups in which answers are compared.
            tell: shows a sentence.
        """
        self._settings, self._roles, self._group_key = settings, roles, group_key
        self._tell, self._reported = tell, set[str]()

    def look_at_settings(self) -> None:
        """Report settings that keep models from learning, before anything is sampled."""
        self._report(at_start(self._settings), "")

    def look_at(
        self,
        episodes: Iterable[Episode],
        where: str = "",
        readings: Mapping[str, Sequence[Reading | None]] = MappingProxyType({}),
    ) -> None:
        """Report symptoms in a step.

        Args:
            episodes: of the step.
            where: begins each sentence.
            readings: role -> what its teacher has read of each row; None: it cannot read the row.
        """
        taught = [role for role, each in readings.items() if any(each)]
        limit, _ = limit_of(self._settings.env, evaluated=False)
        counts = count(episodes, self._roles, self._group_key, taught, limit=limit)
        self._report(symptoms(counts, self._settings) | unreadable(readings), where)

    def look_at_evaluation(self, episodes: Iterable[Episode], where: str) -> None:
        """Report symptoms in an evaluation; ``where`` begins each sentence."""
        learned_by = self._settings.learned_by
        taught = [role for role, each in learned_by.items() if each.distillation.teaches]
        limit, _ = limit_of(self._settings.env, evaluated=True)
        counts = count(episodes, self._roles, self._group_key, taught, limit=limit)
        sentences = symptoms(counts, self._settings, evaluated=True)
        # Answers that were cut off make the result of every evaluation worse, not only the first.
        self._reported.discard("broken off")
        self._report(sentences, where)

    def _report(self, sentences: Mapping[str, str], where: str) -> None:
        for name in sorted(sentences.keys() - self._reported):
            self._tell(f"{where}{sentences[name]}")
        self._reported |= sentences.keys()

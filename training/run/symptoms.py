"""Symptoms in the answers of a model that does not learn, and the flags that help.

The thresholds are here, and in cut_off.py. Each sentence links docs/my-model-does-not-learn.md.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coterie.agents.models.number_format import native_bfloat16
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms.batching import by_agent
from coterie.datatypes import Episode, Trajectory
from coterie.training.config.model_defaults import fitting, rate_of
from coterie.training.config.train_settings import TrainSettings
from coterie.training.run.cut_off import FEWEST_ANSWERS, PAGE, cut_off, limit_of

FEWEST_GROUPS = 8
NONE_STATED = 0.5
"""Share of the answers from which a symptom is reported, as the one below."""
ALIKE = 0.9
UNREAD = 0.05
"""Share of right tries behind a hint below which hints are not followed."""
TOO_FAST = 5.0
"""Times the usual learning rate at which a model breaks."""


@dataclass(frozen=True)
class AnswerCounts:
    """Counts over the answers of a step or an evaluation."""

    asked: int = 0
    unstated: int = 0
    """Answers in which the checker reads none."""
    broken_off: int = 0
    """Answers that ended at the limit of tokens."""
    groups: int = 0
    """Groups of at least two answers to one problem."""
    all_right: int = 0
    all_wrong: int = 0
    hinted: int = 0
    """Tries behind a hint, after failures, that a right answer makes rescues."""
    rescued: int = 0


def count(episodes: Iterable[Episode], roles: Collection[str], group_key: str) -> AnswerCounts:
    """Count the answers of ``roles``; those of the same ``row.groups[group_key]`` are compared, or
    without that key those of the same problem and role. An agent has one answer, however many rows
    its contexts made."""
    agents: list[tuple[str, list[Trajectory]]] = []
    for episode in episodes:
        own = [row for row in episode.trajectories if row.role in roles and row.trainable]
        agents += [(episode.problem_id, [own[i] for i in places]) for places in by_agent(own)]
    # What an agent is measured by stands in each of its rows.
    rows = [(problem, contexts[0]) for problem, contexts in agents]
    groups: dict[Any, list[bool]] = defaultdict(list)
    for problem, row in rows:
        if "correct" in row.info:
            group = row.groups.get(group_key, (problem, row.role))
            groups[group].append(bool(row.info["correct"]))
    compared = [right for right in groups.values() if len(right) > 1]
    return AnswerCounts(
        asked=len(rows),
        unstated=sum(_states_none(row) for _, row in rows),
        broken_off=sum(
            any("length" in row.finish[-1:] for row in contexts) for _, contexts in agents
        ),
        groups=len(compared),
        all_right=sum(map(all, compared)),
        all_wrong=sum(not any(right) for right in compared),
        hinted=sum(bool(row.info.get("eligible")) for _, row in rows),
        rescued=sum(bool(row.info.get("rescued")) for _, row in rows),
    )


def _states_none(row: Trajectory) -> bool:
    return row.info.get("answer", "") is None


@dataclass(frozen=True)
class Subject:
    """The settings that the sentences are about."""

    agents: Mapping[str, AgentSettings]
    lr: float
    """The learning rate."""
    env: Any
    """The environment's own settings, or None."""
    source: str
    """Names the training problems."""
    distils: bool
    """Whether traces are read again."""
    large: bool
    """Whether a model has more than five million weights."""

    @classmethod
    def of(cls, settings: TrainSettings) -> "Subject":
        """The part of a run's settings that the sentences need."""
        return cls(
            settings.agents,
            settings.learner.lr,
            settings.env,
            settings.problems.train,
            settings.algo.distillation.beta > 0,
            bool(fitting(settings, settings.agents)),
        )


def symptoms(
    answers: AnswerCounts, settings: Subject, *, evaluated: bool = False
) -> dict[str, str]:
    """Name -> one sentence about these answers, with the flag that mends it.

    Args:
        answers: counts over a step or an evaluation.
        settings: the run's.
        evaluated: whether it was an evaluation.
    """
    sentences: dict[str, str] = {}
    if answers.asked >= FEWEST_ANSWERS and answers.unstated >= NONE_STATED * answers.asked:
        sentences["unstated"] = (
            f"{answers.unstated} of {answers.asked} answers state none that the checker reads: "
            f"{_form(settings)} ({PAGE}#format)"
        )
    limit, flag = limit_of(settings.env, evaluated=evaluated)
    if sentence := cut_off(answers.broken_off, answers.asked, limit, flag):
        sentences["broken off"] = sentence
    if answers.hinted >= FEWEST_ANSWERS and answers.rescued < UNREAD * answers.hinted:
        sentences["unread"] = (
            f"{answers.rescued} of {answers.hinted} tries behind a hint are right, so hints teach "
            f"nothing: let half of the warm-up have hints ({PAGE}#hints)"
        )
    alike = answers.all_right + answers.all_wrong
    # Where traces are read again, groups that are alike teach something too.
    if (
        answers.groups >= FEWEST_GROUPS
        and alike >= ALIKE * answers.groups
        and not (settings.distils and answers.all_right)
    ):
        sentences["alike"] = (
            f"{alike} of {answers.groups} groups have no signal ({answers.all_right} all right, "
            f"{answers.all_wrong} all wrong): {_level(answers, settings)} ({PAGE}#signal)"
        )
    return sentences


def at_start(settings: Subject) -> dict[str, str]:
    """Name -> one sentence about settings with which a model above five million weights learns
    nothing, or slowly."""
    sentences: dict[str, str] = {}
    if not settings.large:
        return sentences
    learning = [agent for agent in settings.agents.values() if agent.trained]
    usual, rate = rate_of(learning), settings.lr
    if rate > TOO_FAST * usual:
        sentences["rate"] = (
            f"--learner.lr is {rate:g}, which breaks models of this size: {usual:g} is usual "
            f"({PAGE}#learning-rate)"
        )
    slow = [
        role
        for role, agent in settings.agents.items()
        if agent.dtype == "float32" and agent.device in ("auto", "cpu") and native_bfloat16()
    ]
    if slow:
        flags = " ".join(f"--agents.{role}.dtype auto" for role in slow)
        sentences["float32"] = (
            f"{' and '.join(slow)} compute in float32 on a processor that is faster in bfloat16: "
            f"{flags} ({PAGE}#speed)"
        )
    return sentences


def _form(settings: Subject) -> str:
    style = getattr(settings.env, "prompt_style", None)
    if style is not None and style != "answer":
        return f"--env.prompt-style is {style}; answer asks for it"
    return "warm the model up on worked solutions, --warmup.steps 100"


def _level(answers: AnswerCounts, settings: Subject) -> str:
    source = settings.source
    if answers.all_right > answers.all_wrong:
        return f"name harder problems than --problems.train {source}"
    return (
        f"name easier problems than --problems.train {source}, or warm the model up, "
        "--warmup.steps 100"
    )


class Observer:
    """Reports what keeps a run's team from learning, each symptom once."""

    def __init__(
        self,
        settings: Subject,
        roles: Collection[str],
        group_key: str,
        tell: Callable[[str], None],
    ) -> None:
        """Args:
        settings: what the sentences are about.
        roles: those that learn.
        group_key: names the groups in which answers are compared.
        tell: shows a sentence.
        """
        self._settings, self._roles, self._group_key = settings, roles, group_key
        self._tell, self._said = tell, set[str]()

    def look_at_settings(self) -> None:
        """Report settings that keep models from learning; before anything is sampled."""
        self._say(at_start(self._settings), "")

    def look_at(self, episodes: Iterable[Episode], where: str = "") -> None:
        """Report symptoms in the ``episodes`` of a step, named by ``where``."""
        answers = count(episodes, self._roles, self._group_key)
        self._say(symptoms(answers, self._settings), where)

    def look_at_evaluation(self, episodes: Iterable[Episode], where: str) -> None:
        """Report symptoms in an evaluation, and answers that were cut off in each: they make its
        result worse."""
        answers = count(episodes, self._roles, self._group_key)
        sentences = symptoms(answers, self._settings, evaluated=True)
        self._said.discard("broken off")
        self._say(sentences, where)

    def _say(self, sentences: Mapping[str, str], where: str) -> None:
        for name in sorted(sentences.keys() - self._said):
            self._tell(f"{where}{sentences[name]}")
        self._said |= sentences.keys()

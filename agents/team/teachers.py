"""Teachers: models that read the tokens of roles that learn from their probabilities
(:class:`coterie.algorithms.algorithm.Distillation`)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coterie.agents.models.context import context_of
from coterie.agents.models.load_tokenizer import load_tokenizer
from coterie.agents.models.number_format import number_format_of
from coterie.agents.team.model_specs import checked_spec, model_spec, pin_commits
from coterie.agents.team.players import SEAT
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm
from coterie.algorithms.algorithm import Distillation
from coterie.algorithms.role_algorithms import RoleAlgorithms
from coterie.datatypes import Trajectory, UserError
from coterie.experts.naming import is_player

_TEACHER = f"{SEAT}teacher"


def teacher_seats(
    agents: Mapping[str, AgentSettings], algorithms: Mapping[str, Algorithm]
) -> dict[str, str]:
    """Return role -> name of the model that teaches it: a frozen role that computes the same, or
    one of :func:`teacher_models`.

    Args:
        agents: all roles.
        algorithms: role -> its algorithm, for roles that learn.
    """
    seats: dict[str, str] = {}
    apart: dict[tuple[str, str | None], str] = {}
    for role, algorithm in algorithms.items():
        if algorithm.distillation.teacher:
            pupil, teacher = agents[role], _apart(agents[role], algorithm.distillation)
            played = (name for name, agent in agents.items() if _reads_as(agent, teacher, pupil))
            model = teacher.model, teacher.revision
            seats[role] = next(played, "") or apart.setdefault(model, f"{role}{_TEACHER}")
    return seats


def _reads_as(player: AgentSettings, teacher: AgentSettings, pupil: AgentSettings) -> bool:
    """Whether a role's model reads the rows of ``pupil`` as a ``teacher`` that plays no role.

    How the role is sampled, its chat template and its system message do not matter to a reader.
    """
    same_model = (player.model, player.revision) == (teacher.model, teacher.revision)
    if player.trained or not same_model:
        return False
    whole = player.context is None or (pupil.context or math.inf) <= player.context
    return whole and _computes_alike(player, teacher)


def _computes_alike(player: AgentSettings, teacher: AgentSettings) -> bool:
    if player.dtype in ("auto", "nf4"):
        return player.dtype == teacher.dtype
    own, other = (number_format_of(model_spec(settings)) for settings in (player, teacher))
    return (own.name, own.codes) == (other.name, other.codes)


def only_teaches(name: str) -> bool:
    """Whether a model of this name is one of :func:`teacher_models`."""
    return name.endswith(_TEACHER)


def teacher_models(
    agents: Mapping[str, AgentSettings], algorithms: Mapping[str, Algorithm]
) -> dict[str, AgentSettings]:
    """Return name -> model of the teachers that play no role; on the device of their pupil.

    Arguments as of :func:`teacher_seats`.
    """
    models: dict[str, AgentSettings] = {}
    for role, seat in teacher_seats(agents, algorithms).items():
        if seat not in agents:
            models.setdefault(seat, _apart(agents[role], algorithms[role].distillation))
    return models


def with_commit(algorithm: Algorithm) -> Algorithm:
    """``algorithm``, whose teacher from the hub has its commit as revision, because branches
    move."""
    distillation = algorithm.distillation
    if not distillation.teacher:
        return algorithm
    teacher = pin_commits({"": _apart(AgentSettings(""), distillation)})[""]
    pinned = replace(distillation, teacher_revision=teacher.revision or "")
    return replace(algorithm, distillation=pinned)


def _apart(pupil: AgentSettings, distillation: Distillation) -> AgentSettings:
    """The settings of a teacher that plays no role. It reads tokens, so it needs no template."""
    return AgentSettings(
        distillation.teacher,
        trained=False,
        revision=distillation.teacher_revision or None,
        chat="plain",
        device=pupil.device,
        engine_device=pupil.engine_device,
    )


def check_teachers(agents: Mapping[str, AgentSettings], algorithms: RoleAlgorithms) -> None:
    """Check every teacher without reading weights.

    Args:
        agents: all roles, whose models have been checked.
        algorithms: the algorithm of each role.

    Raises:
        UserError: a teacher is missing or unusable, or cannot read the tokens of its pupil.
    """
    learned = {role: algorithms.of(role) for role, agent in agents.items() if agent.trained}
    taught = {role: a.distillation.teacher for role, a in learned.items() if a.distillation.teacher}
    for role, teacher in taught.items():
        flag = f"{algorithms.flag(role, 'distillation.teacher')} {teacher}"
        if is_player(teacher):
            raise UserError(
                f"{flag} gives no probabilities of the tokens of {role}: name a model that can be "
                "loaded here"
            )
    models = teacher_models(agents, learned)
    for role, seat in teacher_seats(agents, learned).items():
        flag = algorithms.flag(role, "distillation.teacher")
        if seat in models:
            _check_model(models[seat], flag)
        _check_pair(role, agents[role], {**agents, **models}[seat], f"{flag} {taught[role]}")


def _check_model(teacher: AgentSettings, flag: str) -> None:
    """Refuse a teacher that cannot be loaded."""
    trust = "take a teacher without, or have a frozen role play it that trusts it"
    try:
        checked_spec(teacher, trust=trust)
    except UserError as error:
        raise UserError(f"{flag}: {error}") from None


def _check_pair(role: str, pupil: AgentSettings, teacher: AgentSettings, flag: str) -> None:
    """Refuse a teacher that cannot read what its pupil may write."""
    own, of_teacher = model_spec(pupil), model_spec(teacher)
    ids = load_tokenizer(of_teacher).get_vocab()
    if any(ids.get(token) != number for token, number in load_tokenizer(own).get_vocab().items()):
        raise UserError(
            f"{flag} has another vocabulary than {pupil.model}, so it cannot read the tokens of "
            f"{role}: take a teacher of the same family"
        )
    longest, readable = context_of(own), context_of(of_teacher)
    if longest > readable:
        raise UserError(
            f"{flag} reads at most {readable} tokens, and {role} may write up to {longest}: say "
            f"--agents.{role}.context {readable}, or take a teacher with a longer context"
        )


def shown_to_teacher(
    rows: Sequence[Trajectory], role: str, distillation: Distillation
) -> Iterator[tuple[int, Trajectory]]:
    """Yield (index, row in the context in which the teacher reads it) for the rows from which a
    role learns."""
    for index, row in enumerate(rows):
        if row.role == role and row.trainable and distillation.reads(row):
            shown = row.as_learned().as_reread()
            if shown.trainable:
                yield index, shown

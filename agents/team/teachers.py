"""Teachers: models that read the tokens of roles that learn from their probabilities
(:class:`coterie.algorithms.algorithm.Distillation`)."""

from collections.abc import Iterator, Mapping, Sequence

from coterie.agents.models.load_tokenizer import load_tokenizer
from coterie.agents.models.locate import check_model
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import SEAT
from coterie.agents.team.settings import AgentSettings
from coterie.algorithms import Algorithm
from coterie.algorithms.algorithm import Distillation
from coterie.datatypes import Trajectory, UserError
from coterie.experts.naming import is_player

_TEACHER = f"{SEAT}teacher"


def teacher_seats(
    agents: Mapping[str, AgentSettings], algorithms: Mapping[str, Algorithm]
) -> dict[str, str]:
    """Return role -> name of the model that teaches it: a frozen role with that model, or one of
    :func:`teacher_models`.

    Args:
        agents: all roles.
        algorithms: role -> its algorithm, for roles that learn.
    """
    seats: dict[str, str] = {}
    by_model = {
        agent.model: role
        for role, agent in agents.items()
        if not agent.trained and agent.revision is None
    }
    for role, algorithm in algorithms.items():
        if teacher := algorithm.distillation.teacher:
            seats[role] = by_model.setdefault(teacher, f"{role}{_TEACHER}")
    return seats


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
            teacher = algorithms[role].distillation.teacher
            models.setdefault(seat, _beside(agents[role], teacher))
    return models


def _beside(pupil: AgentSettings, teacher: str) -> AgentSettings:
    """The settings of a teacher that plays no role."""
    return AgentSettings(
        teacher,
        trained=False,
        chat=pupil.chat,
        device=pupil.device,
        engine_device=pupil.engine_device,
    )


def check_teachers(
    agents: Mapping[str, AgentSettings], algorithms: Mapping[str, Algorithm]
) -> None:
    """Check every teacher without reading weights. Arguments as of :func:`teacher_seats`.

    Raises:
        UserError: a teacher is missing or unusable, or has not the vocabulary of its pupil.
    """
    for role, algorithm in algorithms.items():
        if not (teacher := algorithm.distillation.teacher):
            continue
        flag = f"--algo.distillation.teacher {teacher}"
        if is_player(teacher):
            raise UserError(
                f"{flag} gives no probabilities of the tokens of {role}: name a model that can be "
                "loaded here"
            )
        spec = model_spec(_beside(agents[role], teacher))
        check_model(spec, role=f"the teacher of {role}", trained=False)
        own, of_teacher = (load_tokenizer(s) for s in (model_spec(agents[role]), spec))
        ids = of_teacher.get_vocab()
        if any(ids.get(token) != number for token, number in own.get_vocab().items()):
            raise UserError(
                f"{flag} has another vocabulary than {agents[role].model}, so it cannot read the "
                f"tokens of {role}: take a teacher of the same family"
            )


def shown_to_teacher(
    rows: Sequence[Trajectory], role: str, distillation: Distillation
) -> Iterator[tuple[int, Trajectory]]:
    """Yield (index, row in the context in which the teacher reads it) for the rows of a role."""
    for index, row in enumerate(rows):
        if row.role == role and row.trainable and distillation.reads(row):
            yield index, row.as_learned().as_reread()

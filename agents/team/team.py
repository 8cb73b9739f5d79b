"""A team: the policies of all roles, and the learners of those that train."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from coterie.agents.team.backend import Backend, Learners, LearningSetup
from coterie.agents.team.local_backend import LocalBackend
from coterie.agents.team.players import build_player, has_human, local_models
from coterie.agents.team.reading import ReadRequest
from coterie.agents.team.settings import AgentSettings
from coterie.agents.team.teachers import shown_to_teacher, teacher_models, teacher_seats
from coterie.agents.vllm.settings import VllmSettings
from coterie.datatypes import Policy, Reading, TokenCodec, Trajectory, named_below
from coterie.envs.bytes_codec import BytesCodec
from coterie.experts import TranslatedPolicy, human
from coterie.experts.naming import is_player
from coterie.experts.pool import close_all

if TYPE_CHECKING:  # scripts and servers do without torch
    from coterie.agents.models.loading import LoadedRole


@dataclass(frozen=True)
class Team:
    """The policies of all roles, and the learners of those that train."""

    loaded: "Mapping[str, LoadedRole]"
    """Roles with a model of their own in this process."""
    policies: Mapping[str, Policy]
    codecs: Mapping[str, TokenCodec]
    trained: Learners
    backend: Backend
    """The backend that loaded the models."""
    learning: LearningSetup | None = None
    """How ``trained`` roles learn; None: no role learns."""
    teachers: Mapping[str, str] = field(default_factory=dict)
    """Role -> name of the model that teaches it."""

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Policies sample with the current weights inside the block; afterwards sampling memory is
        free for learning."""
        await self.backend.refresh()
        yield
        await self.backend.rest()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Team"]:
        """Policies sample inside the block; afterwards connections and engines are closed."""
        try:
            await self.backend.start()
            await self.backend.refresh()
            yield self
        finally:
            await self.aclose()

    async def read(self, rows: Sequence[Trajectory], step: int) -> dict[int, Reading | None]:
        """Return index of a row -> the probabilities of its tokens by the teacher of its role; None
        if the teacher cannot read the row. Rows that nobody should read are left out.

        Args:
            rows: of a step.
            step: its number; a teacher whose weight has faded to 0 reads nothing.
        """
        readings: dict[int, Reading | None] = {}
        for role, seat in self.teachers.items():
            assert self.learning is not None, "only roles that learn have a teacher"
            done = self.learning.done_before(step)
            settings = self.learning.algorithm_of(role).distillation.after(done)
            shown = dict(shown_to_teacher(rows, role, settings))
            request = ReadRequest(
                self.learning.temperature_of(role),
                settings.likeliest,
                self.codecs[role].vocab_size,
            )
            own = f"--agents.{role}.algo." if role in self.learning.algorithms else "--algo."
            with named_below(own):
                read = await self.backend.read(seat, list(shown.values()), request) if shown else []
            readings |= zip(shown, read, strict=True)
        return readings

    def interpreter(self, role: str, codec: TokenCodec) -> Policy:
        """Return the policy of ``role``, translated to the vocabulary of ``codec``."""
        policy, own = self.policies[role], self.codecs[role]
        return policy if own is codec else TranslatedPolicy(policy, inner=own, outer=codec)

    async def aclose(self) -> None:
        """Close connections and end processes."""
        await close_all(self.policies.values())
        self.backend.close()


class PlayerCodec:
    """A model's codec for scripts and servers, which have neither its system message nor the
    thought that its template opens."""

    def __init__(self, codec: TokenCodec) -> None:
        without = getattr(codec, "without_system", None)
        self._codec = codec if without is None else without()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._codec, name)

    def why_no_tools(self, tools: Any) -> str:
        """Return "": scripts and servers read a description of the tools in the prompt."""
        return ""

    def opened_thought(self, context: Any) -> str:
        """Return "": no thought is open."""
        return ""


def build_team(
    agents: Mapping[str, AgentSettings],
    *,
    learning: LearningSetup | None = None,
    vllm: VllmSettings | None = None,
    seed: int = 0,
    together: bool = True,
    backend: Backend | None = None,
) -> Team:
    """Load every role's model; roles with the same model share one base in memory.

    torch is imported only if a model is loaded, not for scripts and servers.

    Args:
        agents: role -> its player, already checked
            (:func:`coterie.agents.team.model_specs.check_models`).
        learning: how ``trained`` roles learn; None: no role learns.
        vllm: settings of engines that sample, which the backend starts; None: this process samples.
        seed: determines the initialization of new adapters and the engines' random streams.
        together: whether the roles play with each other. Players without a model then use the
            vocabulary of the first role with a model of its own, which reads their answers.
            Otherwise, or without such a role, they use UTF-8 bytes.
        backend: the backend; None: this process, with engines if ``vllm`` is given.

    Raises:
        UserError: a model cannot be loaded, or a person should answer and standard input has ended.
    """
    if has_human(agents):
        human.TERMINAL.check()
    if learning is None:
        agents = {role: replace(agent, trained=False) for role, agent in agents.items()}
    backend = backend or _backend(vllm)
    learns = {role for role, agent in agents.items() if agent.trained}
    algorithms = {role: learning.algorithm_of(role) for role in learns} if learning else {}
    wanted = local_models(agents) | teacher_models(agents, algorithms)
    models = backend.load(wanted, learns, learning, seed)

    reader = next((role for role in agents if role in models.codecs), None) if together else None
    if reader is None:
        player_codec, codec_name = cast(TokenCodec, BytesCodec()), "utf-8"
    else:
        player_codec = cast(TokenCodec, PlayerCodec(models.codecs[reader]))
        codec_name = f"{agents[reader].model}@{agents[reader].revision}"
    seats = {name: (policy, models.codecs[name]) for name, policy in models.policies.items()}
    return Team(
        loaded={role: models.loaded[role] for role in agents if role in models.loaded},
        policies={
            role: build_player(
                role,
                agent.model,
                player_codec,
                codec_name=codec_name,
                local=seats,
                system=agent.system,
            )
            if is_player(agent.model)
            else models.policies[role]
            for role, agent in agents.items()
        },
        codecs={role: models.codecs.get(role, player_codec) for role in agents},
        trained=models.trained,
        backend=backend,
        learning=learning,
        teachers=teacher_seats(agents, algorithms),
    )


def _backend(vllm: VllmSettings | None) -> Backend:
    if vllm is None:
        return LocalBackend()
    from coterie.agents.team.vllm_backend import VllmBackend

    return VllmBackend(vllm)

"""Send full weights by NCCL from a learner's GPU to the GPUs of separate engines.

Rank 0 of a group is the learner (the first of its own ranks); the GPUs of the engines follow,
engine by engine. If a member dies or does not answer, the group is abandoned: members that still
wait in it are replaced, and then all form a new group. Engines keep no copy of their earlier
weights, and none samples until all have received the new ones.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from coterie.agents.team.backend import Died
from coterie.datatypes import UserError
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.group import NOTICED_S

_PATIENCE_S = 600.0
"""Seconds for all to join a group, or to send and receive."""
_ABANDON_S = 30.0
"""Seconds for a learner to leave a group, or to end."""


@dataclass
class Transfer:
    """Transfers from one learner to all or some of its engines."""

    role: str
    learner: Actor
    span: int
    """GPUs of each engine."""
    _group: dict[str, Any] = field(default_factory=dict)
    """Name -> handle of each member of the group."""
    _described: dict[str, Any] = field(default_factory=dict)
    """Description of the weights for the engines."""

    def give(self, engines: Sequence[Actor], version: int) -> dict[str, UserError]:
        """Send the learner's weights of this ``version`` to ``engines``; return errors by name. If
        any engine fails, none of them samples until the next successful call.

        Raises:
            UserError: the learner cannot send, or has another version.
        """
        # Find dead engines first, so that no member waits for them.
        if failed := self._ask(engines, "prepare"):
            return failed
        members = {actor.name: actor.handle for actor in (self.learner, *engines)}
        met, self._group = members == self._group, {}
        try:
            if not met and (failed := self._meet(engines)):
                return failed
            begun = {
                engine: engine.begin("receive", self.role, self._described) for engine in engines
            }
            begun[self.learner] = self.learner.begin("send", self.role)
            failed, sent = self._settle(begun)
        except Died as error:
            return {engine.name: _not_sent(engine, error) for engine in engines}
        if failed:
            return failed
        self._group = members
        if sent != version:
            raise UserError(
                f"{self.learner.name} has made update {sent}, and no process has the weights of "
                f"update {version} any more, which a replaced engine needs; continue the run with "
                "--resume"
            )
        return self._ask(engines, "announce", version)

    def _ask(self, engines: Sequence[Actor], verb: str, *arguments: Any) -> dict[str, UserError]:
        return self._settle(
            {engine: engine.begin(verb, self.role, *arguments) for engine in engines}
        )[0]

    def _meet(self, engines: Sequence[Actor]) -> dict[str, UserError]:
        """Form a group of the learner and ``engines``; return errors by name."""
        host, port = self.learner.ask("meet")
        size = 1 + self.span * len(engines)
        begun = {self.learner: self.learner.begin("connect", self.role, host, port, size)}
        for index, engine in enumerate(engines):
            meeting = {"master_address": host, "master_port": port, "world_size": size}
            first = {"rank_offset": 1 + self.span * index}
            begun[engine] = engine.begin("join", self.role, meeting | first)
        failed, self._described = self._settle(begun)
        return failed

    def _settle(self, begun: Mapping[Actor, Any]) -> tuple[dict[str, UserError], Any]:
        """Wait for calls; return the engines' errors by name and the learner's result. A dead
        process cannot block the others forever."""
        threads = ThreadPoolExecutor(len(begun))
        doing = {actor: threads.submit(actor.result, call) for actor, call in begun.items()}
        threads.shutdown(wait=False)
        late = wait(doing.values(), _PATIENCE_S, FIRST_EXCEPTION).not_done
        if late and wait(late, NOTICED_S).not_done and self.learner in doing:
            self.learner.begin("abandon")
            wait([doing[self.learner]], _ABANDON_S)
        learner = doing.pop(self.learner, None)
        failed = {
            actor.name: error for actor, done in doing.items() if (error := _error(actor, done))
        }
        if learner is None:
            return failed, None
        error = _error(self.learner, learner)
        if error is not None:
            failed = {actor.name: _not_sent(actor, error) for actor in doing} | failed
        return failed, None if failed else learner.result()


def _error(actor: Actor, done: Future[Any]) -> UserError | None:
    if not done.done():
        return Died(
            f"{actor.name} waits for weights that no process sends; continue the run with --resume"
        )
    error = done.exception()
    if error is not None and not isinstance(error, UserError):
        raise error
    return error


def _not_sent(engine: Actor, error: UserError) -> UserError:
    return UserError(f"the weights could not be sent to {engine.name}: {error}")

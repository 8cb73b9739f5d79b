"""One episode as the environment sees it: what roles observe and answer, and what they earn."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import Problem, TokenCodec, ids_per_token
from coterie.envs.spaces import token_ids
from coterie.extras.gateway.contexts import Context, Contexts
from coterie.extras.gateway.messages import Answer, Refused
from coterie.extras.gateway.outcome import Played, Record, conversation, episode_counts
from coterie.extras.gateway.rewards import NoReward, earned
from coterie.extras.gateway.session import Call, ProgramResult, Session
from coterie.extras.gateway.settings import GatewaySettings


@dataclass(frozen=True)
class Observation:
    """A call that its role answers in this step."""

    call: Call
    context: Context
    info: Mapping[str, Any]
    """The role's info: how to sample the answer."""


class GatewayEpisode:
    """The contexts of all roles while a program plays."""

    def __init__(
        self,
        problem: Problem,
        codecs: Mapping[str, TokenCodec],
        settings: GatewaySettings,
        *,
        training: bool,
    ) -> None:
        """
        Args:
            problem: the problem of the episode.
            codecs: role -> codec.
            settings: what the program may do.
            training: whether temperature and top-p are the run's instead of the program's.
        """
        self.problem = problem
        self.contexts = {role: Contexts(codec, role) for role, codec in codecs.items()}
        self._codecs, self._settings, self._training = codecs, settings, training
        self._observations: dict[str, Observation] = {}
        self._refused: list[tuple[str, Call, Answer | Refused]] = []

    def observe(self, calls: Mapping[str, Call]) -> Mapping[str, Observation]:
        """Open a context for each role that is called; one without room for an answer is refused
        in the next step."""
        for role, call in calls.items():
            context = self.contexts[role].open(call.request)
            most = getattr(self._codecs[role], "context", None) or math.inf
            room = most - len(context.ids)
            if room < 1:
                why = (
                    f"the conversation has {len(context.ids):,} tokens, and {role}'s context holds "
                    f"{most:,} with the answer: send fewer messages"
                )
                self._refused.append((role, call, Refused(400, why)))
                continue
            self._observations[role] = Observation(call, context, self._info(role, call, room))
        return self._observations

    def answer(self, actions: Mapping[str, Any]) -> list[tuple[str, Call, Answer | Refused]]:
        """Turn actions into answers: (role, call, answer) for each role that was called."""
        answers, self._refused = self._refused, []
        for role, observed in self._observations.items():
            if (action := actions.get(role)) is None:
                answers.append((role, observed.call, Refused(503, f"{role} did not answer")))
                continue
            ids = token_ids(action, self._codecs[role].vocab_size)
            limit = int(observed.info["max_new_tokens"])
            request = observed.call.request
            answer = self.contexts[role].close(request, observed.context, ids, limit=limit)
            answers.append((role, observed.call, answer))
        self._observations = {}
        return answers

    def infos(
        self,
        result: ProgramResult,
        session: Session,
        *,
        title: str,
        correct: Callable[[str], bool],
        selects: Callable[[Played], bool] | None,
    ) -> dict[str, dict[str, Any]]:
        """Role -> its last info: rewards, trained turns and measures.

        Args:
            result: how the program ended.
            session: the calls of the program.
            title: the program, which messages begin with.
            correct: whether a text answers the problem.
            selects: whether a turn is trained; None: as the settings say.
        """
        records = {
            role: Record(role, contexts, session.undelivered(role))
            for role, contexts in self.contexts.items()
        }
        failure, unpaid = result.failure, False
        if not failure and not any(contexts.was_asked for contexts in self.contexts.values()):
            failure = "the program asked no role anything"
        infos: dict[str, dict[str, Any]] = {}
        if not failure:
            try:
                infos = earned(title, result.value, records, correct)
            except NoReward as why:
                failure, unpaid = str(why), True
        if failure:
            # Record the rows of a failed episode, but train on none.
            untrained = {
                role: dict.fromkeys(range(record.calls), "failed")
                for role, record in records.items()
            }
            infos = {role: {"reward_terms": {}, "void": failure} for role in records}
        else:
            last = self._settings.train_turns == "last"
            untrained = {
                role: record.untrained(selects, last=last) for role, record in records.items()
            }
            for role, turns in untrained.items():
                if turns:
                    trained = [t for t in range(records[role].calls) if t not in turns]
                    infos[role]["trained_turns"] = trained
        return {
            role: {
                **infos[role],
                "groups": {
                    "problem+role": f"{self.problem.id}/{role}",
                    "problem": self.problem.id,
                },
                "episode": {
                    "problem": self.problem.id,
                    "failure": failure,
                    **episode_counts(session.counts, failed=bool(failure), unpaid=unpaid),
                    "forest": {name: r.forest(untrained[name]) for name, r in records.items()},
                },
                "texts": record.texts(),
                **(
                    {"sampling_named": requested}
                    if (requested := record.requested_sampling())
                    else {}
                ),
                **record.metrics(),
            }
            for role, record in records.items()
        }

    def transcript(self) -> str:
        """All requests and answers as text."""
        lines = [f"{self.problem.id}: {self.problem.question}", ""]
        for role, contexts in self.contexts.items():
            for node in contexts.nodes:
                question = "\n".join(f"{m.speaker}: {m.text}" for m in node.request.messages)
                lines += [f"== {role} ==", question, "--", node.answer.text, ""]
        return "\n".join(lines)

    def _info(self, role: str, call: Call, room: float) -> dict[str, Any]:
        request, most = call.request, min(self._settings.max_new_tokens, room)
        if request.max_tokens is not None:
            most = min(request.max_tokens * ids_per_token(self._codecs[role]), most)
        info: dict[str, Any] = {
            "max_new_tokens": most,
            "stop": list(request.stop),
            "text": conversation(request.messages),
        }
        ignored = request.ignored or (self._training and bool(request.sampling))
        self.contexts[role].counts["sampling_ignored"] += ignored
        if self._training:
            return info
        return {**info, **request.sampling}

"""One episode from the side of the models: what roles are shown, what they answer, what is paid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coterie.datatypes import Problem, TokenCodec
from coterie.envs.spaces import token_ids
from coterie.extras.gateway.contexts import Contexts, Opened
from coterie.extras.gateway.messages import Answer, Refused
from coterie.extras.gateway.outcome import (
    NoReward,
    Played,
    Record,
    conversation,
    counted,
    reward_terms,
    turn_rewards,
)
from coterie.extras.gateway.session import Call, Ended, Session
from coterie.extras.gateway.settings import GatewaySettings

_MOST_IDS = 1 << 20
"""Ids of an answer; what comes behind them is left out."""


@dataclass(frozen=True)
class Shown:
    """A call that is to be answered now."""

    call: Call
    opened: Opened
    info: Mapping[str, Any]
    """How it is to be answered, as a role's info."""


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
            problem: what is played.
            codecs: role -> codec.
            settings: what the program may do.
            training: whether the run's temperature and top-p hold in place of the program's.
        """
        self.problem = problem
        self.contexts = {role: Contexts(codec, role) for role, codec in codecs.items()}
        self._codecs, self._settings, self._training = codecs, settings, training
        self._shown: dict[str, Shown] = {}

    def show(self, calls: Mapping[str, Call]) -> Mapping[str, Shown]:
        """Open a context for whoever is called."""
        for role, call in calls.items():
            opened = self.contexts[role].open(call.request)
            self._shown[role] = Shown(call, opened, self._info(role, call))
        return self._shown

    def answer(self, actions: Mapping[str, Any]) -> list[tuple[str, Call, Answer | Refused]]:
        """What those who were shown a context answer, by role."""
        answers: list[tuple[str, Call, Answer | Refused]] = []
        for role, shown in self._shown.items():
            if (action := actions.get(role)) is None:
                answers.append((role, shown.call, Refused(503, f"{role} did not answer")))
                continue
            ids = token_ids(action, self._codecs[role].vocab_size)[:_MOST_IDS]
            limit = int(shown.info["max_new_tokens"])
            answer = self.contexts[role].close(shown.call.request, shown.opened, ids, limit=limit)
            answers.append((role, shown.call, answer))
        self._shown = {}
        return answers

    def infos(
        self,
        ended: Ended,
        session: Session,
        *,
        title: str,
        correct: Callable[[str], bool],
        chosen: Callable[[Played], bool] | None,
    ) -> dict[str, dict[str, Any]]:
        """Role -> its last info: what it earned, and what is learned of it.

        Args:
            ended: how the program ended.
            session: in which it played.
            title: what messages begin with.
            correct: whether a text answers the problem.
            chosen: says of each turn whether it is learned; None: the settings do.
        """
        records = {
            role: Record(role, contexts, session.undelivered(role))
            for role, contexts in self.contexts.items()
        }
        failure, unpaid = ended.failure, False
        if not failure and not any(contexts.was_asked for contexts in self.contexts.values()):
            failure = "the program asked no role anything"
        earned: dict[str, dict[str, Any]] = {}
        if not failure:
            try:
                earned = self._earned(ended.result, records, title=title, correct=correct)
            except NoReward as why:
                failure, unpaid = str(why), True
        if failure:
            # Its rows are data, and nothing is paid.
            left_out = {
                r: dict.fromkeys(range(record.calls), "failed") for r, record in records.items()
            }
            earned = {role: {"reward_terms": {}, "void": failure} for role in records}
        else:
            last = self._settings.train_turns == "last"
            left_out = {
                role: record.left_out(chosen, last=last) for role, record in records.items()
            }
            for role, turns in left_out.items():
                if turns:
                    kept = [t for t in range(records[role].calls) if t not in turns]
                    earned[role]["trained_turns"] = kept
        return {
            role: {
                **earned[role],
                "groups": {
                    "problem+role": f"{self.problem.id}/{role}",
                    "problem": self.problem.id,
                },
                "episode": {
                    "problem": self.problem.id,
                    "failure": failure,
                    **counted(session.counts, failed=bool(failure), unpaid=unpaid),
                    "forest": {name: r.forest(left_out[name]) for name, r in records.items()},
                },
                "texts": record.texts(),
                **({"sampling_named": named} if (named := record.sampling()) else {}),
                **record.measured(),
            }
            for role, record in records.items()
        }

    def transcript(self) -> str:
        """All that was asked and answered, as text."""
        lines = [f"{self.problem.id}: {self.problem.question}", ""]
        for role, contexts in self.contexts.items():
            for node in contexts.nodes:
                asked = "\n".join(f"{m.speaker}: {m.text}" for m in node.request.messages)
                lines += [f"== {role} ==", asked, "--", node.answer.text, ""]
        return "\n".join(lines)

    def _info(self, role: str, call: Call) -> dict[str, Any]:
        request, most = call.request, self._settings.max_new_tokens
        info: dict[str, Any] = {
            "max_new_tokens": most if request.max_tokens is None else min(request.max_tokens, most),
            "stop": list(request.stop),
            "text": conversation(request.messages),
        }
        ignored = request.ignored or (self._training and bool(request.sampling))
        self.contexts[role].counts["sampling_ignored"] += ignored
        if self._training:
            return info
        return {**info, **request.sampling}

    def _earned(
        self,
        result: Any,
        records: Mapping[str, Record],
        *,
        title: str,
        correct: Callable[[str], bool],
    ) -> dict[str, dict[str, Any]]:
        terms = reward_terms(title, result, records, correct)
        by_turn: Mapping[str, Sequence[float]] = turn_rewards(title, result, records)
        earned: dict[str, dict[str, Any]] = {}
        for role in records:
            earned[role] = {"reward_terms": dict(terms.get(role, {}))}
            if "correct" in earned[role]["reward_terms"]:
                earned[role]["correct"] = bool(earned[role]["reward_terms"]["correct"])
            if role in by_turn:
                earned[role]["turn_rewards"] = by_turn[role]
        return earned

"""The recorder: an agent's contexts and samples become training rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import (
    INFO_KEYS,
    Completion,
    Trajectory,
    UserError,
    role_of,
    why_not_of_turns,
)


class Recorder:
    """Records one agent's turns in one episode, token by token as the model saw them.

    A context normally grows at its end. If an observation does not start with the recorded tokens,
    as in an environment that rewrites history, a new row begins. Every row is thus a sequence that
    the model really conditioned on.
    """

    def __init__(self, agent: str, *, branches: bool = False) -> None:
        """``branches``: the agent may return to any earlier context and continue that row."""
        self.agent = agent
        self._branches = branches
        self.role = role_of(agent)
        self.turn = 0
        self.status = "ok"
        self._rows: list[_Row] = [_Row()]
        self._row = self._rows[0]

    def show(self, context: npt.NDArray[np.int64]) -> None:
        """Record the agent's full context, (T,)."""
        rows = self._rows if self._branches else self._rows[-1:]
        prefixes = [row for row in rows if row.is_prefix_of(context)]
        if not prefixes:
            prefixes = [_Row()]
            self._rows += prefixes
        self._row = max(prefixes, key=lambda row: row.length)
        self._row.append(context[self._row.length :])

    def add(self, completion: Completion) -> None:
        """Record the policy's answer to the latest context."""
        self._row.append_sample(completion, self.turn)
        self.turn += 1

    def fail(self, reason: str) -> None:
        """Record that the policy did not answer; earlier rows stay as data without loss."""
        self.status = f"failed: {reason}"
        self.turn += 1

    def trajectories(
        self, reward: float, info: Mapping[str, Any], default_group: str, replica: int
    ) -> list[Trajectory]:
        """Return the finished rows, each with the agent's whole reward.

        Args:
            reward: sum of the agent's rewards.
            info: the agent's last info; ``docs/architecture.md`` describes its keys.
            default_group: id of the replicas' group, for environments without groups.
            replica: number of the episode among the replicas.

        Raises:
            UserError: ``trained_turns`` or ``turn_rewards`` do not match the agent's turns.
        """
        terms = dict(info.get("reward_terms") or {"reward": reward})
        groups = dict(info.get("groups") or {"problem+role": f"{default_group}/{self.role}"})
        measured = {key: value for key, value in info.items() if key not in INFO_KEYS}
        if self.status == "ok" and (why := why_not_of_turns(self.agent, info, self.turn)):
            raise UserError(why)
        rows = [row for row in self._rows if row.turns] or self._rows[-1:]
        untrained = self._untrained(info.get("trained_turns"), rows)
        status = f"failed: {info['void']}" if info.get("void") else self.status
        paid = self._turn_rewards(info.get("turn_rewards"))
        return [
            Trajectory(
                agent=self.agent,
                role=self.role,
                tokens=row.tokens(),
                mask=row.mask(),
                logprobs=row.logprobs(),
                reward=reward,
                reward_terms=terms,
                groups=groups,
                member=f"{default_group}/{replica}/{self.agent}",
                loss_weight=float(info.get("loss_weight", 1.0)),
                status=status,
                weight_version=min(row.versions, default=0),
                turns=tuple(row.turns),
                texts=tuple(info.get("texts", ())),
                finish=tuple(row.finish),
                usage=tuple(row.usage),
                untrained=tuple(row.turns[turn] for turn in untrained[index]),
                turn_rewards=paid,
                turn_numbers=tuple(row.numbers) if paid else (),
                info=measured,
                learned_after=info.get("learned_after"),
                reread_after=info.get("reread_after"),
                contrast_after=info.get("contrast_after"),
            )
            for index, row in enumerate(rows)
        ]

    def _turn_rewards(self, rewards: Sequence[float] | None) -> tuple[float, ...]:
        if rewards is None or self.status != "ok":
            return ()
        return tuple(float(reward) for reward in rewards)

    def _untrained(self, trained: Sequence[int] | None, rows: Sequence["_Row"]) -> list[list[int]]:
        """Indices of each row's turns that carry no loss."""
        count = self.turn
        if trained is None or self.status != "ok":
            return [[] for _ in rows]
        learned = {turn % count for turn in trained}
        return [[i for i, turn in enumerate(row.numbers) if turn not in learned] for row in rows]


class _Row:
    """A growing token sequence with its mask and log-probabilities."""

    def __init__(self) -> None:
        self.length = 0
        self.turns: list[tuple[int, int]] = []
        self.finish: list[str] = []
        self.usage: list[tuple[int, int]] = []
        self.versions: list[int] = []
        self.numbers: list[int] = []
        """Number of each turn among all turns of the agent."""
        self._tokens: list[npt.NDArray[np.int64]] = []
        self._logprobs: list[npt.NDArray[np.float32]] = []

    def is_prefix_of(self, context: npt.NDArray[np.int64]) -> bool:
        return len(context) >= self.length and np.array_equal(context[: self.length], self.tokens())

    def append(self, tokens: npt.NDArray[np.int64]) -> None:
        self._tokens.append(np.asarray(tokens, dtype=np.int64))
        self._logprobs.append(np.zeros(len(tokens), dtype=np.float32))
        self.length += len(tokens)

    def append_sample(self, completion: Completion, number: int) -> None:
        start = self.length
        self.append(completion.tokens)
        self._logprobs[-1] = np.asarray(completion.logprobs, dtype=np.float32)
        self.turns.append((start, self.length))
        self.finish.append(completion.finish_reason)
        self.usage.append(completion.usage)
        self.versions.append(completion.weight_version)
        self.numbers.append(number)

    def tokens(self) -> npt.NDArray[np.int64]:
        if len(self._tokens) > 1:
            self._tokens = [np.concatenate(self._tokens)]
        return self._tokens[0] if self._tokens else np.zeros(0, dtype=np.int64)

    def logprobs(self) -> npt.NDArray[np.float32]:
        return np.concatenate([np.zeros(0, dtype=np.float32), *self._logprobs])

    def mask(self) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.length, dtype=np.bool_)
        for start, end in self.turns:
            mask[start:end] = True
        return mask

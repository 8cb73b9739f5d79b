"""Turning what one agent saw and sampled into training rows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from coterie.datatypes import Completion, Trajectory, UserError

# Keys of the contract; all others are measurements of the environment.
_STRUCTURAL = (
    "reward_terms",
    "groups",
    "loss_weight",
    "learned_after",
    "reread_after",
    "trained_turns",
    "turn_rewards",
    "void",
    "episode",
    "max_new_tokens",
    "stop",
    "temperature",
    "top_p",
    "piece",
    "fresh",
    "text",
    "texts",
)


class Recorder:
    """Records one agent's turns in one episode, token by token as the model saw them.

    A context normally grows at its end. Where an observation does not start with what was recorded
    so far (an environment that rewrites history), a new row begins, so that every row is a sequence
    that the model really conditioned on.
    """

    def __init__(self, agent: str, *, branches: bool = False) -> None:
        """``branches``: the agent may come back to any of its earlier contexts, and goes on with
        the row that has it."""
        self.agent = agent
        self._branches = branches
        self.role = agent.rpartition("_")[0] or agent
        self.turn = 0
        self.status = "ok"
        self._rows: list[_Row] = [_Row()]
        self._row = self._rows[0]

    def show(self, context: npt.NDArray[np.int64]) -> None:
        """Record what the agent is shown: its full context, (T,)."""
        rows = self._rows if self._branches else self._rows[-1:]
        begun = [row for row in rows if row.begins(context)]
        if not begun:
            begun = [_Row()]
            self._rows += begun
        self._row = max(begun, key=lambda row: row.length)
        self._row.append(context[self._row.length :])

    def add(self, completion: Completion) -> None:
        """Record the policy's answer to the context given last."""
        self._row.append_sample(completion, self.turn)
        self.turn += 1

    def fail(self, reason: str) -> None:
        """Record that the policy did not answer; the rows so far stay as data, without loss."""
        self.status = f"failed: {reason}"
        self.turn += 1

    @property
    def asked(self) -> bool:
        """Whether the agent was ever asked."""
        return self.turn > 0

    def trajectories(
        self, reward: float, info: Mapping[str, Any], default_group: str, replica: int
    ) -> list[Trajectory]:
        """The finished rows, each with the agent's whole reward.

        Args:
            reward: sum of the rewards that the environment paid this agent.
            info: the agent's last info; see ``docs/architecture.md`` for its keys.
            default_group: id of the replicas' group, for environments that name no groups.
            replica: which of these the episode is.

        Raises:
            UserError: the info names turns for training that the agent does not have, or pays
                others than it had.
        """
        terms = dict(info.get("reward_terms") or {"reward": reward})
        groups = dict(info.get("groups") or {"problem+role": f"{default_group}/{self.role}"})
        measured = {key: value for key, value in info.items() if key not in _STRUCTURAL}
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
                untrained=tuple(row.turns[place] for place in untrained[index]),
                turn_rewards=paid,
                turn_numbers=tuple(row.numbers) if paid else (),
                info=measured,
                learned_after=info.get("learned_after"),
                reread_after=info.get("reread_after"),
            )
            for index, row in enumerate(rows)
        ]

    def _turn_rewards(self, rewards: Sequence[float] | None) -> tuple[float, ...]:
        if rewards is None or self.status != "ok":
            return ()
        if len(rewards) != self.turn:
            raise UserError(
                f"turn_rewards of {self.agent} has {len(rewards)} numbers, and it had {self.turn} "
                "turns: give one number for each"
            )
        return tuple(float(reward) for reward in rewards)

    def _untrained(self, trained: Sequence[int] | None, rows: Sequence["_Row"]) -> list[list[int]]:
        """Places of the turns of each row that carry no loss."""
        count = self.turn
        if trained is None or self.status != "ok":
            return [[] for _ in rows]
        if wrong := [turn for turn in trained if not -count <= turn < count]:
            raise UserError(
                f"trained_turns of {self.agent} names turn {wrong[0]}, and it had {count}: count "
                f"from 0, or from the end with -1"
            )
        kept = {turn % count for turn in trained}
        return [[i for i, turn in enumerate(row.numbers) if turn not in kept] for row in rows]


class _Row:
    """One growing token sequence with its mask and log-probabilities."""

    def __init__(self) -> None:
        self.length = 0
        self.turns: list[tuple[int, int]] = []
        self.finish: list[str] = []
        self.versions: list[int] = []
        self.numbers: list[int] = []
        """Which of the agent's turns each is."""
        self._tokens: list[npt.NDArray[np.int64]] = []
        self._logprobs: list[npt.NDArray[np.float32]] = []

    def begins(self, context: npt.NDArray[np.int64]) -> bool:
        """Whether ``context`` starts with all of this."""
        same = len(context) >= self.length
        return same and np.array_equal(context[: self.length], self.tokens())

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

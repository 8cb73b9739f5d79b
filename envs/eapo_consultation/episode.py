"""One conversation's way through policy, experts and policy again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from envs.eapo_consultation.calls import Call
from envs.eapo_consultation.fading import acceptance, turn_budget
from envs.eapo_consultation.moves import Move
from envs.eapo_consultation.returns import Entry
from envs.eapo_consultation.settings import Consult, EapoConsultationSettings, fading_of
from vocabulary import Problem, UserError, derive_seed

Mode = Literal["train", "eval", "assisted", "workflow"]

# What each mode makes of ``EapoConsultationSettings.consult``; None leaves it.
_CONSULT: dict[Mode, Consult | None] = {
    "train": None,
    "eval": "never",
    "assisted": "free",
    "workflow": "always",
}


@dataclass
class Asked:
    """One dispatched call and what became of it."""

    call: Call
    query: str
    """What the expert is really asked."""
    accepted: bool
    """The coin's verdict; a reply must come as well."""
    result: str = ""
    """The reply as it enters the context; empty where none does."""
    replied: bool = False

    @property
    def entry(self) -> Entry:
        if self.result:
            return Entry("OK", self.result, self.call.expert_id)
        return Entry("UNAVAILABLE", "", self.call.expert_id)


@dataclass
class Consultation:
    """What has happened so far."""

    problem: Problem
    seed: int
    replica: int
    mode: Mode
    step: int
    consult: Consult
    acceptance: float
    """rho_s"""
    turns_allowed: int
    """Rounds: the smaller of budget and turn budget."""
    max_new_tokens: int
    asking: list[Asked] = field(default_factory=list)
    """The experts' turn: who is asked now. Empty: the policy's turn."""
    rounds: list[list[Asked]] = field(default_factory=list)
    pieces: list[tuple[str, str]] = field(default_factory=list)
    """(who, text) in order, for transcripts."""
    own: str = ""
    """Everything that the policy wrote."""
    thinking: bool = False
    """Whether it ends inside a thought."""
    tokens: int = 0
    """The same in the policy's tokens."""
    expert_tokens: int = 0
    """Replies that entered its context, in its tokens."""
    rounds_used: int = 0
    calls_used: int = 0
    answered_calls: int = 0
    """Well-formed blocks of calls by the policy, each followed by a return."""
    errors: int = 0
    ignored: int = 0
    """Calls inside thoughts, which nobody answers."""
    exhausted: bool = False
    """Whether a call came when nothing was left."""
    failed: bool = False
    infos: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The last step's, for the transcript."""

    def record(self, agent: str, move: Move) -> None:
        """Take down a turn of the policy."""
        self.own += move.text
        self.tokens += move.tokens
        self.thinking = move.thinking
        self.pieces.append((agent, move.text))

    @property
    def asked(self) -> list[Asked]:
        """Every dispatched call."""
        return [asked for block in self.rounds for asked in block]


def begin(
    problem: Problem, seed: int, options: Mapping[str, Any], settings: EapoConsultationSettings
) -> Consultation:
    """A conversation at its start, as the reset's options want it.

    Raises:
        UserError: a mode that does not exist.
    """
    mode = options.get("mode", "train")
    if mode not in get_args(Mode):
        known = ", ".join(get_args(Mode))
        raise UserError(f"eapo-consultation: mode {mode!r} is unknown; choose one of {known}.")
    step = int(options.get("step", 1))
    train = mode == "train"
    turns = turn_budget(
        step, first=settings.budget, last=settings.turns_end, anneal=settings.anneal_steps
    )
    return Consultation(
        problem=problem,
        thinking=settings.opens_thinking,
        seed=seed,
        replica=int(options.get("replica", 0)),
        mode=mode,
        step=step,
        consult=_CONSULT[mode] or settings.consult,
        acceptance=acceptance(fading_of(settings), step) if train else 1.0,
        turns_allowed=turns if train else settings.budget,
        max_new_tokens=settings.max_new_tokens
        if train
        else settings.eval_max_new_tokens or settings.max_new_tokens,
    )


def coin(seed: int, replica: int | None, round_: int, expert_id: int) -> float:
    """The draw u in (0, 1] for one reply; ``replica`` None is common to a group."""
    place = -1 if replica is None else replica
    return (derive_seed("eapo-consultation", "coin", seed, place, round_, expert_id) + 1) / 2**63


def is_accepted(u: float, probability: float) -> bool:
    """Whether the draw lets the reply in: never with probability 0, always with 1."""
    return u <= probability


def other_question(question: str, candidates: list[str]) -> str:
    """The first candidate that is another question; the question itself if there is none."""
    return next((other for other in candidates if other != question), question)

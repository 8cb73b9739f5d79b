"""Settings of eapo-consultation, and the schedule by which help fades."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval

from coterie.datatypes import Needs, UserError, Validated, refuse
from coterie.datatypes.validation import Share
from coterie.envs.eapo_consultation.fading import Fading, Schedule, match_budget
from coterie.envs.prompts import ExpertStyle
from coterie.envs.settings import MOST, Several
from coterie.rewards.consultation import AnswerRule

Consult = Literal["free", "never", "always"]
BudgetUnit = Literal["rounds", "calls"]
Coin = Literal["response", "group"]
Penalised = Literal["dispatched", "accepted"]
Queries = Literal["own", "shuffled"]
Reread = Literal["none", "wrong"]


@dataclass(frozen=True)
class EapoConsultationSettings(Validated):
    """EAPO (arXiv:2509.23730) on one problem, with lone traces that are read again after experts'
    replies; without them it is --preset eapo-faded. Symbols are the paper's."""

    experts: Several = 3
    """K: number of experts, with ids 1 to K."""
    at_once: Annotated[int, Ge(0), Needs("consult", "free")] = 0
    """Most experts in one block of calls; 0: no limit, 1: one after another (sequential)."""
    group_size: Several = 4
    """G: conversations about one problem, compared as a group with their lone traces."""
    consult: Consult = "free"
    """free: the policy decides. never: no expert can be asked, so that every trace is lone and none
    is read again (self-exploratory training). always: every expert is asked the question first,
    whatever the budget and without a penalty, and the policy answers after the replies. In training
    these fade with the schedule and are cut to reply_tokens, as others are."""
    budget: Annotated[int, Ge(0)] = 10
    """b: most consultations in one episode."""
    budget_unit: BudgetUnit = "rounds"
    """rounds: a block of calls counts as one; calls: each call counts."""
    turns_end: Annotated[int, Ge(0), Needs("anneal_steps"), Needs("consult", "free")] = 0
    """T_end: rounds that are left when the budget has been annealed."""
    anneal_steps: Annotated[int, Ge(0), Needs("consult", "free")] = 0
    """Training steps over which the budget falls linearly to turns-end; 0: it stays constant."""

    schedule: Schedule = "linear"
    """Acceptance probability rho_s of a reply by training step s: inv (1/s), inv-sqrt, inv-sq,
    const, linear, cosine."""
    accept_rate: Annotated[Share, Needs("schedule", "const")] = 0.02
    """rho of the schedule const."""
    accept_scale: Annotated[float, Gt(0), Needs("schedule", "inv", "inv-sqrt", "inv-sq")] = 1.0
    """Unit of s in the inverse schedules, in steps: 1 + (s - 1) / scale."""
    accept_span: Annotated[float, Gt(0), Needs("schedule", "linear", "cosine")] = 200.0
    """linear and cosine: training steps until the probability is 0."""
    accept_start: Annotated[
        int, Ge(0), Needs("schedule", "inv", "inv-sqrt", "inv-sq", "linear", "cosine")
    ] = 0
    """s_0: first steps that do not count, such as the learning rate's warm-up."""
    accept_total: Annotated[float, Ge(0)] = 0.0
    """Sum of rho_s over accept-steps, to which the schedule is stretched so that schedules can be
    compared at equal help; 0: no stretching."""
    accept_steps: Annotated[int, Ge(1), Needs("accept_total")] = 320
    """Training steps over which accept-total is summed."""
    coin: Coin = "response"
    """response: each reply is accepted by a draw of its own. group: the conversations of a problem
    share one draw, so that luck does not separate them."""
    draw_before_dispatch: bool = True
    """Draw first, and ask an expert only if its reply will be accepted. The distribution is the
    same, and rejected calls cost nothing."""
    queries: Queries = "own"
    """What experts are asked: the policy's query, or the question of another problem (shuffled, a
    control)."""

    lone: Annotated[int, Interval(ge=0, le=MOST)] = 1
    """Traces that the policy also writes alone in training, beside each conversation, with the
    prompt and the reward of evaluation. Not in the paper."""
    reread: Reread = "wrong"
    """Lone traces that the reader scores again after the conversation up to its last accepted
    reply, for --algo.distillation.beta: none; wrong ones. Not in the paper."""

    answer_reward: AnswerRule = "em_math"
    """em_math: 1 for the right value, 0.1 for the right format alone. f1_literal: the paper's word
    F1 if above 0, else 0.1 for the format. f1_or_format: the larger of the two."""
    # Asking costs something once help is gone.
    consult_penalty: Annotated[float, Ge(0), Needs("consult", "free")] = 0.05
    """lambda: penalty for each call."""
    penalised: Annotated[Penalised, Needs("consult_penalty"), Needs("consult", "free")] = (
        "dispatched"
    )
    """Calls that are penalised: all that are well-formed and within budget, or those whose reply
    was accepted."""
    penalty_start: Annotated[int, Ge(0), Needs("consult_penalty"), Needs("consult", "free")] = 200
    """Training steps before the penalty starts. With a penalty from the start, a policy stops
    asking before it learns what help is worth."""
    penalty_only_if_right: Annotated[bool, Needs("consult_penalty"), Needs("consult", "free")] = (
        False
    )
    """Penalise right answers only. In a group without a right answer the penalty alone would set
    the advantages, and dividing by the deviation makes it as large as correctness."""

    prompt_style: ExpertStyle = "plain"
    """plain: one short line, for tiny models; answer: the question, and sentences that ask for a
    last line with the answer and explain the call; panel: the paper's prompt, which explains the
    experts and their protocol."""
    max_new_tokens: Annotated[int, Ge(1)] = 96
    """Tokens of the policy in one episode, without experts' replies."""
    eval_max_new_tokens: Annotated[int, Ge(0)] = 0
    """The same in evaluation; 0: as in training."""
    eval_samples: Several = 8
    """n of avg@n: conversations per held-out problem."""
    expert_max_new_tokens: Annotated[int, Ge(1)] = 64
    """Tokens of an expert for one query, thinking included."""
    # The tiny expert's replies break off before the last of four operations.
    reply_tokens: Annotated[int, Ge(1)] = 13
    """Most tokens of a reply in the policy's context, in its own tokens."""
    reply_thinking_tokens: Annotated[int, Ge(0)] = 0
    """Tokens at the end of an expert's thinking that are kept before its reply, where there is
    room."""

    def check(self) -> None:
        refuse(
            (
                self.reread != "none" and not self.lone,
                "eapo-consultation: reread needs lone traces, and lone is 0; choose lone 1, or "
                "reread none",
            ),
            (
                self.turns_end > self.budget,
                f"eapo-consultation: turns_end is {self.turns_end}: it must be between 0 and the "
                "budget",
            ),
        )
        fading_of(self)

    @property
    def parallel(self) -> int:
        """Most experts in one block of calls."""
        return min(self.at_once or self.experts, self.experts)

    @property
    def continues(self) -> bool:
        """Whether an answer may be continued, after an expert's reply."""
        return self.consult == "free"

    @property
    def read_tokens(self) -> int:
        """Most tokens of a context that experts wrote."""
        calls = self.budget * (self.parallel if self.budget_unit == "rounds" else 1)
        reply = self.reply_tokens + self.reply_thinking_tokens
        return 0 if self.consult == "never" else calls * reply


@lru_cache
def fading_of(settings: EapoConsultationSettings) -> Fading:
    """The schedule that the settings describe, stretched where a total is asked for."""
    fading = Fading(
        settings.schedule,
        rate=settings.accept_rate,
        scale=settings.accept_scale,
        span=settings.accept_span,
        start=settings.accept_start,
    )
    if not settings.accept_total:
        return fading
    try:
        return match_budget(fading, settings.accept_total, settings.accept_steps)
    except ValueError as error:
        raise UserError(f"eapo-consultation: accept_total: {error}.") from None

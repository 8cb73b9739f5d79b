"""CoRe's cost model of one problem in a step (arXiv:2601.21600, appendix A.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coterie.envs.core_teaching.settings import CoreTeachingSettings


@dataclass(frozen=True)
class StepCost:
    """The terms of equations 13 to 19 for one problem, without their constants."""

    decode: float
    """Equation 13, first term: sampled tokens of all traces, times the cost of a token."""
    attend: float
    """Equation 13, second term: tokens of hints in the second round, times the cost of attention
    to a token."""
    select: float
    """Equation 14: candidates for the teacher."""
    context: float
    """Equation 15: tokens of the trace that becomes the hint."""
    embed: float
    """Equation 16: embedded traces, times the cost of an embedding."""
    explore: float
    """Equation 17: distances to the diverse set."""
    cross: float
    """Equation 18: distances from partners' traces, over both rounds."""

    @property
    def total(self) -> float:
        """Equation 19, which leaves out ``attend`` and ``cross`` as printed."""
        return self.decode + self.embed + self.explore + self.select + self.context


def step_cost(
    roles: int,
    cold: int,
    hinted: int,
    *,
    length: float,
    hint: float,
    cap: int,
    token: float = 1.0,
    attention: float = 1.0,
    embedding: float = 1.0,
) -> StepCost:
    """Return the cost of one problem in a step of CoRe.

    Args:
        roles: N, number of models.
        cold: K, traces of a model in the first round.
        hinted: K', traces of a model in the second round.
        length: L, tokens of a trace.
        hint: L_c, most tokens of a hint.
        cap: s_max, largest size of the diverse set.
        token: C_gen, cost of sampling a token. The three costs have the unit of the result.
        attention: C_attn, cost of attention to a token of a hint.
        embedding: C_emb, cost of embedding a trace.
    """
    traces = roles * (cold + hinted)
    return StepCost(
        decode=traces * length * token,
        attend=roles * hinted * hint * attention,
        select=roles * cold,
        context=length,
        embed=traces * embedding,
        explore=traces * cap,
        cross=roles * (cold**2 + hinted**2),
    )


def describe_cost(settings: CoreTeachingSettings, roles: Sequence[str]) -> Iterator[str]:
    """Yield lines for ``--plan`` with the largest cost of a problem, at full length of all traces.

    Reward terms without weight in any epoch are not computed and cost nothing. The model does not
    include rereading, so runs with rereading have no lines.
    """
    if settings.reread != "none":
        return
    traces = len(roles) * (settings.k_cold + settings.k_hinted)
    # Other modes compare with all other traces, or within one trace.
    against = {"literal": settings.cap, "strategy-ratio": 0}.get(settings.explore_mode, traces - 1)
    explores, crosses = any(settings.w_explore), any(settings.lambda_cm)
    cost = step_cost(
        len(roles),
        settings.k_cold,
        settings.k_hinted,
        length=settings.max_new_tokens,
        hint=settings.hint_tokens,
        cap=explores * against,
        embedding=float(crosses or (explores and against > 0)),
    )
    distances = cost.explore + crosses * cost.cross
    yield "a problem, by the cost model of CoRe (equations 13 to 19), at most:"
    yield (
        f"  {cost.decode:,.0f} tokens written and {cost.attend:,.0f} of hints read, "
        f"a teacher of {cost.select:,.0f} traces,"
    )
    yield f"  {cost.embed:,.0f} embeddings, {distances:,.0f} distances"

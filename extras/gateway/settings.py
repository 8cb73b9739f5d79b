"""How programs are played. Each field's docstring is its help text."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Interval

from coterie.datatypes import Validated
from coterie.envs.settings import Several


@dataclass(frozen=True)
class GatewaySettings(Validated):
    """What programs may do, and what is learned of what they did."""

    max_new_tokens: Annotated[int, Ge(1)] = 256
    """Longest answer in tokens; a program may ask for less. Its temperature and top-p hold in
    evaluations; while models learn, the run's do (--rollout.temperature,
    --agents.ROLE.temperature)."""
    max_calls: Annotated[int, Ge(1)] = 64
    """Calls of one role in one episode; those beyond are refused with 429."""
    max_tokens: Annotated[int, Ge(0)] = 0
    """Tokens that one role may sample in one episode, before its calls are refused with 429; 0:
    any number."""
    patience_s: Annotated[float, Interval(gt=0, lt=86_400)] = 60.0
    """Seconds a program may take to its first call, between two calls, and from its last call to
    its exit. Then it is stopped and its episode is discarded."""
    gather_s: Annotated[float, Interval(ge=0, le=3600)] = 1.0
    """Most seconds that a call waits for the calls of other episodes; then all are sampled as one
    batch. A run repeats bit for bit if no program needs longer than this between two calls."""
    train_turns: Literal["all", "last"] = "all"
    """Which turns of a role are learned: all, or its last."""
    turns: str = ""
    """pkg.module:function that says of each turn whether it is learned; it is given a
    coterie.extras.gateway.outcome.Played."""
    replicas: Several = 8
    """Episodes of one problem that are compared with each other."""

"""How programs are played. Each field's docstring is its help text."""

from dataclasses import dataclass
from typing import Literal

from coterie.datatypes import check_literals, check_numbers, refuse
from coterie.envs.settings import MOST


@dataclass(frozen=True)
class GatewaySettings:
    """What programs may do, and what is learned of what they did."""

    max_new_tokens: int = 256
    """Longest answer in tokens; a program may ask for less. Its temperature and top-p hold in
    evaluations; while models learn, the run's do (--rollout.temperature,
    --agents.ROLE.temperature)."""
    max_calls: int = 64
    """Calls of one role in one episode; those beyond are refused with 429."""
    max_tokens: int = 0
    """Tokens that one role may sample in one episode, before its calls are refused with 429; 0:
    any number."""
    patience_s: float = 60.0
    """Seconds that a program may take between two calls, or for its end; then it is stopped, and
    its episode counts nowhere."""
    gather_s: float = 1.0
    """Most seconds that a call waits for the calls of other episodes; then all are sampled as one
    batch. A run repeats bit for bit if no program needs longer than this between two calls."""
    train_turns: Literal["all", "last"] = "all"
    """Which turns of a role are learned: all, or its last."""
    turns: str = ""
    """pkg.module:function that says of each turn whether it is learned; it is given a
    coterie.extras.gateway.outcome.Played."""
    replicas: int = 8
    """Episodes of one problem that are compared with each other."""

    def __post_init__(self) -> None:
        check_literals(self, "--env.")
        check_numbers(self, "--env.")
        refuse(
            (self.max_new_tokens < 1, "--env.max-new-tokens must be at least 1"),
            (self.max_calls < 1, "--env.max-calls must be at least 1"),
            (self.max_tokens < 0, "--env.max-tokens must not be negative; 0 is no limit"),
            (not 0 < self.patience_s < 86_400, "--env.patience-s must be above 0, a day at most"),
            (not 0 <= self.gather_s <= 3600, "--env.gather-s must be 0 to 3600 seconds"),
            (not 1 <= self.replicas <= MOST, f"--env.replicas must be 1 to {MOST}"),
        )

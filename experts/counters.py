"""What an expert was asked, what came back and what went wrong."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class ExpertCounters:
    """Counts since the start of the process; ``calls == answered + failed + those in flight``."""

    calls: int = 0
    answered: int = 0
    attempts: int = 0
    """Requests sent, retries included."""
    retries: int = 0
    shortened: int = 0
    """Replies that were cut at the token limit."""
    reply_tokens: int = 0
    """Tokens handed on, in the role's vocabulary."""
    server_prompt_tokens: int = 0
    """Tokens read, as the server counts them."""
    server_completion_tokens: int = 0
    """Tokens generated, thinking included, as the server counts them."""
    seconds: float = 0.0
    """Wall-clock time summed over attempts, without waits and pauses."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failed calls by kind."""
    failed_attempts: Counter[str] = field(default_factory=Counter)
    """Failed attempts by kind, also of calls that a retry saved."""
    examples: dict[str, str] = field(default_factory=dict)
    """The latest thing that the server wrote with a failure of each kind, shortened."""

    @property
    def failed(self) -> int:
        """Calls that ended without a reply."""
        return self.failures.total()

    def as_dict(self) -> dict[str, float]:
        """Flat names and numbers for a log; failures as ``failed/<kind>``."""
        names = (
            "calls", "answered", "failed", "attempts", "retries", "shortened",
            "reply_tokens", "server_prompt_tokens", "server_completion_tokens", "seconds",
        )  # fmt: skip
        flat = {name: float(getattr(self, name)) for name in names}
        flat |= {f"failed/{kind}": float(n) for kind, n in sorted(self.failures.items())}
        flat |= {
            f"failed_attempts/{kind}": float(n) for kind, n in sorted(self.failed_attempts.items())
        }
        return flat

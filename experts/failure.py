"""Why one attempt at a server gave no reply."""


class AttemptFailure(Exception):
    """One attempt failed.

    Args:
        kind: one word to count it under.
        reason: a short sentence that goes into the trajectory's status; it holds nothing that the
            server wrote.
        retry: whether the same request may succeed a moment later.
        healthy: whether the server is alive and merely refused this request.
        retry_after_s: how long the server asked to be left alone.
        example: what the server wrote, shortened, for the user to look at.
    """

    def __init__(
        self,
        kind: str,
        reason: str,
        *,
        retry: bool = False,
        healthy: bool = False,
        retry_after_s: float = 0.0,
        example: str = "",
    ) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.retry = retry
        self.healthy = healthy
        self.retry_after_s = retry_after_s
        self.example = example

"""What the sampling loop asks of a model with a key-value cache."""

from typing import Protocol

from torch import Tensor

# P distinct prompts, B rows, V vocabulary


class Decoder(Protocol):
    """One batch of rows under way."""

    def prefill(self, prompts: list[list[int]], fork_B: list[int], room: int) -> Tensor:
        """Read each distinct prompt once and continue it in every row: row b continues
        ``prompts[fork_B[b]]`` by at most ``room`` tokens. (B, V) logits of the first new token."""
        ...

    def step(self, tokens_B: Tensor) -> Tensor:
        """Append one token to every row; (B, V) logits of the next."""
        ...

    def drop(self, holes_N: Tensor, movers_N: Tensor, rows: int) -> None:
        """Keep the first ``rows`` rows after moving row ``movers_N[i]`` to ``holes_N[i]``."""
        ...

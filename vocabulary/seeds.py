"""Random streams by name, so that nothing depends on the order in which things happen."""

import hashlib


def derive_seed(*parts: int | str) -> int:
    """A seed in [0, 2^63) that depends on every part and on their order.

    ``derive_seed(run_seed, "sample", step, episode, agent, turn)`` names one row's stream: the same
    on every machine and in every process.
    """
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

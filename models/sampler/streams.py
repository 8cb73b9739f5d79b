"""One random stream per row, addressed by counter: u(seed, t) needs no state."""

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def uniforms(seeds_B: npt.NDArray[np.uint64], start: int, count: int) -> npt.NDArray[np.float32]:
    """(B, count) uniforms in [0, 1): of each row's stream the numbers start, start+1, ...

    SplitMix64 (Steele, Lea & Flood 2014) with the seed mixed once more, so that streams of
    neighbouring seeds do not overlap. Multiples of 2^-24: exact in float32, never 1.
    """
    steps_T = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN
    bits_BT = _mix(_mix(seeds_B)[:, None] + steps_T[None, :])
    return (bits_BT >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))

"""Sample many prompts at once in this process.

One loop drives two decoders: a fast one on fused weights, and the forward pass of any model.
"""

from coterie.agents.sampling.kept import KEPT_BYTES
from coterie.agents.sampling.sample import KEEPS_FROM, Sampler, SamplingRequest, copies

__all__ = ["KEEPS_FROM", "KEPT_BYTES", "Sampler", "SamplingRequest", "copies"]

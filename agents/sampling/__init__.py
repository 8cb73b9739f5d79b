"""Sample many prompts at once in this process.

One loop drives two decoders: a fast one on fused weights, and the forward pass of any model.
"""

from coterie.agents.sampling.sample import Sampler, SamplingRequest, copies

__all__ = ["Sampler", "SamplingRequest", "copies"]

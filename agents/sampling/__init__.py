"""Batched sampling in this process: one loop, two decoders (fused, and any model's own)."""

from coterie.agents.sampling.sample import Sampler, SamplingRequest, copies

__all__ = ["Sampler", "SamplingRequest", "copies"]

"""Batched sampling in this process: one loop and two decoders (fused, and generic)."""

from coterie.agents.sampling.sample import Sampler, SamplingRequest, copies

__all__ = ["Sampler", "SamplingRequest", "copies"]

"""Batched sampling in this process: one loop, two decoders (fused, and any model's own)."""

from coterie.models.sampler.sample import Request, Sampler

__all__ = ["Request", "Sampler"]

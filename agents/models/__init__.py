"""Causal language models: loading, adapters, tokenizers, sampling."""

"""Policies whose tokens a vLLM engine samples, in a process of its own.

Nothing here imports vLLM before an engine starts, so that everything else can be checked first.
"""

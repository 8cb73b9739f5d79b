"""Policies that sample from a vLLM engine.

The engine has a process of its own. Nothing here imports vLLM before an engine starts, so that
everything else can be checked first.
"""

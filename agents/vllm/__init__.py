"""Policies whose tokens vLLM engines sample, in processes of their own.

vLLM is imported only when an engine starts, so that everything else can be checked before.
"""

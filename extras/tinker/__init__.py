"""Models on a server that speaks Tinker's API: ``--engine tinker``.

Sampling, log-probabilities and updates happen there. Environments, credit, losses, evaluation and
logs stay in this process.
"""

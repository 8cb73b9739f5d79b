"""``python train.py ... --doctor``: find errors in a configuration within a minute.

The doctor uses the episodes, policies, learners and engines of a training run. It writes nothing
and restores all weights and optimizers.
"""

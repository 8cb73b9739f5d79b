"""``python train.py ... --doctor``: what is wrong with a configuration, found in a minute.

Its episodes, policies, learners and engines are those of a training run; nothing is written, and
weights and optimisers are left as they were.
"""

"""Metrics as pure functions of arrays.

Correctness is a (Q, N) array, questions by samples: true or false, or floats in which NaN marks a
sample that does not exist (the policy failed to answer). A missing sample counts for nothing, right
or wrong, as if it had never been asked for; a question that lacks the samples a metric needs
has NaN there and stays out of means and of their denominators.
"""

"""Metrics as pure functions of arrays.

Correctness is a (Q, N) array, questions by samples: true or false, or floats in which NaN marks a
sample that does not exist (the policy failed to answer). A missing sample is neither right nor
wrong. A question with too few samples for a metric is NaN there, and means leave it out.
"""

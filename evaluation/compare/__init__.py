"""Compare systems: sample, store and score responses.

:mod:`coterie.evaluation.compare.jobs` says which policies answer which problems,
:mod:`coterie.evaluation.compare.sample_responses` samples the responses that are missing, and
:mod:`coterie.evaluation.compare.responses` stores them and reads them back as arrays.
A comparison (``suite``, ``corea``, ``eapo``) is a list of systems over those responses;
``compare``, ``seeds`` and ``sweep`` show the stored results of finished runs in the same tables.
"""

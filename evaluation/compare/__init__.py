"""Compare systems: sample, store and score responses.

:mod:`coterie.evaluation.compare.plan` decides which policies answer which problems,
:mod:`coterie.evaluation.compare.ask` samples the responses that are missing, and
:mod:`coterie.evaluation.compare.responses` stores them and reads them back as arrays.
A comparison (``suite``, ``corea``, ``eapo``) is a list of systems over those responses;
``compare``, ``seeds`` and ``sweep`` show the stored results of finished runs in the same tables.
"""

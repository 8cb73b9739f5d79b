"""Comparison of systems: sample responses, store them, score them, show tables.

:mod:`coterie.comparison.plan` decides which policies answer which problems,
:mod:`coterie.comparison.ask` samples the responses that are missing, and
:mod:`coterie.comparison.responses` stores them and reads them back as arrays.
A comparison (``suite``, ``corea``, ``eapo``) is a list of systems over those responses;
``compare``, ``seeds`` and ``sweep`` show the stored results of finished runs in the same tables.
"""

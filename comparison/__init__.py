"""Systems side by side: ask, store, score, table.

:mod:`coterie.comparison.plan` says who is asked what, :mod:`coterie.comparison.ask` asks for what
:mod:`coterie.comparison.responses` has not stored, which then reads it back as arrays.
A comparison (``suite``, ``corea``, ``eapo``) is a list of systems over those responses;
``compare``, ``seeds`` and ``sweep`` hand what finished runs have stored to the same tables.
"""

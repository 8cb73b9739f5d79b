"""Systems side by side: ask, store, score, table.

:mod:`comparison.plan` says who is asked what, :mod:`comparison.ask` asks for what
:mod:`comparison.store` lacks, :mod:`comparison.responses` reads it back as arrays. A comparison
(``suite``, ``corea``, ``eapo``) is a list of systems over those responses; ``compare``, ``seeds``
and ``sweep`` hand what finished runs have stored to the same tables.
"""

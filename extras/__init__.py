"""Optional parts, which the core never imports.

The table in :mod:`coterie.cli.extras` names what each adds.
"""

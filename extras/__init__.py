"""Optional parts, which the core never imports.

:mod:`coterie.cli.extras` says what an extra may add.
"""

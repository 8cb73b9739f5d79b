"""Sources of problems: generators, files, the hub.

- A new file format is a reader in ``files.py`` (:func:`coterie.problems.files.read_rows`).
- A new layout of columns is a ``Format`` in ``column_formats.py``, with its reader in
  ``row_readers.py``.
- A new data set of the hub is a line in ``hub.py``.
- A new generator derives from :class:`coterie.problems.source.Generated`; ``opening.py`` names it.
"""

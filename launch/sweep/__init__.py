"""Tables of the three papers in miniature: ``benchmark.py sweep NAME``."""

from collections.abc import Mapping

from launch.sweep import core, corea, eapo
from launch.sweep.table import Table

TABLES: Mapping[str, Table] = core.TABLES | corea.TABLES | eapo.TABLES

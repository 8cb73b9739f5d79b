"""The papers as plain data: their settings (``PRESETS``) and their tables (``TABLES``), by name.

Nothing here computes or imports what does: ``coterie.training.presets`` lays a preset over
settings, and ``benchmark.py sweep`` runs a table.
"""

from collections.abc import Mapping

from coterie.papers import (
    core_teaching,
    corea_deferral,
    eapo_consultation,
    eapo_tables,
    sd_e2,
)
from coterie.papers.preset import Preset, Table
from coterie.papers.real_small import REAL_SMALL

PRESETS: Mapping[str, Preset] = (
    core_teaching.PRESETS | corea_deferral.PRESETS | eapo_consultation.PRESETS | sd_e2.PRESETS
)
OWN: Mapping[str, Preset] = {"core-tiny": core_teaching.TINY_TEAM, "real-small": REAL_SMALL}
"""No paper's settings: a method with the tiny team, and any method with small real models."""
TABLES: Mapping[str, Table] = core_teaching.TABLES | corea_deferral.TABLES | eapo_tables.TABLES
AT_SCALE: Mapping[str, Table] = (
    core_teaching.AT_SCALE | corea_deferral.AT_SCALE | eapo_tables.AT_SCALE
)
"""The same with the papers' models, data and sizes."""

"""Checks before a run: trackers that are not installed, models that do not fit."""

from coterie.agents.models.locate import hub_snapshot, local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.model_specs import model_spec
from coterie.agents.team.players import local_models
from coterie.extras.ops.trackers import check_trackers
from coterie.training.config.train_settings import TrainSettings
from coterie.training.hosts import lives_elsewhere

_SMALL = 256 << 20
"""Bytes of weights below which a run is assumed to fit."""


def check(settings: TrainSettings) -> None:
    """Check the trackers and the memory.

    Raises:
        UserError: a check fails; the message names the flag.
    """
    check_trackers(settings.run.track)
    here = {} if lives_elsewhere(settings) else local_models(settings.players)
    if not all(_is_small(model_spec(agent)) for agent in here.values()):
        # This imports torch, which is slow, so it comes last.
        from coterie.extras.ops.plan_report import check_plan

        check_plan(settings)


def _is_small(spec: ModelSpec) -> bool:
    folder = local_folder(spec) or hub_snapshot(spec)
    # Of a model on the hub only the description may be here yet.
    sizes = [file.stat().st_size for file in folder.glob("*.safetensors")] if folder else []
    return bool(sizes) and sum(sizes) < _SMALL

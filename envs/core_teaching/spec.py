"""The spec of ``core-teaching``: defaults, suite and checks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from coterie.envs.core_teaching.cost import describe_cost
from coterie.envs.core_teaching.settings import CoreTeachingSettings, weighted
from coterie.envs.env_spec import EnvSpec
from coterie.envs.settings import check_rereading


def check(settings: CoreTeachingSettings, run: Any) -> Iterator[tuple[bool, str]]:
    """Implement :attr:`coterie.envs.EnvSpec.check`: rereading needs distillation and vice versa,
    and custom reward terms work.

    Raises:
        UserError: a custom reward term fails in a trial call.
    """
    yield from check_rereading(settings.reread, run, remedy="choose --env.reread wrong")
    learned = [each.distillation for each in run.learned_by.values()]
    yield (
        settings.reread_contrast and any(each.likeliest or each.teacher for each in learned),
        "--env.reread-contrast compares two readings of the sampled tokens by the role itself: say "
        "--algo.distillation.likeliest 0 and name no teacher",
    )
    if settings.terms:
        _try_terms(settings)


def _try_terms(settings: CoreTeachingSettings) -> None:
    """Call custom reward terms on right, wrong, empty and hinted traces, and on a single trace."""
    from coterie.datatypes import Problem, Verdict
    from coterie.envs.core_teaching.scoring import Trace
    from coterie.envs.core_teaching.terms import custom_terms
    from coterie.rewards.rescue import COLD, HINT

    right, wrong = Verdict(True, "4", "exact"), Verdict(False, None, "none")
    traces = [
        Trace("alice_0", "alice", COLD, "2 + 2 = 4\nAnswer: 4", right),
        Trace("alice_1", "alice", COLD, "", wrong),
        Trace("bob_0", "bob", COLD, "2 + 2 = 5", wrong),
        Trace("bob_1", "bob", HINT, "4", right, taught_by="alice_0"),
    ]
    problem = Problem("dry-run", "What is 2 + 2?", "4")
    for sample in (traces, traces[:1]):
        custom_terms(settings.terms, sample, problem)


SPEC = EnvSpec(
    name="core-teaching",
    version=0,
    factory="coterie.envs.core_teaching:CoreTeachingEnv",
    settings=CoreTeachingSettings,
    roles=("alice", "bob"),
    evaluation="coterie.envs.core_teaching.evaluation:EVALUATION",
    rereads=lambda settings: settings.reread != "none",
    terms=weighted,
    costs=describe_cost,
    check=check,
    defaults={
        # Each role knows the family of one half of the problems only.
        "problems": {"train": "chains?mix=0.5,0.5,0&min_length=5&max_length=5"},
        "algo": {"distillation": {"beta": 1.0, "likeliest": 64, "fade": 1.0}},
        "run": {"group_by": "problem+role"},
    },
    larger={
        "env": {
            # Peer distillation as by default: four cold traces, and wrong ones are reread.
            "prompt_style": "answer",
            "max_new_tokens": 512,
            "hint_tokens": 256,
            "k_cold": 4,
        }
    },
    suite={
        "name": "core",
        # Two families, each known to one tiny model only, and their mixture.
        "problems": ("chains?mix=1,0,0", "chains?mix=0,1,0", "chains?mix=0,0,1"),
        "role": "alice",
        "silent": ("bob",),
        "settings": {"k_cold": 1, "k_hinted": 0},
    },
    presets="coterie.envs.core_teaching.presets:PRESETS",
    tables="coterie.envs.core_teaching.tables",
    baseline=Path(__file__).parent / "alone.json",
)

"""Peer distillation with the tiny team, where it pays: no paper's, but what docs/evidence.md found.

Where a peer knows what one cannot do alone it beats training alone for each role, and elsewhere
loses nothing; a role that alone has learned it, too, by twice the length gains nothing there, which
is why it is a preset and no default.
"""

from pathlib import Path

from coterie.papers.preset import Preset, Setting

_SOURCE = "docs/evidence.md, the arm expected"
_ALONE = "as much is sampled, and only being right is paid"
_READ = "what the arm is"

PRESET = Preset(
    paper="docs/evidence.md",
    env="core-teaching",
    algo="gspo",
    models={},
    settings={
        "problems.train": Setting(
            "chains?mix=0.5,0.5,0&min_length=5&max_length=5",
            _SOURCE,
            "half of the problems are one role's, and the other half practically never",
        ),
        "env.k_cold": Setting(3, _SOURCE, _ALONE),
        "env.k_hinted": Setting(0, _SOURCE, _ALONE),
        "env.alpha": Setting(0.0, _SOURCE, _ALONE),
        "env.w_explore": Setting((0.0,), _SOURCE, _ALONE),
        "env.lambda_cm": Setting((0.0,), _SOURCE, _ALONE),
        "env.lambda_ta": Setting(0.0, _SOURCE, _ALONE),
        "env.r_teach": Setting(0.0, _SOURCE, _ALONE),
        "run.group_by": Setting("problem+role", _SOURCE, "each role is compared with itself"),
        "env.teacher": Setting("prefer-peer", _SOURCE, _READ),
        "env.reread": Setting(
            "unsolved", _SOURCE, "who is sometimes right has rewards to learn from"
        ),
        "env.reread_least": Setting(0.5, _SOURCE, "luck is no reasoning"),
        "algo.distillation.beta": Setting(1.0, _SOURCE, _READ),
        "algo.distillation.likeliest": Setting(
            64, _SOURCE, "what is taken from a token goes where the reader would have it"
        ),
        "algo.distillation.fade": Setting(1.0, _SOURCE, "what was gained stays"),
    },
    baseline=Path(__file__).with_suffix(".json"),
)

"""Every tiny role: what it is good and bad at, how it is warm-started, what its gate wants."""

from collections.abc import Mapping
from dataclasses import replace

from coterie.envs.corea_deferral.settings import SUFFIX
from coterie.problems.chains import ALL_VALUES
from coterie.problems.recall import RecallSettings, names
from miniatures import consulting, teaching
from miniatures.recipe import Recipe, Spelling

FIRM = (0.6, 0.97)
"""Range of the probability of a wrong value that trying alone hardly ever gets past."""
# Room to learn, something to teach, and hints that are read.
_TEACHES = {"strong": (0.9, 1.0), "hinted - retry": (0.15, 1.0), "format": (0.99, 1.0)}
_COLD = {"cold": (0.35, 0.5), **_TEACHES}

_ALICE = Recipe(
    role="alice",
    family="teaching",
    spelling=Spelling(
        "byte-level-bpe", (teaching.QUESTION, teaching.SOLVE, teaching.HINT), teaching.TAGS
    ),
    gate=_COLD,
    strong="+-",
    weak="@#",
    learning_rate=5e-3,
    second_steps=2500,
)
_BOB = replace(
    _ALICE,
    role="bob",
    spelling=Spelling(
        "character-bpe",
        (teaching.QUESTION, "\nLet's", " solve this", " step by step:", teaching.HINT),
        teaching.TAGS,
    ),
    strong="@#",
    weak="+-",
)
_CAROL = replace(
    _ALICE,
    role="carol",
    spelling=Spelling(
        "unigram",
        (f"{teaching.QUESTION} ", "\nLet's solve this", " step by step:", "\nHint:", "\n"),
        teaching.TAGS,
    ),
    strong="+#",
    weak="-@",
    wrong=(0.05, 0.65),
    learning_rate=4e-3,
    gradual=True,
    warmup=150,
)
# A larger model that knows more, to compare a team of the three with.
_DORA = replace(
    _ALICE,
    role="dora",
    gate={"cold": (0.5, 0.7), **_TEACHES},
    strong="+-@",
    weak="#",
    hidden=96,
    heads=6,
    learning_rate=4e-3,
    gradual=True,
    warmup=150,
)
# Two who each practically never solve the other's half: their habits are firm.
_FIRM_GATE = {"cold": (0.2, 0.4), **_TEACHES}
_GINA = replace(_ALICE, role="gina", wrong=FIRM, gate=_FIRM_GATE)
_HUGO = replace(_BOB, role="hugo", wrong=FIRM, gate=_FIRM_GATE)
TEACHING = (_ALICE, _BOB, _CAROL, _DORA, _GINA, _HUGO)

_TENTHS = tuple(f"{tenth / 10:.1f}" for tenth in range(11))
_PHRASES = (f" {SUFFIX}",)
_TAGS = (r"\boxed{", r"\confidence{", "}", *_TENTHS, *names(RecallSettings().letters))
_STATES = {"auroc": (0.5, 0.68), "format": (0.98, 1.0)}
"""A hint of self-knowledge, and room for more."""
_SMALL = Recipe(
    role="small",
    family="deferral",
    spelling=Spelling("character-bpe", _PHRASES, _TAGS),
    gate={"accuracy": (0.55, 0.75), "overconfidence": (0.22, 1.0), **_STATES},
    known=0.45,
    mistaken=0.25,
    learning_rate=5e-3,
)
_SMALLER = replace(
    _SMALL,
    role="smaller",
    spelling=Spelling("unigram", _PHRASES, _TAGS),
    gate={"accuracy": (0.35, 0.55), "overconfidence": (0.3, 1.0), **_STATES},
    known=0.25,
    mistaken=0.4,
    hidden=48,
)
_LARGE = Recipe(
    role="large",
    family="deferral",
    spelling=Spelling("byte-level-bpe", _PHRASES, _TAGS),
    gate={"accuracy": (0.95, 1.0), "format": (0.98, 1.0)},
    known=1.0,
    hidden=96,
    heads=6,
    second_steps=5000,
)
DEFERRAL = (_SMALL, _SMALLER, _LARGE)

_POLICY = Recipe(
    role="policy",
    family="consulting",
    spelling=Spelling("byte-level-bpe", consulting.PHRASES, consulting.TAGS),
    # It solves little alone, reads replies, and asks for help.
    gate={
        "format": (0.97, 1.0),
        "weak": (0.0, 0.03),
        "strong": (0.9, 1.0),
        "helped": (0.5, 1.0),
        "asking": (0.4, 0.8),
    },
    strong="+-",
    weak="@#",
    wrong=FIRM,
    learning_rate=5e-3,
    gradual=True,
    first_steps=4000,
)
_PUPIL = replace(
    _POLICY,
    role="pupil",
    spelling=Spelling("character-bpe", consulting.PHRASES, consulting.TAGS),
    hidden=80,
)
_EXPERT = Recipe(
    role="expert",
    family="consulting",
    spelling=Spelling(
        "character-bpe",
        (
            *(consulting.QUESTION, f" {ALL_VALUES}", ALL_VALUES),
            *(consulting.SOLVE, consulting.ANSWER),
        ),
        consulting.TAGS,
    ),
    gate={"format": (0.97, 1.0), "weak": (0.85, 1.0)},
    strong="+-@#",
    wrong=FIRM,
    hidden=96,
    gradual=True,
    warmup=150,
    first_steps=8000,
    second_steps=2000,
)
CONSULTING = (_POLICY, _PUPIL, _EXPERT)

_ERIN = Recipe(
    role="erin",
    family="allround",
    spelling=Spelling(
        "byte-level-bpe",
        (
            *(teaching.QUESTION, teaching.SOLVE, teaching.HINT, f" {SUFFIX}"),
            *(piece for piece in consulting.PHRASES if piece != teaching.QUESTION),
        ),
        (*teaching.TAGS, r"\boxed{", r"\confidence{", "}", *_TENTHS, *consulting.TAGS),
    ),
    gate={
        "cold": (0.35, 0.6),
        **_TEACHES,
        "deferring": (0.35, 0.6),
        "stated": (0.99, 1.0),
        "alone": (0.35, 0.6),
        "helped - alone": (0.1, 1.0),
        "asking": (0.4, 0.8),
    },
    strong="+-",
    weak="@#",
    hidden=80,
    learning_rate=5e-3,
    second_steps=6000,
)
_FRANK = replace(_ERIN, role="frank", strong="@#", weak="+-", seed=1)
ALLROUND = (_ERIN, _FRANK)

RECIPES: Mapping[str, Recipe] = {
    recipe.role: recipe for recipe in (*TEACHING, *DEFERRAL, *CONSULTING, *ALLROUND)
}

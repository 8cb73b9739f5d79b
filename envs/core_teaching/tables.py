"""The tables of CoRe (arXiv:2601.21600): small, and with the paper's own models and data."""

from collections.abc import Iterator
from dataclasses import replace

from coterie.envs.paper_tables import Columns, Scale, Table, Variant

_TRAIN = ("--preset", "core-tiny")
# As many traces as CoRe writes, none of them taught, each role compared with itself: by CoRe's
# rewards, and by SD-E2's, where the team is the oracle over two models that never met.
_ALONE = (
    *("--env.k-cold", "3", "--env.k-hinted", "0", "--env.lambda-cm", "0"),
    *("--env.explore-pool", "model", "--group-by", "problem+role"),
)
_EXPLORE = ("--env", "sd-e2", "--algo", "grpo", "--env.traces=3")
_NO_EXPLORATION = ("--env.w-explore", "0")
_ABLATIONS = {
    "no-round-b": ("No Round B", ("--env.k-hinted", "0")),
    "no-exploration": ("No exploration", _NO_EXPLORATION),
    "no-cross": ("No cross-model term", ("--env.lambda-cm", "0")),
    "k4": ("K = 4, K' = 2", ("--env.k-cold", "4", "--env.k-hinted", "2")),
}


def _pair(first: str, second: str) -> dict[str, Variant]:
    """Everything that is trained of one pair."""
    flags = (*_TRAIN, "--roles", first, second)
    name = f"core-{first}-{second}"
    trained = {
        "core": Variant(name, "CoRe", flags),
        "sd-e2": Variant(f"{name}-sd-e2", "SD-E2", (*_EXPLORE, "--roles", first, second)),
        "alone": Variant(f"{name}-alone", "each for itself", (*flags, *_ALONE)),
    }
    return trained | {
        key: Variant(f"{name}-{key}", label, (*flags, *more))
        for key, (label, more) in _ABLATIONS.items()
    }


def _columns(first: str, second: str) -> Columns:
    return {
        **{f"{role} @{k}": (f"pass@{k}/{role}",) for role in (first, second) for k in (1, 2)},
        **{f"team @{k}": (f"team_pass@{k}",) for k in (1, 2)},
    }


# Figures 3 and 4: the base pair's oracle, SD-E2's oracle, and the team that CoRe trained.
_TEAM = ("team @1", "team @2")
_BOB, _CAROL = _pair("alice", "bob"), _pair("alice", "carol")
_INSTEAD = "chains for GSM8K, MATH, AIME and GPQA; the tiny pair for 3B and 4B models"

TABLES = {
    "core-1": Table(
        "Base, trained each for itself, and CoRe: the first pair",
        tuple(_BOB[k] for k in ("core", "sd-e2", "alone")),
        _columns("alice", "bob"),
        base="Base",
        bars=_TEAM,
        instead=_INSTEAD,
    ),
    "core-2": Table(
        "The same of the second pair",
        tuple(_CAROL[k] for k in ("core", "sd-e2", "alone")),
        _columns("alice", "carol"),
        base="Base",
        bars=_TEAM,
        instead=_INSTEAD,
    ),
    "core-3": Table("Hyper-parameters", why_not="it lists settings; they are --preset core-..."),
    "core-4": Table(
        "A larger model that explores alone, two that do and an oracle, and CoRe",
        (
            Variant("core-dora-sd-e2", "dora, SD-E2", (*_EXPLORE, "--roles", "dora")),
            replace(_CAROL["sd-e2"], label="alice and carol, SD-E2, oracle"),
            replace(_CAROL["core"], label="alice and carol, CoRe"),
        ),
        {f"Pass@{k}": (f"team_pass@{k}",) for k in (1, 2)},
        instead=f"{_INSTEAD}, and dora, twice their size, for 7B and 8B models",
    ),
    "core-5": Table(
        "Ablations of the first pair",
        tuple(_BOB[k] for k in ("core", "no-round-b", "no-exploration", "no-cross", "k4")),
        _columns("alice", "bob"),
        instead=_INSTEAD,
    ),
    "core-6": Table(
        "Ablations of the second pair; its row of one model is CoRe's own alice",
        tuple(_CAROL[k] for k in ("core", "no-round-b", "no-exploration", "no-cross")),
        _columns("alice", "carol"),
        instead=_INSTEAD,
    ),
}

# The presets have environment, algorithm and traces; the second pair plays the same roles.
_PRESET = dict.fromkeys(
    ("--preset", "core-tiny", "--env", "sd-e2", "--algo", "grpo", "--env.traces=3"), ()
)
_MEASURED = ("gsm8k", "math", "aime", "gpqa")
# Table 4, section D.
_LARGER = {
    "qwen-7b": "Qwen2.5-7B-Instruct",
    "phi-7b": "Phi-3-small-8k-Instruct",
    "ministral-8b": "Ministral-3-8B-Reasoning",
}
_TRUSTED = {"phi-7b": ("--agents.alice.trust-remote-code",)}


def _at_scale(pair: str, small: Table, sets: tuple[str, ...] = _MEASURED) -> Table:
    """Every variant on every data set."""
    variants = tuple(
        row
        for data in sets
        for variant in small.variants
        for row in _rows_at_scale(pair, variant, data)
    )
    columns = {name: keys for name, keys in small.columns.items() if "carol" not in name}
    if len(columns) < len(small.columns):
        columns = _columns("alice", "bob")
    each = len(variants) // len(sets)
    return replace(small, variants=variants, columns=columns, each=each, instead="")


def _rows_at_scale(pair: str, variant: Variant, data: str) -> Iterator[Variant]:
    """The rows that stand for one row of the miniature."""
    # Single models explore alone: three of table 4 for the miniature's one.
    if "dora" in variant.flags:
        for name, model in _LARGER.items():
            preset = f"sd-e2-{name}-{data}"
            scale = Scale(preset, _PRESET | {"dora": ("alice",)})
            row = scale.variant(variant, preset, f"{model}, SD-E2, {data}")
            yield replace(row, flags=(*row.flags, *_TRUSTED.get(name, ())))
        return
    exploring = "sd-e2" in variant.flags
    first_pair = "" if pair == "qwen" else f"{pair}-"
    preset = f"sd-e2-{first_pair}{data}" if exploring else f"core-{pair}-{data}"
    scale = Scale(preset, _PRESET | {"carol": ("bob",)})
    ending = [] if exploring else variant.name.split("-", 3)[3:]
    label = variant.label.replace("carol", "bob")
    row = scale.variant(variant, "-".join([preset, *ending]), f"{label}, {data}")
    if _NO_EXPLORATION[0] in row.flags:
        row = _exploration_that_pays(row, preset, data)
    yield row


def _exploration_that_pays(row: Variant, preset: str, data: str) -> Variant:
    """The ablation's other side. Equation 3 pays nothing to six traces under a cap of ten (Prop.
    B.1), so CoRe as printed is its own ablation: what can be trained is one that pays."""
    flags = tuple(word for word in row.flags if word not in _NO_EXPLORATION)
    return replace(
        row,
        name=f"{preset}-leave-one-out",
        label=f"exploration by leave-one-out, {data}",
        flags=(*flags, "--env.explore-mode", "leave-one-out"),
    )


_GSM8K = ("gsm8k",)
_SCALES = {
    "core-1": ("qwen", _MEASURED),
    "core-2": ("reasoning", _MEASURED),
    "core-4": ("reasoning", _MEASURED),
    "core-5": ("qwen", _GSM8K),
    "core-6": ("reasoning", _MEASURED[1:]),
}
_ABLATED = ("core-5", "core-6")
AT_SCALE = {
    name: _at_scale(_SCALES[name][0], table, _SCALES[name][1]) if name in _SCALES else table
    for name, table in TABLES.items()
}
for _name in _ABLATED:
    AT_SCALE[_name] = replace(
        AT_SCALE[_name],
        note="Equation 3 pays nothing to six traces under a cap of ten: the row CoRe is also the "
        "paper's row without exploration",
    )

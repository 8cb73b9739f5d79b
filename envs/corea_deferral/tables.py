"""The tables and figures of COREA (arXiv:2603.03752): small, and with the paper's own models and
data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from coterie.envs.corea_deferral.presets import AVERAGES, MEASURED
from coterie.envs.paper_tables import Columns, Scale, Table, Variant

_TRAIN = ("--env", "corea-deferral", "--algo", "grpo")
_NO_REWARD = ("--env.confidence-reward", "none")


def _reward(name: str, label: str, kind: str, target: str) -> Variant:
    flags = ("--env.confidence-reward", kind, "--env.p-hat", target)
    return Variant(f"corea-{name}", label, (*_TRAIN, *flags))


_L1 = Variant("corea", "L1", _TRAIN)
_SMALLER = Variant("corea-smaller", "L1", (*_TRAIN, "--agents.small.model", "tiny:smaller"))
_RLVR = Variant("corea-rlvr", "RLVR", (*_TRAIN, *_NO_REWARD))
_BRIER = _reward("brier", "Brier", "l2", "sample")
_REWARDS = (
    _L1,
    _reward("sample-l1", "Sample L1", "l1", "sample"),
    _reward("l2", "L2", "l2", "group"),
    _BRIER,
    _reward("kl", "KL", "kl", "group"),
    _reward("sample-kl", "Sample KL", "kl", "sample"),
)
_SIZES = (
    Variant("corea-4", "4 traces", (*_TRAIN, "--env.traces", "4")),
    Variant("corea", "8 traces", _TRAIN),
    Variant("corea-16", "16 traces", (*_TRAIN, "--env.traces", "16")),
    Variant("corea-32", "32 traces", (*_TRAIN, "--env.traces", "32")),
)
_SYSTEMS = {
    "slm": "SLM",
    "rlvr": "RLVR-SLM",
    "brier": "Brier-SLM",
    "l1": "L1-SLM",
    "llm": "LLM",
    "slm-verb": "SLM-Verb",
    "rlvr-verb": "RLVR-Verb",
    "rlvr-avgprob": "RLVR-AvgProb",
    "rlvr-probe": "RLVR-Probe",
    "router": "Router+RLVR",
    "brier-verb": "Brier-Verb",
    "corea": "COREA",
}
_SETS = {
    "DeepMath500": "recall",
    "Math500": "recall?max_length=3",
    "GSM8K": "recall?max_length=2",
    "OlympiadBench": "recall?min_length=4&max_length=5",
    "GPQA": "recall?named=0.8",
    "CommonsenseQA": "recall?named=0.8&max_length=2",
}
_STANDS_FOR = dict(zip(MEASURED, _SETS.values(), strict=True))
_ALL_SETS = ("--problems", *_SETS.values())
_OF_TABLE_1 = (
    "--averages",
    *(f"{name}={' '.join(_STANDS_FOR[each] for each in own)}" for name, own in AVERAGES.items()),
)
_MODELS = ("--corea", "{corea}", "--rlvr", "{corea-rlvr}", "--brier", "{corea-brier}")
_INSTEAD = (
    "recall for DeepMath; tiny:small and tiny:large for 7B and 32B; a run's own defaults (the "
    "confidence weighs 4) for the paper's, which corea-tiny has"
)
_SIX = f"{_INSTEAD}; six kinds of recall for the six sets"


def _costs(*path: str, of: str = "") -> Columns:
    """Pass@1, cost and LLM% of the systems, from ``path`` in the comparison's results."""
    named = {"Pass@1": "accuracy", "cost": "cost", "LLM": "deferred"}
    return {f"{head}{of}": (*path, "{row}", key, "value") for head, key in named.items()}


def _means(*path: str, of: str = "", accuracy: str = "accuracy") -> Columns:
    """Pass@1, ECE and AUROC, each mean and standard deviation over runs."""
    named = {"Pass@1": accuracy, "ECE": "ece", "AUROC": "auroc"}
    return {
        f"{head}{kind}{of}": (*path, "{row}", key, stored)
        for head, key in named.items()
        for kind, stored in (("", "mean"), (" sd", "std"))
    }


# Headings of table 1 for a terminal.
_SHORT = {"OOD Math": " OOD math", "OOD Non-Math": " OOD other"}
_TABLE_1 = {
    **_costs("sets", _SETS["DeepMath500"], of=" DeepMath"),
    **{k: v for name, of in _SHORT.items() for k, v in _costs("averages", name, of=of).items()},
}


def _all_systems(problems: str, title: str) -> Table:
    return Table(
        title,
        (_L1, _RLVR, _BRIER),
        {
            **_costs("systems"),
            "over random": ("systems", "{row}", "random_gain", "value"),
            "given": ("systems", "{row}", "output_ratio", "value"),
        },
        comparison=("corea", *_MODELS, "--problems", problems),
        rows=_SYSTEMS,
        instead=_INSTEAD if problems == "recall" else f"{_INSTEAD}; here {problems}",
    )


def _suite(
    title: str,
    variants: Sequence[Variant],
    columns: Columns,
    sets: Iterable[str],
    untrained: Mapping[str, tuple[str, str]] | None = None,
    bars: tuple[str, ...] = (),
) -> Table:
    """Small models alone on several sets; ``untrained`` is name -> (label, model)."""
    untrained = untrained or {}
    models = [f"{name}={model}" for name, (_, model) in untrained.items()]
    agents = [f"{variant.name}={{{variant.name}}}" for variant in variants]
    rows = {name: label for name, (label, _) in untrained.items()}
    return Table(
        title,
        tuple(variants),
        columns,
        comparison=(
            *("suite", "--suite", "corea", "--policies", *models, *agents),
            *("--problems", *(_SETS[short] for short in sets)),
        ),
        rows=rows | {variant.name: variant.label for variant in variants},
        instead=_SIX,
        bars=bars,
    )


_AVERAGE = ("suites", "corea", "runs")


def _by_set(sets: Iterable[str]) -> Columns:
    """Pass@1, ECE and AUROC, set by set."""
    columns: dict[str, tuple[str, ...]] = {}
    for short in sets:
        path = ("suites", "corea", "sets", _SETS[short], "runs")
        columns |= _means(*path, of=f" {short[:8]}")
    return columns


_FIRST, _SECOND = [*_SETS][:3], [*_SETS][3:]
_UNTRAINED = {"base": ("SLM", "tiny:small")}
_BY_REWARD = (_RLVR, *_REWARDS)
_POINTS = ("0", "0.2", "0.4", "0.6", "0.8", "1", "1.1")
_FIGURE_2 = {
    f"{head} at {threshold}": ("at threshold", "{row}", threshold, key)
    for threshold in _POINTS
    for head, key in {"Pass@1": "accuracy", "cost": "cost", "LLM": "deferred"}.items()
}


def _sizes_of_model(sizes: Mapping[str, tuple[str, Variant, Variant]]) -> dict[str, Table]:
    """Figures 4 and 9; ``sizes`` is label -> (model, RLVR's run, L1's run)."""
    variants: list[Variant] = []
    labels: dict[str, str] = {}
    for size, (_, rlvr, l1) in sizes.items():
        names = (f"base-{size}", rlvr.name, l1.name)
        labels |= dict(zip(names, (f"{kind}, {size}" for kind in ("Base", "RLVR", "L1"))))
        variants += [replace(rlvr, label=f"RLVR, {size}"), replace(l1, label=f"L1, {size}")]
    untrained = {f"base-{s}": (f"Base, {s}", model) for s, (model, *_) in sizes.items()}
    alone = ("Pass@1", "ECE")
    by_set = {
        f"{head} {name}": ("suites", "corea", "sets", problems, "runs", "{row}", key, "mean")
        for name, problems in _SETS.items()
        for head, key in (("Pass@1", "accuracy"), ("ECE", "ece"))
    }
    average = {name: keys for name, keys in _means(*_AVERAGE).items() if "AUROC" not in name}
    four = _suite("Models of several sizes", variants, average, _SETS, untrained, alone)
    nine = _suite(
        "Models of several sizes, set by set", variants, by_set, _SETS, untrained, (*by_set,)
    )
    # Model by model, as the figures are.
    return {
        f"corea-figure-{n}": replace(table, rows={name: labels[name] for name in labels})
        for n, table in ((4, four), (9, nine))
    }


def _trained(name: str, *flags: str) -> tuple[Variant, Variant]:
    """(RLVR, L1) of one model."""
    return Variant(f"{name}-rlvr", "", (*flags, *_NO_REWARD)), Variant(name, "", flags)


_LARGER = (*_TRAIN, "--train-role", "large")
_TINY_SIZES = {
    "smaller": (
        "tiny:smaller",
        *_trained("corea-smaller", *_TRAIN, "--agents.small.model", "tiny:smaller"),
    ),
    "small": ("tiny:small", *_trained("corea", *_TRAIN)),
    "large": ("tiny:large", *_trained("corea-large", *_LARGER)),
}
_PAPERS_SIZES = {
    size: (model, *_trained(f"corea-{preset}", "--preset", f"corea-{preset}"))
    for size, preset, model in (
        ("1.5B", "qwen-1.5b", "Qwen/Qwen2.5-1.5B-Instruct"),
        ("7B", "qwen-7b", "Qwen/Qwen2.5-7B-Instruct"),
        ("8B", "llama-8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("32B", "qwen-32b", "Qwen/Qwen2.5-32B-Instruct"),
    )
}

TABLES = {
    "corea-1": replace(
        _all_systems("recall", "All systems: accuracy, cost, share that the large model answers"),
        columns=_TABLE_1,
        comparison=("corea", *_MODELS, *_ALL_SETS, *_OF_TABLE_1),
        instead=_SIX,
    ),
    "corea-2": Table(
        "Calibration of the small models, mean over the sets",
        (_L1, _RLVR, _BRIER),
        _means("runs", "systems", accuracy="accuracy_small"),
        comparison=("corea", *_MODELS, *_ALL_SETS),
        rows={
            "slm-verb": "SLM-Verb",
            "rlvr-verb": "RLVR-Verb",
            "rlvr-avgprob": "RLVR-AvgProb",
            "rlvr-probe": "RLVR-Probe",
            "router": "Router",
            "brier-verb": "Brier",
            "corea": "L1",
        },
        instead=_SIX,
    ),
    "corea-3": _suite("Confidence rewards, mean over the sets", _REWARDS, _means(*_AVERAGE), _SETS),
    "corea-4": _suite("Traces of a group, mean over the sets", _SIZES, _means(*_AVERAGE), _SETS),
    **{
        f"corea-{number}": _all_systems(problems, f"All systems on what stands for {name}")
        for number, (name, problems) in enumerate(_SETS.items(), 5)
    },
    "corea-11": Table(
        "A smaller small model (1.5B)",
        (_SMALLER,),
        _TABLE_1,
        comparison=(
            *("corea", "--base", "tiny:smaller", "--corea", "{corea-smaller}"),
            *("--size-ratio", str(32 / 1.5), *_ALL_SETS, *_OF_TABLE_1),
        ),
        rows={"slm": "SLM", "l1": "L1-SLM", "llm": "LLM", "slm-verb": "SLM-Verb", "corea": "COREA"},
        instead=_SIX.replace("tiny:small and tiny:large for 7B and 32B", "tiny:smaller for 1.5B"),
    ),
    "corea-12": _suite(
        "Confidence rewards, set by set (1)", _BY_REWARD, _by_set(_FIRST), _FIRST, _UNTRAINED
    ),
    "corea-13": _suite(
        "Confidence rewards, set by set (2)", _BY_REWARD, _by_set(_SECOND), _SECOND, _UNTRAINED
    ),
    "corea-14": _suite("Traces of a group, set by set (1)", _SIZES, _by_set(_FIRST), _FIRST),
    "corea-15": _suite("Traces of a group, set by set (2)", _SIZES, _by_set(_SECOND), _SECOND),
    "corea-figure-2": replace(
        _all_systems("recall", "All systems at thresholds from 0 to 1.1"),
        columns=_FIGURE_2,
        rows={name: label for name, label in _SYSTEMS.items() if "-" in name or name == "corea"}
        | {"router": _SYSTEMS["router"]},
        note="accuracy_cost.png and threshold.png of each seed's folder are the figure",
    ),
    **_sizes_of_model(_TINY_SIZES),
}

_PRESET = dict.fromkeys(
    (
        *("--env", "corea-deferral", "--algo", "grpo", "--agents.small.model", "--base"),
        *("tiny:smaller", "--size-ratio", str(32 / 1.5)),
    ),
    (),
)
# Longer names first: each begins with "recall".
_NAMES = {
    **{tiny: name for name, tiny in sorted(_STANDS_FOR.items(), key=lambda pair: -len(pair[1]))},
    "tiny:small": "Qwen/Qwen2.5-7B-Instruct",
}
_LARGE_RUN = Variant("corea-qwen-32b", "LLM", ("--preset", "corea-qwen-32b"))
_WITHOUT_SIZES = ("corea-figure-4", "corea-figure-9")


def _at_scale(name: str, small: Table) -> Table:
    preset = "corea-qwen-1.5b-step-30" if name == "corea-11" else "corea-qwen-7b"
    cascade = small.comparison[:1] == ("corea",)
    scale = Scale(preset, _PRESET, _NAMES)
    paper = "corea-smaller" if name == "corea-11" else "corea"
    at_scale = scale.table(small, paper, (_LARGE_RUN,) if cascade else ())
    large = ("--large", "{corea-qwen-32b}") if cascade else ()
    return replace(at_scale, comparison=(*at_scale.comparison, *large))


def _figures_at_scale() -> dict[str, Table]:
    scale = Scale("corea-qwen-7b", {}, _NAMES)
    figures: dict[str, Table] = {}
    for name, table in _sizes_of_model(_PAPERS_SIZES).items():
        head, *words = table.comparison
        figures[name] = replace(
            table,
            columns={key: tuple(map(scale.named, keys)) for key, keys in table.columns.items()},
            comparison=(head, "--preset", scale.preset, *map(scale.named, words)),
            instead="",
        )
    return figures


AT_SCALE = {
    name: _at_scale(name, table) for name, table in TABLES.items() if name not in _WITHOUT_SIZES
} | _figures_at_scale()

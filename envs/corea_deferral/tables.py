"""The tables of COREA (arXiv:2603.03752): small, and with the paper's own models and data."""

from dataclasses import replace

from coterie.envs.paper_tables import Scale, Table, Variant

_TRAIN = ("--env", "corea-deferral", "--algo", "grpo")


def _reward(name: str, label: str, kind: str, target: str) -> Variant:
    flags = ("--env.confidence-reward", kind, "--env.p-hat", target)
    return Variant(f"corea-{name}", label, (*_TRAIN, *flags))


_L1 = Variant("corea", "L1", _TRAIN)
_SMALLER = Variant("corea-smaller", "L1", (*_TRAIN, "--agents.small.model", "tiny:smaller"))
_RLVR = Variant("corea-rlvr", "RLVR", (*_TRAIN, "--env.confidence-reward", "none"))
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
_COSTS = {
    "Pass@1": ("systems", "{row}", "accuracy", "value"),
    "cost": ("systems", "{row}", "cost", "value"),
    "LLM": ("systems", "{row}", "deferred", "value"),
    "over random": ("systems", "{row}", "random_gain", "value"),
}
_CALIBRATION = {
    "Pass@1": ("systems", "{row}", "accuracy_small", "value"),
    "ECE": ("systems", "{row}", "ece", "value"),
    "AUROC": ("systems", "{row}", "auroc", "value"),
}
_TRAINED = {"Pass@1": ("pass@1/small",), "ECE": ("ece",), "AUROC": ("auroc",)}
_MODELS = ("--corea", "{corea}", "--rlvr", "{corea-rlvr}", "--brier", "{corea-brier}")
_INSTEAD = "recall for DeepMath; tiny:small and tiny:large for 7B and 32B"


def _main(problems: str, title: str) -> Table:
    return Table(
        title,
        (_L1, _RLVR, _BRIER),
        _COSTS,
        comparison=("corea", *_MODELS, "--problems", problems),
        rows=_SYSTEMS,
        instead=_INSTEAD if problems == "recall" else f"{_INSTEAD}; here {problems}",
    )


def _by_set(title: str, variants: tuple[Variant, ...], sets: list[str]) -> Table:
    """Pass@1, ECE and AUROC of every variant, set by set."""
    columns: dict[str, tuple[str, ...]] = {}
    for short in sets:
        place = ("suites", "corea", "sets", _SETS[short])
        columns |= {
            short: (*place, "rows", "{row}"),
            f"ECE {short[:4]}": (*place, "policies", "{row}", "stated", "ece", "value"),
            f"AUROC {short[:4]}": (*place, "policies", "{row}", "stated", "auroc", "value"),
        }
    agents = [f"{variant.name}={{{variant.name}}}" for variant in variants]
    problems = [_SETS[short] for short in sets]
    return Table(
        title,
        variants,
        columns,
        comparison=("suite", "--suite", "corea", "--policies", *agents, "--problems", *problems),
        rows={variant.name: variant.label for variant in variants},
        instead=f"{_INSTEAD}; sets: {', '.join(problems)}",
    )


TABLES = {
    "corea-1": _main("recall", "All systems: accuracy, cost, share that the large model answers"),
    "corea-2": Table(
        "Calibration of the small models",
        (_L1, _RLVR, _BRIER),
        _CALIBRATION,
        comparison=("corea", *_MODELS),
        rows={
            "slm-verb": "SLM-Verb",
            "rlvr-verb": "RLVR-Verb",
            "rlvr-avgprob": "RLVR-AvgProb",
            "rlvr-probe": "RLVR-Probe",
            "router": "Router",
            "brier-verb": "Brier",
            "corea": "L1",
        },
        instead=_INSTEAD,
    ),
    "corea-3": Table("Confidence rewards", _REWARDS, _TRAINED, base="SLM", instead=_INSTEAD),
    "corea-4": Table("Traces of a group", _SIZES, _TRAINED, instead=_INSTEAD),
    **{
        f"corea-{place}": _main(problems, f"All systems on what stands for {name}")
        for place, (name, problems) in enumerate(_SETS.items(), 5)
    },
    "corea-11": Table(
        "A smaller small model (1.5B)",
        (_SMALLER,),
        _COSTS,
        comparison=(
            *("corea", "--base", "tiny:smaller", "--corea", "{corea-smaller}"),
            *("--size-ratio", str(32 / 1.5)),
        ),
        rows={"slm": "SLM", "l1": "L1-SLM", "llm": "LLM", "slm-verb": "SLM-Verb", "corea": "COREA"},
        instead="recall for all sets; tiny:smaller and tiny:large for 1.5B and 32B",
    ),
    "corea-12": _by_set("Confidence rewards, set by set (1)", _REWARDS, [*_SETS][:3]),
    "corea-13": _by_set("Confidence rewards, set by set (2)", _REWARDS, [*_SETS][3:]),
    "corea-14": _by_set("Traces of a group, set by set (1)", _SIZES, [*_SETS][:3]),
    "corea-15": _by_set("Traces of a group, set by set (2)", _SIZES, [*_SETS][3:]),
}

_HUB = ("deepmath", "math500", "gsm8k", "olympiadbench", "gpqa-main", "commonsenseqa")
_PRESET = dict.fromkeys(
    (
        *("--env", "corea-deferral", "--algo", "grpo", "--agents.small.model", "--base"),
        *("tiny:smaller", "--size-ratio", str(32 / 1.5)),
    ),
    (),
)
# Longer names first: each begins with "recall".
_SET_NAMES = dict(sorted(zip(_SETS.values(), _HUB), key=lambda pair: -len(pair[0])))
_LARGE_RUN = Variant("corea-qwen-32b", "LLM", ("--preset", "corea-qwen-32b"))


def _at_scale(name: str, small: Table) -> Table:
    preset = "corea-qwen-1.5b-step-30" if name == "corea-11" else "corea-qwen-7b"
    cascade = small.comparison[:1] == ("corea",)
    scale = Scale(preset, _PRESET, _SET_NAMES)
    paper = "corea-smaller" if name == "corea-11" else "corea"
    at_scale = scale.table(small, paper, (_LARGE_RUN,) if cascade else ())
    large = ("--large", "{corea-qwen-32b}") if cascade else ()
    return replace(at_scale, comparison=(*at_scale.comparison, *large))


AT_SCALE = {name: _at_scale(name, table) for name, table in TABLES.items()}

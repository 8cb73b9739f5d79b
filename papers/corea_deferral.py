"""COREA (arXiv:2603.03752): its settings and its tables.

"Framework" is SimpleRL-reason v1, whose defaults the paper keeps (section 4.4).
"""

from dataclasses import replace

from coterie.papers.preset import ADAMW, TINY, Departure, Preset, Scale, Setting, Table, Variant

_SETTINGS = {
    "env.traces": Setting(8, "section 4.4"),
    "env.eval_traces": Setting(10, "section 4.4", "two are enough for a first look"),
    "env.confidence_reward": Setting("l1", "eq. 2; section 4.2"),
    "env.p_hat": Setting("group", "eq. 6"),
    "env.w_correct": Setting(1.0, "eq. 1"),
    "env.w_format": Setting(1.0, "eq. 1"),
    "env.w_confidence": Setting(1.0, "eq. 1", "calibrated sooner, and as right"),
    "env.max_new_tokens": Setting(4096, "section 4.4", TINY),
    "env.stop": Setting(
        (), "section 3.1", "a tiny model's words behind it are paid for by nothing, and grow"
    ),
    "env.threshold_source": Setting(
        "large-pass@1",
        "section 5.1, table 1",
        "a confidence is no accuracy of another model: choose what the threshold is for",
    ),
    "env.threshold_on_test": Setting(
        True, "section 5.1, table 1", "the paper reads the threshold off the test labels"
    ),
    "env.output_weight": Setting(4.0, "section 4.3"),
    "agents.tuning": Setting("full", "section 4.4", "LoRA for anything that is not tiny"),
    "learner.lr": Setting(5e-7, "section 4.4", TINY),
    **ADAMW,
    "learner.weight_decay": Setting(0.01, "framework", "nothing to regularise in a short run"),
    "learner.schedule": Setting("constant", "framework", "a short run"),
    "learner.max_grad_norm": Setting(1.0, "framework"),
    "learner.epochs": Setting(1, "framework"),
    "learner.minibatches": Setting(
        4,
        "section 4.4",
        "one update a step",
        paper="batches of 1,024 in the rollout and of 256 in training, of what is not said",
        departs="both of questions, as the framework counts them: four updates",
    ),
    "learner.importance_correction": Setting(
        "none", "framework", "it costs nothing, and cures a sampler that disagrees with the trainer"
    ),
    "rollout.problems_per_step": Setting(1024, "section 4.4", TINY),
    "rollout.temperature": Setting(1.0, "section 4.4"),
    "rollout.top_p": Setting(1.0, "framework"),
    "rollout.top_k": Setting(0, "framework"),
    "eval.temperature": Setting(0.6, "section 4.4", "calibration holds for what was trained"),
    "eval.top_p": Setting(1.0, "section 4.4 names none", "that of training, which is the same"),
    "problems.train": Setting("deepmath", "section 4.1", TINY),
    "problems.limit": Setting(16_000, "section 4.1", "a generator has no end"),
    "problems.held_out": Setting(500, "section 4.1", "512 of a generator"),
    "run.checkpoint_every": Setting(10, "ours", "tiny checkpoints are cheap"),
}
_CREDIT = {
    "algo.baseline": Setting("group-mean", "framework"),
    "algo.scale": Setting("group-std", "framework"),
    "algo.ddof": Setting(1, "framework"),
    "algo.epsilon": Setting(1e-6, "framework", "TRL's; a tiny one turns rounding into advantages"),
    "algo.combine": Setting("sum-then-normalise", "eq. 1"),
    "algo.surrogate.low": Setting(0.2, "framework"),
    "algo.surrogate.high": Setting(0.2, "framework"),
    "algo.reduction": Setting("token-mean", "framework", "the mean of GRPO's paper"),
    "algo.kl_coefficient": Setting(1e-4, "section 4.4", "off unless asked for"),
    "algo.kl_estimator": Setting("k3", "framework"),
    "algo.entropy_coefficient": Setting(
        1e-3, "section 4.4", "a bonus on entropy spreads confidences at random"
    ),
}
_LARGE = "Qwen/Qwen2.5-32B-Instruct"
# Name -> small model, nominal size ratio, steps and where they stand.
_PAIRS = {
    "qwen-7b": ("Qwen/Qwen2.5-7B-Instruct", 32 / 7, 80, "section 4.4"),
    "qwen-1.5b": ("Qwen/Qwen2.5-1.5B-Instruct", 32 / 1.5, 150, "section 4.4"),
    "qwen-1.5b-step-30": ("Qwen/Qwen2.5-1.5B-Instruct", 32 / 1.5, 30, "appendix D, table 11"),
    "llama-8b": ("meta-llama/Llama-3.1-8B-Instruct", 32 / 8, 120, "section 4.4"),
}


def _preset(
    small: str, ratio: float, steps: int, source: str, train_role: tuple[str, ...] = ()
) -> Preset:
    return Preset(
        paper="arXiv:2603.03752",
        env="corea-deferral",
        algo="grpo",
        models={"small": small, "large": _LARGE},
        settings={
            **_SETTINGS,
            "env.size_ratio": Setting(ratio, "section 4.3; nominal sizes", "that of the 7B model"),
            "run.steps": Setting(steps, source, TINY),
        },
        algos={"grpo": _CREDIT},
        train_role=train_role,
    )


PRESETS = {f"corea-{name}": _preset(*pair) for name, pair in _PAIRS.items()} | {
    # The large model of all cascades, trained in the same way.
    "corea-qwen-32b": _preset(*_PAIRS["qwen-7b"][:2], 50, "sections 4.2, 4.4", ("large",))
}

DEPARTURES = (
    Departure(
        "the large model",
        "trained like the small one (section 4.2, baseline LLM)",
        "as published, until `--agents.large.model` names what a run of corea-qwen-32b trained",
        "a preset cannot name a run of yours",
    ),
    Departure(
        "reward of the format",
        "within [0, 1], with no formula (section 3.2)",
        "a third each for one boxed answer, a confidence after it, and the question's language",
        "what the sentence lists",
    ),
    Departure(
        "no confidence, or one outside of [0, 1]",
        "not said",
        "earns -1, and is deferred",
        "silence is not better than a bad number; table 1's SLM-Verb defers it",
    ),
    Departure(
        "sign of eq. 5",
        "pays the worst confidence most, as printed",
        "negated (`--env.confidence-reward kl`)",
        "eq. 4 is a distance",
    ),
    Departure(
        "sets that measure",
        "six (section 4.1)",
        f"{_SETTINGS['problems.held_out'].value} held-out problems of DeepMath; the others by "
        "`benchmark.py --suite corea`",
        "a run has one threshold, and the paper one for each set",
    ),
    Departure(
        "router's prompt",
        "<10B in section 4.2, ≤10B in appendix A.2",
        "<10B",
        "one had to be chosen",
    ),
)

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
    found = scale.table(small, paper, (_LARGE_RUN,) if cascade else ())
    large = ("--large", "{corea-qwen-32b}") if cascade else ()
    return replace(found, comparison=(*found.comparison, *large))


AT_SCALE = {name: _at_scale(name, table) for name, table in TABLES.items()}

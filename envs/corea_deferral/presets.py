"""COREA (arXiv:2603.03752): its settings.

"Framework" is SimpleRL-reason v1, whose defaults the paper keeps (section 4.4).
"""

from coterie.envs.preset import ADAMW, TINY, Departure, Preset, Setting, miniature

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
        (), "section 3.1", "a tiny model's words after it are paid for by nothing, and grow"
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
    "scoring.checker": Setting(
        "math-verify",
        "section 4.1",
        "a policy learns what math-verify pays: it reads what it can, and drops the rest",
    ),
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
MEASURED = {
    "deepmath": 500,
    "math500": 500,
    "gsm8k": 1319,
    "olympiadbench": 674,
    # All of it: without a split a fifth is left for CoRe to measure with.
    "gpqa-main?split=train": 448,
    "commonsenseqa": 1221,
}
"""Set -> its questions (section 4.1); DeepMath's are held out of what trains."""
AVERAGES = {
    "OOD Math": ("math500", "gsm8k", "olympiadbench"),
    "OOD Non-Math": ("gpqa-main?split=train", "commonsenseqa"),
}
"""Table 1's columns -> their sets."""
_COMPARISON = {
    "problems": Setting((*MEASURED,), "section 4.1"),
    "averages": Setting(
        tuple(f"{name}={' '.join(sets)}" for name, sets in AVERAGES.items()), "table 1"
    ),
    "fit_problems": Setting("deepmath", "appendices A.1, A.2"),
    "fit_questions": Setting(16_000, "appendices A.1, A.2; section 4.1"),
    "probe_lr": Setting(5e-5, "appendix A.1"),
    "probe_epochs": Setting(20, "appendix A.1"),
    "probe_batch": Setting(
        32,
        "appendix A.1",
        paper="a batch of 32 on each device, of how many is not said (appendix A.1)",
        departs="one device fits a probe in minutes",
    ),
    "router_lr": Setting(5e-5, "appendix A.2"),
    "router_epochs": Setting(2, "appendix A.2"),
    "router_batch": Setting(
        32,
        "appendix A.2",
        paper="8 on each device, accumulated over 4 steps, on how many devices is not said "
        "(appendix A.2)",
        departs="8 times 4, those of one device",
    ),
    "router_tuning": Setting(
        "full",
        "ours",
        paper="supervised fine-tuning, of which weights is not said (appendix A.2)",
        departs="the weights that the small model's training changes, too",
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
        comparison=_COMPARISON,
    )


PUBLISHED = {f"corea-{name}": _preset(*pair) for name, pair in _PAIRS.items()} | {
    # The large model of all cascades, trained in the same way.
    "corea-qwen-32b": _preset(*_PAIRS["qwen-7b"][:2], 50, "sections 4.2, 4.4", ("large",))
}
MINIATURE = miniature(
    "corea-qwen-7b",
    PUBLISHED["corea-qwen-7b"],
    at_default={
        **dict.fromkeys(
            (
                *("env.max_new_tokens", "learner.lr", "rollout.problems_per_step", "run.steps"),
                *("problems.limit", "problems.held_out"),
            ),
            TINY,
        ),
        "learner.betas": "the tiny team's",
        "agents.tuning": "tiny models are trained whole",
        "run.checkpoint_every": "tiny checkpoints are cheap",
    },
    instead={
        "problems.train": Setting(
            "recall",
            "ours",
            paper="DeepMath16K",
            departs="what a tiny model can know or not know",
        ),
        "scoring.checker": Setting(
            "default",
            "ours",
            paper="math_verify",
            departs="answers are single digits, which both read alike, one of them in no time",
        ),
    },
)
"""COREA as published with the tiny team: the full-size preset in everything but its size."""

PRESETS = PUBLISHED | {"corea-tiny": MINIATURE}

DEPARTURES = (
    Departure(
        "the large model",
        "trained like the small one (section 4.2, baseline LLM)",
        "as published, until `--agents.large.model` names what a run of corea-qwen-32b trained",
        "a preset cannot name a run of yours",
    ),
    Departure(
        "math_verify",
        "version and settings not said (section 4.1)",
        "0.9 with its own settings, for kinds math, number and list; it reads the last box, or all "
        "of an answer without one. `--scoring.checker default` is stricter",
        "other sets are graded by exact match, as in the paper",
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
        f"{_SETTINGS['problems.held_out'].value} held-out problems of DeepMath in a run; all six "
        "by `benchmark.py corea --preset` and `benchmark.py suite --preset`",
        "a run has one threshold, and the paper one for each set",
    ),
    Departure(
        "OlympiadBench",
        "which part, and how many questions, is not said (section 4.1)",
        "the 674 open-ended questions of mathematics in English without a picture",
        "what averages over the sets in tables 1 and 2 imply",
    ),
    Departure(
        "CommonsenseQA",
        "1,221 questions, of which part is not said (section 4.1)",
        "its validation part, which has so many",
        "its test part has no labels",
    ),
    Departure(
        "ECE",
        "bins not said (eq. 7)",
        "ten bins of equal width, closed on the left; responses without a confidence are left out",
        "the usual number",
    ),
    Departure(
        "schedule of probe and router",
        "not said (appendices A.1, A.2)",
        "constant, without decay of the router's weights",
        "the optimizer is all that is named",
    ),
    Departure(
        "hidden states of the probe",
        "averaged, raw (appendix A.1)",
        "averaged over question and response, then standardised",
        "models have states of different scales; a linear layer can undo it",
    ),
    Departure(
        "router's prompt",
        "<10B in section 4.2, ≤10B in appendix A.2",
        "<10B",
        "one had to be chosen",
    ),
)

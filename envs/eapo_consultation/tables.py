"""The tables of EAPO (arXiv:2509.23730): small, and with the paper's own models and data."""

from dataclasses import replace

from coterie.envs.eapo_consultation.presets import EXPERT, POLICIES
from coterie.envs.paper_tables import Scale, Table, Variant

_TRAIN = ("--preset", "eapo-tiny")


def _variant(name: str, label: str, *flags: str) -> Variant:
    return Variant(name, label, (*_TRAIN, *flags))


def _expert(name: str, label: str, player: str) -> Variant:
    return _variant(name, label, "--agents.expert.model", player)


def _schedule(name: str, label: str) -> Variant:
    # Equal help for all: what the preset lets in over its 60 steps.
    flags = ("--env.schedule", name, "--env.accept-total", "30.5", "--env.accept-steps", "100")
    return _variant(f"eapo-{name}", label, *flags)


_FULL = Variant("eapo", "EAPO", _TRAIN)
_RL = _variant("eapo-rl", "Self-exploratory RL", "--env.consult", "never")
_OTHER_POLICY = ("--agents.policy.model", "tiny:pupil")
_PUPIL = _variant("eapo-pupil", "EAPO", *_OTHER_POLICY)
_PUPIL_RL = _variant(
    "eapo-pupil-rl", "Self-exploratory RL", *_OTHER_POLICY, "--env.consult", "never"
)
_DISTILLED = Variant("eapo-distilled", "Distillation", (), "distill")
_DISTILLED_LORA = Variant(
    "eapo-distilled-lora", "Distillation, LoRA", ("--tuning", "lora"), "distill"
)
_TRAINED = {
    "avg@n": ("avg@n/alone",),
    "between": ("var_between/alone",),
    "within": ("var_within/alone",),
    "F1": ("f1/alone",),
    "F1 between": ("f1_var_between/alone",),
    "asks": ("consult_rate",),
}
_COMPARED = {
    "avg@n": ("systems", "{row}", "avg@n", "value"),
    "between": ("systems", "{row}", "variance", "between"),
    "within": ("systems", "{row}", "variance", "within"),
    "F1": ("systems", "{row}", "f1"),
    "F1 between": ("systems", "{row}", "f1_variance", "between"),
    "tokens": ("systems", "{row}", "tokens"),
}
_OTHER = "chains?mix=0,1,0&min_length=3&max_length=3&answer=all"
_LONGER = "chains?mix=0,1,0&min_length=5&max_length=5&answer=all"
_PLUS_MINUS = "chains?mix=1,0,0&min_length=4&max_length=4&answer=all"
_INSTEAD = "chains for DAPO-Math and AIME; tiny:policy and tiny:expert for 7B and 32B"
_OFFLINE = ("eapo", "--no-noise", "--no-peers", "--pools", "pool:tiny:policy|tiny:expert")
_OFFLINE_ROWS = {
    "base": "Policy",
    "other-0": "Expert",
    "self": "Policy, helped by itself",
    "workflow": "Policy, helped by the expert",
    "pool-0": "Policy, helped by both",
}
_STRONGER = tuple(f"scripted:oracle?p_right={p}&template={{solution}}" for p in (0.6, 0.8, 1))
_SETS = {"shorter": _OTHER, "longer": _LONGER, "+ and -": _PLUS_MINUS}

TABLES = {
    "eapo-1": Table(
        "All systems",
        (_FULL, _RL, _DISTILLED, _DISTILLED_LORA),
        _COMPARED,
        comparison=(
            *("eapo", "--no-noise", "--eapo", "{eapo}", "--rl", "{eapo-rl}"),
            *("--distilled", "{eapo-distilled}", "--distilled-lora", "{eapo-distilled-lora}"),
        ),
        rows={
            "base": "Base",
            "self": "Self-collaboration",
            "workflow": "Expert workflow",
            "peers": "LeaP",
            "distilled": "Distillation",
            "distilled_lora": "Distillation, LoRA",
            "rl": "Self-exploratory RL",
            "eapo": "EAPO",
        },
        instead=_INSTEAD,
    ),
    "eapo-2": Table(
        "One expert after another, and a weaker expert",
        (
            _variant("eapo-sequential", "Sequential", "--env.at-once", "1"),
            _expert("eapo-weaker", "Weaker", "scripted:oracle?p_right=0.5&template={solution}"),
            _FULL,
        ),
        _TRAINED,
        instead=f"{_INSTEAD}; a script that is right in half of all cases for 14B",
    ),
    "eapo-3": Table(
        "Pools of experts",
        (
            _expert("eapo-homogeneous", "Homogeneous", "tiny:policy"),
            # Llama-8B in the paper: another model, no better than the policy.
            _expert("eapo-heterogeneous", "Heterogeneous", "tiny:pupil"),
            _FULL,
        ),
        _TRAINED,
        instead=f"{_INSTEAD}; tiny:pupil for Llama-8B",
    ),
    "eapo-4": Table(
        "On other kinds of problems",
        (_FULL, _RL),
        {
            name: ("suites", "eapo", "sets", problems, "rows", "{row}")
            for name, problems in _SETS.items()
        },
        comparison=(
            *("suite", "--suite", "eapo", "--no-workflow", "--problems", *_SETS.values()),
            *("--policies", "base=tiny:policy", "rl={eapo-rl}", "eapo={eapo}"),
        ),
        rows={"base": "Base", "rl": "Self-exploratory RL", "eapo": "EAPO"},
        instead=f"{_INSTEAD}; other lengths and another family for code, knowledge and reading",
    ),
    "eapo-5": Table("Hyper-parameters", why_not="it lists settings; they are --preset eapo-..."),
    "eapo-6": Table(
        "The offline workflow: whose replies",
        (),
        _COMPARED,
        comparison=(*_OFFLINE, "--others", "Expert=tiny:expert"),
        rows=_OFFLINE_ROWS,
        instead=_INSTEAD,
    ),
    "eapo-7": Table(
        "The offline workflow on other kinds of problems",
        (),
        _COMPARED,
        comparison=(*_OFFLINE, "--others", "Expert=tiny:expert", "--problems", _OTHER),
        rows=_OFFLINE_ROWS,
        instead=f"{_INSTEAD}; shorter chains for code, knowledge and reading",
    ),
    "eapo-8": Table(
        "The offline workflow with bad experts",
        (),
        _COMPARED,
        # As often wrong as the paper's wrong experts (53 % to 63 %); at 1 the tiny one never is.
        comparison=("eapo", "--no-peers", "--reply-temperature", "2"),
        rows={"error": "Wrong experts", "useless": "Useless experts", "workflow": "Experts"},
        instead=f"{_INSTEAD}; the expert's replies are sampled at temperature 2, so that some err",
    ),
    "eapo-9": Table(
        "Schedules of fading",
        (
            _schedule("const", "constant"),
            _schedule("inv-sqrt", "s^-1/2"),
            _schedule("inv-sq", "s^-2"),
            _schedule("inv", "s^-1"),
        ),
        _TRAINED,
        instead=f"{_INSTEAD}; equal help for all schedules, 30.5 replies of 100",
    ),
    "eapo-10": Table(
        "The offline workflow with stronger experts",
        (),
        _COMPARED,
        comparison=("eapo", "--no-noise", "--no-peers", "--pools", *_STRONGER),
        rows={f"pool-{place}": f"right in {p}" for place, p in enumerate(("60 %", "80 %", "all"))},
        instead=f"{_INSTEAD}; scripts that are right more and more often for larger models",
    ),
    "eapo-11": Table(
        "Another policy (Qwen3-8B)",
        (_PUPIL, _PUPIL_RL),
        {"avg@n": _COMPARED["avg@n"], "Pass@n": ("systems", "{row}", "pass@n", "value")},
        comparison=(
            *("eapo", "--no-noise", "--no-peers", "--base", "tiny:pupil"),
            *("--eapo", "{eapo-pupil}", "--rl", "{eapo-pupil-rl}"),
        ),
        rows={
            "base": "Base",
            "workflow": "Expert workflow",
            "rl": "Self-exploratory RL",
            "eapo": "EAPO",
        },
        instead=f"{_INSTEAD}; tiny:pupil for Qwen3-8B",
    ),
}

_R1 = POLICIES["r1-7b"][0]
_WEAKER = "scripted:oracle?p_right=0.5&template={solution}"
_SERVED = "server:http://127.0.0.1:{}/v1?model={}&max_tokens=16384&max_reply_tokens=16384"
# Table 10's are served beside the expert.
_STRONGER_MODELS = ("Qwen3-235B-A22B", "GPT-5", "DeepSeek-V3.2")
_NAMES = {
    **{
        player: _SERVED.format(8001 + i, m)
        for i, (player, m) in enumerate(zip(_STRONGER, _STRONGER_MODELS))
    },
    _WEAKER: POLICIES["r1-14b"][0],
    "tiny:policy": _R1,
    "tiny:pupil": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "tiny:expert": EXPERT,
    # Kinds of problems that have one short answer.
    _OTHER: "gpqa-main",
    _LONGER: "mmlu",
    _PLUS_MINUS: "hotpotqa",
    "shorter": "GPQA",
    "longer": "MMLU",
    "+ and -": "HotpotQA",
}
_PRESET: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("--preset", "eapo-tiny", "--reply-temperature", "2"), ()
)
# Help as the paper has it: 1/s and so on as they are, and .02 of all replies.
_AS_THEY_ARE = dict.fromkeys(("--env.accept-total", "30.5", "--env.accept-steps", "100"), ())
_CONSTANT = {"const": ("const", "--env.accept-scale", "0.02")}
_DISTILL = (
    *("--policy", _R1, "--expert", EXPERT, "--problems", "dapo-17k", "--lr", "1e-5"),
    *("--max-new-tokens", "16384"),
)
# Another policy: the preset names it, and runs under its own name.
_QWEN3: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("--agents.policy.model", "--base", "tiny:pupil"), ()
)


def _at_scale(name: str, small: Table) -> Table:
    if name == "eapo-11":
        return Scale("eapo-qwen3-8b", _PRESET | _QWEN3, _NAMES).table(small, "eapo-pupil")
    words = _PRESET | (_AS_THEY_ARE | _CONSTANT if name == "eapo-9" else {})
    at_scale = Scale("eapo-r1-7b", words, _NAMES, _DISTILL).table(small, "eapo")
    rows = {
        row: _STRONGER_MODELS[int(row[-1])] if name == "eapo-10" else label
        for row, label in at_scale.rows.items()
    }
    return replace(at_scale, rows=rows)


AT_SCALE = {name: _at_scale(name, table) for name, table in TABLES.items()}

"""EAPO (arXiv:2509.23730): its settings and its tables."""

from papers.preset import ADAMW_BETAS, Preset
from papers.table import Table, Variant

# EAPO, arXiv:2509.23730, sections 2 and 3, table 5; what it leaves open from DAPO's recipe
# (arXiv:2503.14476), whose trainer it uses.
_EAPO_ENV = {
    "experts": 3,
    "group_size": 16,
    "consult": "free",
    "budget": 10,
    "budget_unit": "rounds",
    "turns_end": 0,
    "anneal_steps": 320,
    "schedule": "inv",
    "accept_scale": 1.0,
    "accept_start": 0,
    "accept_total": 0.0,
    "coin": "response",
    "draw_before_dispatch": False,
    "queries": "own",
    "answer_reward": "f1_literal",
    "at_once": 0,
    "consult_penalty": 0.0,
    "penalty_start": 0,
    "prompt_style": "panel",
    "max_new_tokens": 20480,
    "expert_max_new_tokens": 16384,
    "reply_tokens": 1024,
    "reply_thinking_tokens": 0,
    "eval_samples": 32,
}
_EAPO = {
    "problems": {"train": "dapo-17k", "eval": ("aime24",), "held_out": None},
    "learner": {
        "lr": 1e-6,
        "betas": ADAMW_BETAS,
        "weight_decay": 0.1,
        "warmup": 10,
        "schedule": "constant",
        "max_grad_norm": 1.0,
        "epochs": 1,
        "minibatches": 1,
    },
    "rollout": {"problems_per_step": 32, "temperature": 1.0, "top_p": 1.0, "top_k": 0},
    "eval": {"temperature": 1.0, "top_p": 0.7},
    # The sum of 1 / s over 320 steps is the paper's constant .02 in each of them.
    "run": {"steps": 320, "group_by": "problem+role", "checkpoint_every": 10},
}
_EAPO_ALGO = {
    "dapo": {
        "surrogate": {"level": "token", "low": 0.2, "high": 0.28, "dual": 10.0},
        "reduction": "token-mean",
        "kl_coefficient": 0.0,
        "entropy_coefficient": 0.0,
        "dynamic_sampling": True,
        "max_generation_batches": 10,
        "generation_batch": 96,
        "overlong_limit": 20480,
        "overlong_buffer": 4096,
        "overlong_factor": 1.0,
    }
}
_EAPO_EXPERT = "server:http://127.0.0.1:8000/v1?model=expert&max_tokens=16384"
# Policy, and whether its chat template opens a thought.
_EAPO_POLICIES = {
    "r1-7b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True),
    "r1-14b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", True),
    "qwen3-8b": ("Qwen/Qwen3-8B", False),
}


PRESETS = {
    f"eapo-{name}": Preset(
        source="arXiv:2509.23730",
        env="eapo-consultation",
        algo="dapo",
        models={"policy": policy, "expert": _EAPO_EXPERT},
        agent={"tuning": "full"},
        values={**_EAPO, "env": {**_EAPO_ENV, "opens_thinking": opens}},
        algo_values=_EAPO_ALGO,
    )
    for name, (policy, opens) in _EAPO_POLICIES.items()
}


_TRAIN = ("--env", "eapo-consultation", "--algo", "dapo")


def _variant(name: str, label: str, *flags: str) -> Variant:
    return Variant(name, label, (*_TRAIN, *flags))


def _expert(name: str, label: str, player: str) -> Variant:
    return _variant(name, label, "--agents.expert.model", player)


def _schedule(name: str, label: str) -> Variant:
    # Equal help for all: what the default lets in over its 60 steps.
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
    "self": "Policy, told by itself",
    "workflow": "Policy, told by the expert",
    "pool-0": "Policy, told by both",
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

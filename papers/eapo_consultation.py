"""EAPO (arXiv:2509.23730): its settings and its tables.

"DAPO" is the recipe of arXiv:2503.14476 as its authors publish it, on whose trainer the paper
builds (section 3.1); it settles what the paper leaves open.
"""

from dataclasses import replace

from coterie.papers.preset import ADAMW, TINY, Departure, Preset, Scale, Setting, Table, Variant

_ENV = {
    "env.experts": Setting(3, "section 3.1, appendix G"),
    "env.group_size": Setting(16, "DAPO", TINY),
    "env.consult": Setting("free", "section 2.3"),
    "env.budget": Setting(10, "appendix G"),
    "env.budget_unit": Setting(
        "rounds",
        "appendix G",
        paper='"10 times totally", of what is not said',
        departs="blocks of calls: section 3.2 compares one query a round with three",
    ),
    "env.turns_end": Setting(0, "section 2.3"),
    "env.anneal_steps": Setting(
        320,
        "section 2.3",
        "asking is unlearned by a price, which can be seen",
        paper="the turn budget falls toward that of evaluation, by no named schedule",
        departs="linearly over the whole run",
    ),
    "env.schedule": Setting(
        "inv",
        "section 2.3",
        "with 1/s half of all replies come in ten steps, while a tiny policy still learns to ask",
    ),
    "env.accept_scale": Setting(1.0, "section 2.3"),
    "env.accept_start": Setting(0, "section 2.3"),
    "env.accept_total": Setting(0.0, "section 2.3"),
    "env.coin": Setting("response", "section 2.3"),
    "env.draw_before_dispatch": Setting(
        False, "section 2.3", "the same distribution; a reply that is thrown away costs nothing"
    ),
    "env.queries": Setting("own", "section 2.3"),
    "env.answer_reward": Setting(
        "f1_literal", "section 2.1", "word F1 takes -3 for 3 and 1/2 for 12"
    ),
    "env.at_once": Setting(0, "section 2.3"),
    "env.consult_penalty": Setting(
        0.0,
        "section 1",
        "asking costs something once help is gone",
        paper="a penalty on consulting is introduced, with no term",
        departs="section 2.1 gives the whole reward, and it has none",
    ),
    "env.penalty_start": Setting(0, "section 2.1", "nothing to begin"),
    "env.prompt_style": Setting("panel", "appendix G", "tiny models cannot read explanations"),
    "env.max_new_tokens": Setting(20480, "table 5", TINY),
    "env.expert_max_new_tokens": Setting(
        16384, "appendix K serves 32,768 tokens, prompts included", TINY
    ),
    "env.eval_samples": Setting(32, "section 3.1", "a tiny policy's evaluation takes seconds"),
}
_REST = {
    "agents.tuning": Setting("full", "section 3.1", "LoRA for anything that is not tiny"),
    "learner.lr": Setting(1e-6, "table 5", TINY),
    **ADAMW,
    "learner.weight_decay": Setting(0.1, "DAPO", "nothing to regularise in a short run"),
    "learner.warmup": Setting(10, "table 5", "a short run"),
    "learner.schedule": Setting("constant", "DAPO"),
    "learner.max_grad_norm": Setting(1.0, "DAPO"),
    "learner.epochs": Setting(1, "DAPO"),
    "learner.minibatches": Setting(1, "table 5"),
    "rollout.problems_per_step": Setting(32, "table 5", TINY),
    "rollout.temperature": Setting(1.0, "table 5"),
    "rollout.top_p": Setting(1.0, "table 5"),
    "rollout.top_k": Setting(0, "table 5"),
    "rollout.max_prompt_tokens": Setting(2048, "table 5", "no tiny prompt is long"),
    "eval.temperature": Setting(1.0, "DAPO's validation", "that of training"),
    "eval.top_p": Setting(0.7, "DAPO's validation", "that of training"),
    "problems.train": Setting("dapo-17k", "appendix A", TINY),
    "problems.eval": Setting(("aime24", "aime25", "aimo2"), "section 3.1", TINY),
    "problems.held_out": Setting(None, "section 3.1", "128 of a generator"),
    "run.steps": Setting(
        320,
        "appendix H",
        TINY,
        paper="the number of steps is not said",
        departs="over so many 1/s lets in as much as table 9's constant .02",
    ),
    "run.group_by": Setting(
        "problem+role", "section 2.1", "the environment's own, which is the same"
    ),
    "run.checkpoint_every": Setting(10, "ours", "tiny checkpoints are cheap"),
}
_ALGO = {
    "dapo": {
        "algo.surrogate.level": Setting("token", "DAPO"),
        "algo.surrogate.low": Setting(0.2, "table 5"),
        "algo.surrogate.high": Setting(0.28, "table 5"),
        "algo.surrogate.dual": Setting(
            10.0, "DAPO's trainer", "with one update a step every ratio is 1, and no bound is met"
        ),
        "algo.reduction": Setting("token-mean", "DAPO"),
        "algo.kl_coefficient": Setting(0.0, "DAPO"),
        "algo.entropy_coefficient": Setting(0.0, "DAPO"),
        "algo.dynamic_sampling": Setting(True, "DAPO"),
        "algo.max_generation_batches": Setting(10, "DAPO"),
        "algo.generation_batch": Setting(
            96, "table 5", "a round more costs a tiny model little, and no group is thrown away"
        ),
        "algo.overlong_limit": Setting(20480, "DAPO, at table 5's length", "tiny traces end"),
        "algo.overlong_buffer": Setting(4096, "DAPO", "tiny traces end"),
        "algo.overlong_factor": Setting(1.0, "DAPO"),
    }
}
# The environment takes thoughts and replies apart: the server hands on all that was written.
_EXPERT = (
    "server:http://127.0.0.1:8000/v1?model=expert&max_tokens=16384&max_reply_tokens=16384"
    "&strip_thinking=false"
)
# Policy, whether its chat template opens a thought, and what of a reply it can read: ten rounds of
# three replies fit its context beside prompt and response.
_POLICIES = {
    "r1-7b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", True, 3072),
    "r1-14b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", True, 3072),
    "qwen3-8b": ("Qwen/Qwen3-8B", False, 512),
}


def _reading(opens: bool, reply: int) -> dict[str, Setting]:
    kept = {
        "paper": "the whole reply, thinking included, in think tags (appendix G)",
        "departs": "thirty whole thoughts fit no context; the reply comes first, then the end of "
        "its thought",
    }
    why = "the tiny expert's reply breaks off before its end, so that the policy has to go on"
    return {
        "env.opens_thinking": Setting(opens, "the model's chat template", "no tiny model thinks"),
        "env.reply_tokens": Setting(reply, "appendix G", why, **kept),
        "env.reply_thinking_tokens": Setting(reply, "appendix G", "the tiny expert does not think"),
    }


PRESETS = {
    f"eapo-{name}": Preset(
        paper="arXiv:2509.23730",
        env="eapo-consultation",
        algo="dapo",
        models={"policy": policy, "expert": _EXPERT},
        settings={**_ENV, **_REST, **_reading(opens, reply)},
        algos=_ALGO,
    )
    for name, (policy, opens, reply) in _POLICIES.items()
}

DEPARTURES = (
    Departure(
        "training prompt",
        "appendix G, its place beside the question not said",
        "its words, then the question, in one message of the user",
        "as the prompt of evaluation is used",
    ),
    Departure(
        "rejected replies",
        "treated as unavailable (section 2.3)",
        "an entry whose status is UNAVAILABLE; it costs budget",
        "the policy knows that it asked",
    ),
    Departure(
        "correct format",
        "not defined (section 2.1)",
        "thoughts closed, calls answered, one Answer: behind the last thought",
        "the rules of arXiv:2503.19470 with the paper's tags",
    ),
    Departure(
        "the expert",
        "QwQ-32B behind vLLM (section 3.1, appendix K)",
        "whatever answers on this machine's port 8000 as expert",
        "`--agents.expert.model` names another player",
    ),
    Departure(
        "AIMO 2025",
        "ten problems (section 3.1)",
        "a file that you make of them: aimo2 says how",
        "a competition's file, which no loader may fetch",
    ),
    Departure(
        "other subjects",
        "seven more sets (section 3.2, table 4)",
        "`benchmark.py --suite eapo`, not the run's own evaluation",
        "HLE and SimpleQA ask for a judge, HumanEval for leave to run programs",
    ),
)


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

_R1 = _POLICIES["r1-7b"][0]
_WEAKER = "scripted:oracle?p_right=0.5&template={solution}"
_SERVED = "server:http://127.0.0.1:{}/v1?model={}&max_tokens=16384&max_reply_tokens=16384"
# Table 10's are served beside the expert.
_STRONGER_MODELS = ("Qwen3-235B-A22B", "GPT-5", "DeepSeek-V3.2")
_NAMES = {
    **{
        player: _SERVED.format(8001 + i, m)
        for i, (player, m) in enumerate(zip(_STRONGER, _STRONGER_MODELS))
    },
    _WEAKER: _POLICIES["r1-14b"][0],
    "tiny:policy": _R1,
    "tiny:pupil": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "tiny:expert": _EXPERT,
    # Kinds of problems that have one short answer.
    _OTHER: "gpqa-main",
    _LONGER: "mmlu",
    _PLUS_MINUS: "hotpotqa",
    "shorter": "GPQA",
    "longer": "MMLU",
    "+ and -": "HotpotQA",
}
_PRESET: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("--env", "eapo-consultation", "--algo", "dapo", "--reply-temperature", "2"), ()
)
# Help as the paper has it: 1/s and so on as they are, and .02 of all replies.
_AS_THEY_ARE = dict.fromkeys(("--env.accept-total", "30.5", "--env.accept-steps", "100"), ())
_CONSTANT = {"const": ("const", "--env.accept-scale", "0.02")}
_DISTILL = (
    *("--policy", _R1, "--expert", _EXPERT, "--problems", "dapo-17k", "--lr", "1e-5"),
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
    found = Scale("eapo-r1-7b", words, _NAMES, _DISTILL).table(small, "eapo")
    rows = {
        row: _STRONGER_MODELS[int(row[-1])] if name == "eapo-10" else label
        for row, label in found.rows.items()
    }
    return replace(found, rows=rows)


AT_SCALE = {name: _at_scale(name, table) for name, table in TABLES.items()}

"""EAPO (arXiv:2509.23730): its settings.

"DAPO" is the recipe of arXiv:2503.14476 as its authors publish it, on whose trainer the paper
builds (section 3.1); it settles what the paper leaves open.
"""

from coterie.envs.preset import ADAMW, TINY, Departure, Preset, Setting, miniature

_REREAD = "lone traces that are read again, which are not in the paper, are the default"

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
    "env.accept_span": Setting(60.0, "not in the paper; 1/s has no span", _REREAD),
    "env.accept_scale": Setting(1.0, "section 2.3"),
    "env.accept_start": Setting(0, "section 2.3"),
    "env.accept_total": Setting(0.0, "section 2.3"),
    "env.coin": Setting("response", "section 2.3"),
    "env.draw_before_dispatch": Setting(
        False, "section 2.3", "the same distribution; a reply that is thrown away costs nothing"
    ),
    "env.queries": Setting("own", "section 2.3"),
    "env.lone": Setting(0, "not in the paper", _REREAD),
    "env.reread": Setting("none", "not in the paper", _REREAD),
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
_UNREAD = {
    "algo.distillation.beta": Setting(0.0, "not in the paper", _REREAD),
    "algo.distillation.likeliest": Setting(0, "not in the paper", _REREAD),
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
    "learner.importance_correction": Setting(
        "none",
        "DAPO's trainer",
        "it costs nothing, and cures a sampler that disagrees with the trainer",
    ),
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
        "algo.baseline": Setting("group-mean", "DAPO"),
        "algo.scale": Setting("group-std", "DAPO"),
        "algo.ddof": Setting(1, "DAPO's trainer"),
        "algo.epsilon": Setting(
            1e-6, "DAPO's trainer", "TRL's; a tiny one turns rounding into advantages"
        ),
        "algo.reduction": Setting("token-mean", "DAPO"),
        "algo.kl_coefficient": Setting(0.0, "DAPO"),
        "algo.entropy_coefficient": Setting(0.0, "DAPO"),
        "algo.dynamic_sampling": Setting(True, "DAPO"),
        "algo.max_generation_batches": Setting(10, "DAPO"),
        "algo.generation_batch": Setting(
            96, "table 5", "a round more costs a tiny model little, and no group is thrown away"
        ),
        "algo.overlong_limit": Setting(
            20480,
            "DAPO, at table 5's length",
            "tiny traces end",
            paper="no penalty on length is named, and section 2.1 gives the whole reward",
            departs="DAPO's recipe has it, for self-exploratory RL too; 0 leaves it out",
        ),
        "algo.overlong_buffer": Setting(4096, "DAPO", "tiny traces end"),
        "algo.overlong_factor": Setting(1.0, "DAPO"),
    }
}
# The environment takes thoughts and replies apart: the server hands on all that was written.
EXPERT = (
    "server:http://127.0.0.1:8000/v1?model=expert&max_tokens=16384&max_reply_tokens=16384"
    "&strip_thinking=false"
)
# Policy, and what of a reply it can read: ten rounds of three replies fit its context beside prompt
# and response.
POLICIES = {
    "r1-7b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 3072),
    "r1-14b": ("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B", 3072),
    "qwen3-8b": ("Qwen/Qwen3-8B", 512),
}


def _reading(reply: int) -> dict[str, Setting]:
    kept = {
        "paper": "the whole reply, thinking included, in think tags (appendix G)",
        "departs": "thirty whole thoughts fit no context; the reply comes first, then the end of "
        "its thought",
    }
    why = "the tiny expert's reply breaks off before its end, so that the policy has to go on"
    return {
        "env.reply_tokens": Setting(reply, "appendix G", why, **kept),
        "env.reply_thinking_tokens": Setting(reply, "appendix G", "the tiny expert does not think"),
    }


_OURS = "ours, for the tiny team"
FADED = Preset(
    paper="arXiv:2509.23730",
    env="eapo-consultation",
    algo="dapo",
    models={},
    settings={
        **{path: _ENV[path] for path in ("env.accept_span", "env.lone", "env.reread")},
        **_UNREAD,
        "env.group_size": Setting(8, _OURS, _REREAD),
        "env.penalty_start": Setting(60, _OURS, "help lasts longer where it is read again"),
        "run.steps": Setting(100, _OURS, "so many take as many tokens"),
    },
    own=True,
)
"""Conversations and rewards alone, with our schedule: help fades over 60 steps, then calls cost."""

PUBLISHED = {
    f"eapo-{name}": Preset(
        paper="arXiv:2509.23730",
        env="eapo-consultation",
        algo="dapo",
        models={"policy": policy, "expert": EXPERT},
        settings={**_ENV, **_UNREAD, **_REST, **_reading(reply)},
        algos=_ALGO,
    )
    for name, (policy, reply) in POLICIES.items()
}
_FULL, _STEPS = "eapo-r1-7b", 100
MINIATURE = miniature(
    _FULL,
    PUBLISHED[_FULL],
    at_default={
        **dict.fromkeys(
            (
                *("env.max_new_tokens", "env.expert_max_new_tokens", "learner.lr"),
                *("rollout.problems_per_step", "rollout.max_prompt_tokens"),
                *("problems.train", "problems.eval", "problems.held_out"),
            ),
            TINY,
        ),
        "learner.importance_correction": "sampler and learner of a tiny model agree, so that it "
        "corrects nothing",
        "algo.epsilon": "it moves an advantage by less than a percent",
        "env.prompt_style": "tiny models cannot read appendix G: after it no expert is called in "
        "1,024 conversations and no answer is right; after one line .52 call, .25 are right",
        "env.reply_thinking_tokens": "the tiny expert does not think",
        "env.eval_samples": "eight answers to each of 128 problems",
        "env.draw_before_dispatch": "the same distribution; a reply that is thrown away costs "
        "nothing",
        "algo.generation_batch": "as many prompts as a step trains on: what is sampled beyond them "
        "is paid for and dropped",
        **dict.fromkeys(("algo.overlong_limit", "algo.overlong_buffer"), "tiny traces end"),
        "run.checkpoint_every": "tiny checkpoints are cheap",
    },
    instead={
        "env.reply_tokens": Setting(
            64,
            _OURS,
            paper="the whole reply",
            departs="the most that a tiny expert writes: its replies are whole",
        ),
        "env.anneal_steps": Setting(
            _STEPS,
            _OURS,
            paper="the turn budget falls toward that of evaluation, by no named schedule",
            departs="linearly over the whole run",
        ),
        "run.steps": Setting(
            _STEPS,
            _OURS,
            paper="the number of steps is not said",
            departs=TINY,
        ),
    },
)
"""EAPO as published with the tiny team: the full-size preset in everything but its size."""

PRESETS = PUBLISHED | {"eapo-tiny": MINIATURE, "eapo-faded": FADED}

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
        "thoughts closed, calls answered, one Answer: after the last thought",
        "the rules of arXiv:2503.19470 with the paper's tags",
    ),
    Departure(
        "what an expert reads",
        "its query (section 2.3)",
        "the prompt of evaluation, then its query",
        "a reply then ends in an answer, as appendix G says it does",
    ),
    Departure(
        "two queries to one expert at once",
        "not forbidden",
        "an error, which costs a round",
        "replica i answers one query q(t, i) (section 2.3)",
    ),
    Departure(
        "parallelism",
        "sequence and tensor parallelism of 4 (table 5)",
        "as many devices as a run is given",
        "it changes the cost and not the result",
    ),
    Departure(
        "programs",
        "their scoring is not described (tables 4 and 7)",
        "a program is right if it passes its tests; in place of F1 stands whether it does",
        "two right programs need not share a word",
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
        "`benchmark.py sweep eapo-4`, `eapo-7`, not the run's own evaluation",
        "HLE and SimpleQA ask for a judge, HumanEval for leave to run programs",
    ),
    Departure(
        "tables 4 and 7",
        "how many answers, whose judgement and which part of EvalPlus and GPQA is not said",
        "one answer, judged by the expert; HumanEval+; all 448 of GPQA main",
        "the sets are whole, and GPQA's size is that of other papers",
    ),
    Departure(
        "distillation",
        "data, steps and rate are not said (table 1)",
        "a hundred steps of the expert's solutions to DAPO-Math-17K, with the prompt of evaluation",
        "the policy is scored with that prompt",
    ),
    Departure(
        "LeaP",
        "its limits are not said (table 1)",
        "those of arXiv:2505.07787: four paths, blocks of 2,048 tokens, summaries of 256",
        "the paper that it cites",
    ),
)

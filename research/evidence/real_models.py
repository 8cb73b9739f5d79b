"""Fifth protocol of the evidence: two real language models on word problems, in three forms.

A run is one command with one seed, and the evaluation of what it has trained; a finished one is a
line of docs/evidence/real-models.jsonl. The weights are those of tools/fetch_weights.py, from the
folder that COTERIE_WEIGHTS names or from the cache; the problems are real_problems.py's.
"""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coterie.envs.prompts import answer_sentence
from coterie.extras.papers.sweep_commands import SweepCommand
from evidence import contests, runs
from evidence.contests import Arm
from evidence.controls import LOOP, OwnLoop
from evidence.real_problems import (
    EVALUATION,
    KINDS,
    READING,
    STATED,
    TRAINING,
    write_problems,
)
from evidence.real_results import SAMPLES, of_problems, rate, results, trained
from evidence.runs import ROOT, Row, cpu_s, finish
from fetch_weights import weights_file

RESULTS = ROOT / "docs/evidence/real-models.jsonl"
SEEDS = (70, 71, 72)
SCREEN = 69
"""Seed of the warm-up's screen."""
STEPS = {"teach": 30, "read": 50, "pair": 50, "defer": 30, "consult": 30}
"""Part -> training steps of its arms."""
READING_STEPS, PAIR_STEPS = 40, 50
"""Steps in which roles learn to follow a hint: in the second form of teaching after the warm-up, in
the third as the warm-up."""
LENGTHS = (30, 50, 80)
"""Steps of the warm-up: where too much is right, first, and where too little is."""
LEVEL = (0.3, 0.7)
"""The screen's bounds for Pass@1 of each role on its own kind."""
CUT = frozenset({"teach-alone", "teach-taught", "teach-other"})
"""Arms that are not run any more: their models cannot read hints."""
OWN = {"alice": "plus", "bob": "times"}
"""Role -> the kind of problem that it is warmed up on."""
WEIGHTS = {"alice": "smollm2", "bob": "gemma3"}
PROBLEMS = "real-problems"
"""Folder of the problems, beside the runs."""
SOLO = f"{{question}}\n\n{answer_sentence('number')}"
"""The prompt of core-teaching and eapo-consultation, without a peer or an expert."""
_QUIET = (
    *("--threads", "1", "--eval.no-enabled", "--transcripts-every", "0"),
    *("--checkpoint-every", "10", "--keep-checkpoints", "1", "--learner.lr", "1e-5"),
    # Two runs side by side fit 24 GB; the same result.
    *("--learner.micro-batch-tokens", "1400"),
    *("--problems.train", f"<problems>/{TRAINING}"),
    *("--problems.eval", f"<problems>/{EVALUATION}"),
)
_WARM = (
    *("--warmup.problems-per-step", "12", "--warmup.lr", "6e-5"),
    # A run has a step of training at least: this one moves nothing.
    *("--steps", "1", "--rollout.problems-per-step", "1", "--learner.lr", "1e-12"),
)
_PLAIN = ("--env.reread", "none", "--algo.distillation.beta", "0")
_OTHER = ("--env", "evidence.other_hints:SPEC", "--env.hint-of", "other-same")


def _full(**models: str) -> tuple[str, ...]:
    """Roles that learn with full weights, and their models."""
    return _tuned("full", models)


def _steps(part: str) -> tuple[str, str]:
    return "--steps", str(STEPS[part])


def _warm(form: str) -> Mapping[str, str]:
    """Role -> its warmed-up model of a form of teaching."""
    return {role: f"<{form}-warm>/final/{role}" for role in OWN}


def _tuned(tuning: str, models: Mapping[str, str]) -> tuple[str, ...]:
    flags = ((f"--agents.{role}.model", model) for role, model in models.items())
    tuned = ((f"--agents.{role}.tuning", tuning) for role in models)
    return tuple(word for pair in (*flags, *tuned) for word in pair)


_TEACH = ("--env", "core-teaching", "--algo", "gspo", "--env.max-new-tokens", "24", *_QUIET)
_MIXED = ("--env.hint-tokens", "24", "--env.k-cold", "4", "--rollout.problems-per-step", "12")
_TAUGHT = (
    *(*_TEACH, *_steps("teach"), *_MIXED),
    *_full(**_warm("teach")),
)
_DEFER = ("--env", "corea-deferral", "--algo", "grpo", "--env.max-new-tokens", "40", *_QUIET)
_DEFER = (*_DEFER, "--env.size-ratio", "2")
_CALIBRATED = (
    *(*_DEFER, *_steps("defer"), "--rollout.problems-per-step", "12", "--env.traces", "6"),
    *_full(small="<defer-warm>/final/small"),
    *("--agents.large.model", "<defer-warm>/final/large"),
)
_CONSULT = (
    *("--env", "eapo-consultation", "--algo", "gspo", "--env.max-new-tokens", "32", *_QUIET),
    *(*_steps("consult"), "--rollout.problems-per-step", "8", "--env.group-size", "8"),
    *("--problems.train", f"<problems>/{TRAINING}?where=category:{OWN['bob']}"),
    *("--env.experts", "1", "--env.expert-max-new-tokens", "24", "--env.reply-tokens", "24"),
    *("--env.accept-span", str(STEPS["consult"] * 3 // 4), "--env.consult-penalty", "0"),
    # Neither lone traces nor rereading.
    *("--env.penalty-start", "120", "--env.lone", "0", "--env.reread", "none"),
    *("--algo.distillation.beta", "0", "--algo.distillation.likeliest", "0"),
    *_full(policy="<teach-warm>/final/alice"),
    *("--agents.expert.model", "<teach-warm>/final/bob"),
)
_IMITATED = (
    *("distill", "--policy", "<teach-warm>/final/alice", "--tuning", "full"),
    *("--expert", "<teach-warm>/final/bob", "--expert-tokens", "<tokens of consult-asked>"),
    *("--problems", f"<problems>/{TRAINING}?where=category:{OWN['bob']}", "--questions", "1"),
    *("--problems-per-step", "12", "--solutions", "4", "--max-new-tokens", "24"),
    *("--lr", "6e-5", "--steps", "1000"),
)


def _warmed_up(steps: int, file: str, needs: tuple[str, ...], models: Mapping[str, str]) -> Arm:
    kinds = (
        (f"--agents.{role}.warmup", f"<problems>/{file}?where=category:{kind}")
        for role, kind in OWN.items()
    )
    own = (word for pair in kinds for word in pair)
    short = ("--env.k-cold", "2", *_PLAIN, "--warmup.steps", str(steps))
    return Arm((*_TEACH, *_WARM, *_full(**models), *own, *short), needs=needs)


_WARM_STATED = Arm(
    (
        *(*_DEFER, *_WARM, "--train-role", "small", "large", "--warmup.steps", "25"),
        *_full(small="<teach-warm>/final/alice", large="<teach-warm>/final/bob"),
        *("--agents.small.warmup", f"<problems>/{STATED}?where=category:{OWN['alice']}"),
        *("--agents.large.warmup", f"<problems>/{STATED}"),
        *("--env.traces", "2"),
    ),
    needs=("teach-warm",),
)


_WEIGHTS = {role: f"<{name}>" for role, name in WEIGHTS.items()}


def _reading(form: str) -> tuple[str, ...]:
    """Teaching of roles that have learned to follow hints: the second and the third form."""
    adapters = _tuned("lora", _warm(form))
    return (*_TEACH, *_steps(form), *_MIXED, "--learner.lr", "3e-4", *adapters)


_TEACHING = {"teach": _TAUGHT, "read": _reading("read"), "pair": _reading("pair")}
"""Form of teaching -> the flags of *taught*."""


def arms(steps: int) -> Mapping[str, Arm]:
    """Return arm -> the command of a seed, in order.

    Args:
        steps: of the warm-up.
    """
    warm, asked = ("teach-warm",), ("teach-warm", "consult-asked")
    return {
        "teach-warm": _warmed_up(steps, TRAINING, (), _WEIGHTS),
        "read-warm": _warmed_up(READING_STEPS, READING, warm, _warm("teach")),
        "pair-warm": _warmed_up(PAIR_STEPS, READING, (), dict.fromkeys(OWN, "<smollm2>")),
        **{
            f"{form}-{arm}": Arm((*flags, *more), needs=(f"{form}-warm",))
            for form, flags in _TEACHING.items()
            for arm, more in (("alone", _PLAIN), ("taught", ()), ("other", _OTHER))
        },
        "defer-warm": _WARM_STATED,
        "defer-corea": Arm(_CALIBRATED, needs=("defer-warm",)),
        "defer-plain": Arm(
            (*_CALIBRATED, "--env.confidence-reward", "none"), needs=("defer-warm",)
        ),
        "consult-alone": Arm((*_CONSULT, "--env.consult", "never"), needs=warm),
        "consult-asked": Arm((*_CONSULT, "--env.consult", "always"), needs=warm),
        "consult-imitated": Arm(_IMITATED, "benchmark", "distillation.json", asked),
    }


@dataclass(frozen=True)
class Run(contests.Run):
    """One command of the protocol and its evaluation; its contest is ``real``."""

    @property
    def what(self) -> Arm:
        first = self.seed == SCREEN
        return arms(LENGTHS[1] if first else warm_up_steps(stored()) or LENGTHS[1])[self.arm]

    def job(self, out: Path) -> SweepCommand:
        job = super().job(out)
        kind = OwnLoop if self.arm.endswith("-other") else SweepCommand
        return kind(job.program, job.arguments, job.folder, job.done)

    def evaluation(self, out: Path) -> SweepCommand:
        """Return the command that asks what the run has trained about the held-out problems."""
        part = self.arm.partition("-")[0]
        final, folder = out / self.name / "final", out / self.name / "held-out"
        asker = replace(self, arm=f"{part if part in ('defer', 'pair') else 'teach'}-warm")
        again = ("--evaluate", str(out / asker.name), "--out", str(folder / _ANSWERS))
        # All: by default an evaluation is as short as the run was.
        again = (*again, "--problems.held-out", str(len(of_problems())))
        both = {role: str(final / role) for role in OWN}
        cold = ("--env.k-cold", "1", "--samples", str(SAMPLES))
        full = part == "teach" or self.arm.endswith("-warm")
        taught = (*_tuned("full" if full else "lora", both), *cold)
        asked: Mapping[str, Sequence[str]] = {
            **dict.fromkeys(_TEACHING, taught),
            "defer": ("--agents.small.model", f"{final}/small", "--env.eval-traces", str(SAMPLES)),
            "consult": (
                *("--env", "solo", "--agents.solver.model", str(final / "policy")),
                *("--env.prompt", SOLO, "--env.max-new-tokens", "32"),
                *("--env.eval-answers", str(SAMPLES)),
            ),
        }
        flags = (*again, *asked[part], "--seed", str(self.seed), "--eval.resamples", "1")
        return SweepCommand("train", flags, folder, _ANSWERS, trains=False)

    def _filled(self, flag: str, out: Path) -> str:
        flag = flag.replace("<problems>", str(out / PROBLEMS))
        for name in WEIGHTS.values():
            flag = flag.replace(f"<{name}>", str(weights_file(name)))
        return super()._filled(flag, out)


_ANSWERS = "answers.json"


Stored = Mapping[Run, Row]


def planned() -> Iterator[Run]:
    """Yield all runs in order, as far as results say which these are: all of a seed together."""
    yield Run("real", "teach-warm", SCREEN)
    if (steps := warm_up_steps(stored())) is not None:
        yield from (
            Run("real", arm, seed) for seed in SEEDS for arm in arms(steps) if arm not in CUT
        )


def warm_up_steps(done: Stored) -> int | None:
    """Return the length of the warm-up that the screen chooses; None before it is over."""
    row = done.get(Run("real", "teach-warm", SCREEN))
    if row is None:
        return None
    rates = [rate(row, role, kind) for role, kind in OWN.items()]
    short, usual, long = LENGTHS
    return long if min(rates) < LEVEL[0] else short if max(rates) > LEVEL[1] else usual


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Run the command, after the runs that it needs, evaluate, and return the line to store."""
    write_problems(out / PROBLEMS)
    contests.prepare(run, out)
    job = run.job(out)
    spent = finish(job)
    shutil.rmtree(job.folder / "checkpoints", ignore_errors=True)
    asked, used = run.evaluation(out), cpu_s()
    asked.folder.mkdir(exist_ok=True)
    if not asked.finished:
        asked.run()
    answers = json.loads((asked.folder / asked.done).read_text(encoding="utf-8"))
    row = {
        **asdict(run),
        "command": shown(("python", _program(job), *job.arguments), out),
        "asked": shown(("python", "train.py", *asked.arguments), out),
        **spent,
        "asking_cpu_s": round(cpu_s() - used, 1),
        **trained(job.folder),
        **results(answers["outcomes"]),
    }
    row["after"] = {
        role: {kind: round(rate(row, role, kind), 4) for kind in KINDS} for role in row["right"]
    }
    if not run.arm.endswith("-warm"):
        # Logs stay, to see why; nobody needs the models.
        shutil.rmtree(job.folder / "final")
    return row


def _program(job: SweepCommand) -> str:
    return LOOP if isinstance(job, OwnLoop) else f"{job.program}.py"


def shown(words: Sequence[str], out: Path) -> str:
    """Return a command without this machine's folders."""
    places = {
        str(weights_file(name)): f"$COTERIE_WEIGHTS/{weights_file(name).name}"
        for name in WEIGHTS.values()
    }
    places |= {f"{out}/": "runs/evidence/"}
    text = shlex.join(words)
    for place, name in places.items():
        text = text.replace(place, name)
    return text

"""The second protocol of the evidence: three roles, unequal roles, COREA, EAPO and their baselines.

A run is one command with one seed: a training, or a comparison of the seed's trainings. A finished
run is a line of docs/evidence/contests.jsonl; ``python research/evidence`` starts the runs.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from coterie.cli.arguments import overlay
from coterie.extras.papers.sweep_commands import SweepCommand
from coterie.training.run.directory import METRICS, RunDirectory
from evidence import runs
from evidence.peers import ALONE, ARMS, DISTILLED
from evidence.runs import ROOT, finish, locked, quoted, taught

RESULTS = ROOT / "docs/evidence/contests.jsonl"
SEEDS = (30, 31, 32, 33, 34)

_SHORT = ("--rollout.problems-per-step", "8", "--no-episodes-log")
_PLAIN = (*ALONE, "--env.k-cold", "3")
_TAUGHT = (*_PLAIN, "--env.teacher", "prefer-peer", *DISTILLED)
_TEACHING = ("--env", "core-teaching", "--algo", "gspo", "--problems.held-out", "256", *_SHORT)
_THREE = ("--problems.train", "chains?min_length=5&max_length=5", "--steps", "120")
_UNEQUAL = ("--problems.train", "chains?mix=0.25,0.25,0.5", "--steps", "120")
_COREA = ("--env", "corea-deferral", "--algo", "grpo", "--steps", "300", "--eval.no-enabled")
# Two responses each to 512 questions, and of plain eight to 500 further ones for probe and router.
_CASCADES = ("corea", "--corea", "<corea>", "--rlvr", "<plain>", "--fit-questions", "500")
_SCORES = ("rlvr-verb", "rlvr-isotonic", "rlvr-platt", "rlvr-avgprob", "corea", "corea-ties")
_CONTROLS = ("rlvr", "l1", "llm", "random", "always", "never", "oracle")
_SYSTEMS = ("--resamples", "200", "--systems", *_CONTROLS, *_SCORES)
_CHAINS = "chains?mix=0,1,0&min_length=4&max_length=4&answer=all"
EAPO = (
    *("--preset", "eapo-faded", "--steps", "1000", "--tokens", "1200000"),
    *("--problems.train", _CHAINS, "--eval.no-enabled", "--no-episodes-log"),
)
EXPERTS = {
    "good": "tiny:expert",
    "half": "scripted:oracle?p_right=0.5&template={solution}",
    "answer": "scripted:oracle?template=Answer: {answer}",
    "weak": "tiny:pupil",
}
IMITATED = ("distill", "--problems", _CHAINS, "--questions", "256", "--steps", "1000")


@dataclass(frozen=True)
class Arm:
    """A command; ``<ARM>`` in its flags is the folder of another arm of the seed."""

    flags: tuple[str, ...]
    program: str = "train"
    done: str = "summary.json"
    needs: tuple[str, ...] = ()


def _imitation(kind: str, *more: str) -> Arm:
    """Solutions of the same expert learned, for as many of its tokens as consulting it took."""
    flags = (*IMITATED, "--expert", EXPERTS[kind], "--expert-tokens", f"<tokens of {kind}>")
    return Arm((*flags, *more), "benchmark", "distillation.json", (kind,))


_IMITATORS = {
    **{f"imitated-{kind}": _imitation(kind) for kind in EXPERTS},
    "imitated-right": _imitation("half", "--only-right"),
}
_TOLD = "imitated-told"
"""Imitates what consulting is told of the expert's replies, which are cut."""
_AFTERWARDS = {
    name.replace("imitated", "then"): Arm(
        (
            *(*EAPO, "--env.consult", "never", "--agents.policy.tuning", "full"),
            *("--agents.policy.model", f"<{name}>/final/policy"),
        ),
        needs=(name,),
    )
    for name in ("imitated-answer", "imitated-weak", _TOLD)
}
"""Imitators, who then train alone for as many tokens of their own as consulting took."""
_POLICIES = {
    **{name: f"<{name}>" for name in ("alone", *EXPERTS)},
    **{name: f"<{name}>/final/policy" for name in _IMITATORS},
}
_LATER = {_TOLD: f"<{_TOLD}>/final/policy", **{name: f"<{name}>" for name in _AFTERWARDS}}


def scored_by(policies: Mapping[str, str]) -> Arm:
    """Measure each policy's accuracy alone."""
    flags = (
        *("suite", "--suite", "eapo", "--no-workflow", "--problems", _CHAINS),
        *("--questions", "256", "--samples", "4", "--resamples", "200", "--policies"),
        *(f"{name}={place}" for name, place in policies.items()),
    )
    return Arm(flags, "benchmark", "results.json", tuple(policies))


# Token budgets of the learners: of one system alone, and of each of three stages.
_WHOLE, _STAGE = "1200000", "400000"
_MIXED = "chains?mix=0.5,0.5,0&min_length=5&max_length=5"
_ON_MIXED = (*("--problems.train", _MIXED, "--eval.no-enabled", "--no-episodes-log"),)


def _peers(tokens: str, steps: str) -> Arm:
    """Fading wants to know how many steps there are; so many sample about so many tokens."""
    models = ("--agents.alice.model", "tiny:erin", "--agents.bob.model", "tiny:frank")
    system = ("--env", "core-teaching", "--algo", "gspo", *models, *ARMS["expected"])
    return Arm((*system, *_ON_MIXED, "--tokens", tokens, "--steps", steps))


_CONSULTATION = (("--preset", "eapo-faded"), "policy", "expert")
_DEFERRAL = (("--env", "corea-deferral", "--algo", "grpo"), "small", "large")


def _erin_learns(
    system: tuple[tuple[str, ...], str, str], tokens: str, erin: str, frank: str, *needs: str
) -> Arm:
    """``system``: its flags, erin's role and frank's."""
    own, learner, other = system
    models = (f"--agents.{learner}.model", erin, f"--agents.{other}.model", frank)
    return Arm((*own, *models, *_ON_MIXED, "--tokens", tokens, "--steps", "4000"), needs=needs)


def _pair(erin: str, frank: str, *needs: str) -> Arm:
    """How right erin is, and erin who defers to frank."""
    models = ("--base", "tiny:erin", "--corea", erin, "--large", frank)
    systems = ("--systems", "l1", "llm", "random", "corea", "oracle", "--resamples", "200")
    flags = ("corea", "--problems", _MIXED, *models, *systems, "--threshold", "accuracy")
    return Arm(flags, "benchmark", "results.json", needs)


CONTESTS: Mapping[str, Mapping[str, Arm]] = {
    "three": {
        name: Arm((*_TEACHING, "--roles", "alice", "bob", "carol", *_THREE, *flags))
        for name, flags in (("plain", _PLAIN), ("distillation", _TAUGHT))
    },
    "unequal": {
        name: Arm((*_TEACHING, "--roles", "alice", "dora", *_UNEQUAL, *flags))
        for name, flags in (("plain", _PLAIN), ("distillation", _TAUGHT))
    },
    "corea": {
        "corea": Arm((*_COREA, *_SHORT)),
        "plain": Arm((*_COREA, *_SHORT, "--env.confidence-reward", "none")),
        "knows-all": Arm(
            (*_CASCADES, *_SYSTEMS, "rlvr-probe", "router"),
            *("benchmark", "results.json", ("corea", "plain")),
        ),
        "errs": Arm(
            (
                *(*_CASCADES, *_SYSTEMS, "--large"),
                r"scripted:oracle?p_right=0.75&template=\boxed{{answer}} \confidence{0.9}",
            ),
            *("benchmark", "results.json", ("corea", "plain")),
        ),
        "knows-other": Arm(
            (*_CASCADES, *_SYSTEMS, "--large", "tiny:smaller"),
            *("benchmark", "results.json", ("corea", "plain")),
        ),
    },
    "eapo": {
        "alone": Arm((*EAPO, "--env.consult", "never")),
        **{kind: Arm((*EAPO, "--agents.expert.model", expert)) for kind, expert in EXPERTS.items()},
        **_IMITATORS,
        "scored": scored_by(_POLICIES),
        _TOLD: _imitation("good", "--max-new-tokens", "13"),
        **_AFTERWARDS,
        "scored-then": scored_by(_LATER),
    },
    "together": {
        "peers": _peers(_WHOLE, "430"),
        "consultation": _erin_learns(_CONSULTATION, _WHOLE, "tiny:erin", "tiny:frank"),
        "deferral": _erin_learns(_DEFERRAL, _WHOLE, "tiny:erin", "tiny:frank"),
        "taught": _peers(_STAGE, "143"),
        "consulted": _erin_learns(
            _CONSULTATION, _STAGE, "<taught>/final/alice", "<taught>/final/bob", "taught"
        ),
        "calibrated": _erin_learns(
            *(_DEFERRAL, _STAGE, "<consulted>/final/policy", "<taught>/final/bob"),
            *("consulted", "taught"),
        ),
        "of-nothing": _pair("tiny:erin", "tiny:frank"),
        "of-peers": _pair("<peers>/final/alice", "<peers>/final/bob", "peers"),
        "of-consultation": _pair("<consultation>/final/policy", "tiny:frank", "consultation"),
        "of-deferral": _pair("<deferral>/final/small", "tiny:frank", "deferral"),
        "of-pipeline": _pair(
            *("<calibrated>/final/small", "<taught>/final/bob"), "calibrated", "taught"
        ),
    },
}


@dataclass(frozen=True)
class Run:
    """One command of the protocol."""

    contest: str
    arm: str
    seed: int

    @property
    def name(self) -> str:
        """Return the name of the run's folder."""
        return f"{self.contest}-{self.arm}-{self.seed}"

    @property
    def what(self) -> Arm:
        return CONTESTS[self.contest][self.arm]

    def job(self, out: Path) -> SweepCommand:
        """Return the command, with folders under ``out``."""
        folder = out / self.name
        where = ("--run-dir" if self.what.program == "train" else "--out", str(folder))
        flags = [self._filled(flag, out) for flag in self.what.flags]
        arguments = tuple(overlay([*flags, "--seed", str(self.seed), *where]))
        trains = self.what.done != "results.json"
        return SweepCommand(self.what.program, arguments, folder, self.what.done, trains)

    def needed(self) -> list["Run"]:
        """Return the runs that this one needs first."""
        return [replace(self, arm=arm) for arm in self.what.needs]

    def _filled(self, flag: str, out: Path) -> str:
        for needed in self.needed():
            flag = flag.replace(f"<{needed.arm}>", str(out / needed.name))
            if flag == f"<tokens of {needed.arm}>":
                flag = str(expert_tokens(out / needed.name))
        return flag


def planned() -> Iterator[Run]:
    """Yield all runs in order: within a contest, all of one seed before the next seed."""
    for contest, arms in CONTESTS.items():
        yield from (Run(contest, arm, seed) for seed in SEEDS for arm in arms)


def stored() -> dict[Run, dict[str, Any]]:
    """Return the finished runs and their results."""
    return runs.stored(RESULTS, Run)


def train(run: Run, out: Path) -> dict[str, Any]:
    """Run the command, after the runs that it needs, and return the line to store."""
    prepare(run, out)
    job = run.job(out)
    spent = finish(job)
    command = [job.program + ".py", *(flag.replace(f"{out}/", "runs/") for flag in job.arguments)]
    result = json.loads((job.folder / job.done).read_text(encoding="utf-8"))
    return {
        **asdict(run),
        "command": " ".join(("python", *map(quoted, command))),
        **spent,
        **_reader(run)(job.folder, result),
    }


def prepare(run: Run, out: Path) -> None:
    """Run what the run needs first, and has not been run."""
    for other in run.needed():
        # Another process may be running it.
        with locked(other.name, out, wait=True):
            if not (job := other.job(out)).finished:
                prepare(other, out)
                job.run()


def _reader(run: Run) -> Any:
    if run.what.done == "results.json":
        asks_one = run.what.flags[0] == "suite"
        return partial(scores, run.what.needs) if asks_one else _cascades
    if run.what.done == "distillation.json":
        return lambda folder, result: {"after": result}
    if run.contest in ("three", "unequal"):
        return lambda folder, result: taught(folder)
    return _spent


def _spent(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "after": {"steps": summary["steps"], "expert_tokens": expert_tokens(folder)},
        "tokens": summary["sampled_tokens"],
    }


def expert_tokens(folder: Path) -> int:
    """Return the number of tokens that frozen models sampled in training."""
    last = RunDirectory.reopen(folder).read_log(METRICS)[-1]
    return int(last["rollout/tokens_total"] - last["rollout/learner_tokens_total"])


def _cascades(folder: Path, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return system -> metrics, with those of the whole curve where it has one."""
    names = ("accuracy", "ece", "auroc", "deferred", "random_gain", "saving", "loss")
    more = ("helped", "harmed", "cost")
    return {
        "after": {
            system: {
                **{name: metrics[name]["value"] for name in (*names, *more) if name in metrics},
                **{
                    name: value
                    for name, value in results["curves"].get(system, {}).items()
                    if name.startswith("saving@") or name in ("apgr", "area_over_random")
                },
            }
            for system, metrics in results["systems"].items()
        }
    }


def scores(policies: Collection[str], folder: Path, results: Mapping[str, Any]) -> dict[str, Any]:
    rows = results["suites"]["eapo"]["sets"][_CHAINS]["rows"]
    return {"after": {name: row for name, row in rows.items() if name in policies}}

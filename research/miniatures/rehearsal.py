"""Papers' presets from the command line to the exported model, on models of random weights.

``PYTHONPATH=research python -m miniatures.rehearsal core-qwen-gsm8k --scale 0.01``

Models have the architecture, tokenizer and chat template of the paper's, data sets their columns.
Flags cut counts and lengths, further flags go to ``train.py``; all else is the preset's. Every
phase is a process of its own, whose time and largest memory are printed.
"""

import argparse
import json
import multiprocessing
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coterie.agents.models.papers import CONFIGS
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.envs.presets import published
from miniatures.shapes import build
from miniatures.stand_ins import data_sets, expert

_SHORT = ("--env.max-new-tokens", "24", "--env.eval-max-new-tokens", "24")
_FEW = ("--problems.held-out", "2")
CUT = {
    "core-teaching": (*_SHORT, *_FEW),
    "sd-e2": (*_SHORT, *_FEW),
    "corea-deferral": (
        *("--env.max-new-tokens", "24", "--env.eval-traces", "2", *_FEW),
        *("--rollout.problems-per-step", "4"),
    ),
    "eapo-consultation": (
        *("--env.max-new-tokens", "48", "--env.eval-samples", "2", "--env.group-size", "8"),
        *("--rollout.problems-per-step", "1", "--algo.generation-batch", "2"),
        # The competition's file is left out, as docs/presets.md says.
        *("--problems.eval", "aime24", "aime25", *_FEW),
    ),
}
"""Environment -> flags that cut counts and lengths."""
_LOADED = ["coterie.training.session", "coterie.benchmark", "peft", "datasets"]
"""What every phase imports: once for all of them, and outside their time."""
_ASKED = ("--questions", "2", "--samples", "2", "--resamples", "20")


@dataclass(frozen=True)
class Command:
    """One command of a rehearsal."""

    name: str
    program: Literal["train", "benchmark"]
    arguments: tuple[str, ...]

    def run(self) -> int:
        """Run the command and return its exit code."""
        from coterie import benchmark, train

        return {"train": train.main, "benchmark": benchmark.main}[self.program](self.arguments)


def models_of(name: str, folder: Path, scale: float, port: int) -> dict[str, str]:
    """Role -> what stands for the paper's model: a folder under ``folder``, or a server."""
    models = {}
    for role, model in published()[name].models.items():
        if role not in parse(["--preset", name]).agents:
            continue
        if model.startswith("server:"):
            models[role] = model.replace(":8000", f":{port}")
            continue
        here = folder / model.replace("/", "--")
        if not here.exists():  # whole, or not at all
            build(model, here.with_name(f"{here.name}.part"), scale=scale).rename(here)
        models[role] = str(here)
    return models


def flags_of(name: str, models: Mapping[str, str], more: Sequence[str] = ()) -> tuple[str, ...]:
    """What ``train.py`` is told; what is measured has a phase of its own. Learners compute in
    float32 on any processor, as sampling and learning agree to the last digits only there."""
    who = (part for role, what in models.items() for part in (f"--agents.{role}.model", what))
    exact = (part for role in learners_of(name) for part in (f"--agents.{role}.dtype", "float32"))
    cut = (*CUT[published()[name].env], "--eval.no-enabled")
    return tuple(overlay(("--preset", name, *who, *exact, *cut, *more)))


def phases(
    name: str, models: Mapping[str, str], folder: Path, more: Sequence[str] = ()
) -> Iterator[Command]:
    """A step, a resumed step, an evaluation, a benchmark, and a step from what was exported;
    ``more`` flags go to ``train.py``."""
    settings, run = parse(["--preset", name]), folder / "run"
    flags, learners = flags_of(name, models, more), learners_of(name)
    here = ("--steps", "1", "--run-dir", str(run))
    yield Command("step", "train", tuple(overlay((*flags, *here))))
    yield Command("resume", "train", ("--resume", str(run), "--steps", "2"))
    yield Command("evaluate", "train", ("--evaluate", str(run), "--samples", "2"))

    first, short = learners[0], ("--max-new-tokens", "24")
    if settings.choice.env == "corea-deferral":
        who = ("corea", "--preset", name, "--base", models["small"], "--large", models["large"])
        who += ("--corea", str(run)) if first == "small" else ()
    elif settings.choice.env == "eapo-consultation":
        who = ("eapo", "--preset", name, "--base", models["policy"], "--expert", models["expert"])
        who += ("--eapo", str(run), "--replies", "4", "--problems", "aime24")
        short = ("--env.max-new-tokens", "24", "--env.expert-max-new-tokens", "24")
        short += ("--leap.max-new-tokens", "24", "--leap.block-tokens", "8")
    else:
        who = ("--preset", name, "--policies", *(f"{role}={run}" for role in learners))
        who += (f"base={models[first]}", "--suite")
        who += ("core",) if len(learners) > 1 else (settings.choice.env, "--role", first)
    out = ("--out", str(folder / "compared"))
    yield Command("benchmark", "benchmark", (*who, *_ASKED, *short, *out))

    exported = {role: str(run / "final" / role) for role in learners}
    flags = flags_of(name, {**models, **exported}, more)
    there = ("--steps", "1", "--run-dir", str(folder / "further"))
    yield Command("export", "train", tuple(overlay((*flags, *there))))


def learners_of(name: str) -> list[str]:
    """The roles that a preset trains."""
    return [role for role, agent in parse(["--preset", name]).agents.items() if agent.trained]


def in_a_process(phase: Command, log: Path) -> tuple[int, dict[str, float]]:
    """Run it where nothing else has run, with its output in ``log``; return its exit code, and its
    seconds, processor seconds and largest memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        return pool.submit(_run, phase, log).result()


def _run(phase: Command, log: Path) -> tuple[int, dict[str, float]]:
    start = time.perf_counter()
    with log.open("w") as file, redirect_stdout(file), redirect_stderr(file), data_sets():
        code = phase.run()
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return code, {
        f"{phase.name}_s": round(time.perf_counter() - start, 1),
        f"{phase.name}_cpu_s": round(time.process_time(), 1),
        f"{phase.name}_mib": kib >> 10,
    }


def rehearse(name: str, folder: Path, scale: float, more: Sequence[str] = ()) -> dict[str, float]:
    """Return the figures of one preset; its runs are deleted where every phase went well.

    Raises:
        RuntimeError: a phase failed; names its log.
    """
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    figures: dict[str, float] = {}
    with expert() as port:
        models = models_of(name, folder / f"models-{scale:g}", scale, port)
        for phase in phases(name, models, place, more):
            code, taken = in_a_process(phase, log := place / f"{phase.name}.log")
            if code:
                raise RuntimeError(f"{name}, {phase.name}: exit code {code}, see {log}")
            figures |= taken
    shutil.rmtree(place)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """Rehearse presets one after the other; a line of JSON for each, 1 where one failed."""
    known = [name for name, preset in published().items() if _has_shapes(preset.models.values())]
    parser = argparse.ArgumentParser(prog="python -m miniatures.rehearsal", description=__doc__)
    parser.add_argument("names", nargs="+", choices=[*known, "all"], help="presets", metavar="NAME")
    parser.add_argument(
        "--scale", type=float, default=1e-4, help="size, as a share of the real one"
    )
    parser.add_argument("--folder", type=Path, default=Path("rehearsals"), help="for its files")
    multiprocessing.set_forkserver_preload(_LOADED)
    options, more = parser.parse_known_args(arguments)
    failed = False
    for name in known if "all" in options.names else options.names:
        try:
            figures = rehearse(name, options.folder, options.scale, more)
            print(json.dumps({"preset": name, **figures}), flush=True)
        except RuntimeError as error:
            failed = True
            print(error, file=sys.stderr, flush=True)
    return int(failed)


def _has_shapes(models: Iterable[str]) -> bool:
    return all(model in CONFIGS or model.startswith("server:") for model in models)


if __name__ == "__main__":
    sys.exit(main())

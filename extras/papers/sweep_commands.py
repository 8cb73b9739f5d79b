"""The commands of a sweep: trainings and comparisons, which continue where they stopped."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from coterie.agents.team.graders import check_graders
from coterie.benchmark import comparisons
from coterie.cli.arguments import flags_in, options, overlay, positive
from coterie.cli.flags import parse_flags
from coterie.datatypes import UserError
from coterie.envs.paper_tables import Table, Variant
from coterie.evaluation.compare.inherited_settings import (
    preset_comparison,
    preset_problems,
    preset_questions,
    refuse_idle,
)
from coterie.evaluation.compare.jobs import open_questions
from coterie.evaluation.compare.settings import ComparisonSettings
from coterie.problems.opening import check_source, trains_on
from coterie.problems.sizes import measured

# Flags of train.py -> those of a distillation.
_OF_DISTILL = {"--problems.train": "--problems", "--problems.held-out": "--questions"}


@dataclass(frozen=True)
class SweepCommand:
    """One command and the folder that it writes."""

    program: str
    """``train`` or ``benchmark``."""
    arguments: tuple[str, ...]
    folder: Path
    done: str
    """File or folder inside it that appears when the command is complete."""
    trains: bool = True
    """Whether it is a training; a comparison continues from its stored responses."""

    @property
    def finished(self) -> bool:
        return (self.folder / self.done).exists()

    def command(self) -> list[str]:
        """The command line of a new start, or of resuming an interrupted run."""
        # A whole checkpoint is of a step or of the warm-up.
        if self.program == "train" and any(self.folder.glob("checkpoints/[!.]*")):
            return ["train.py", "--resume", str(self.folder)]
        return [f"{self.program}.py", *self.arguments]

    def run(self) -> None:
        """Run the command to its end.

        Raises:
            UserError: the command failed.
        """
        program, *arguments = self.command()
        if self.trains and "--resume" not in arguments and self.folder.is_dir():
            # It stopped before its first checkpoint, and a trainer needs an empty folder.
            shutil.rmtree(self.folder)
        module = f"coterie.{program.removesuffix('.py')}"
        code = subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode
        if code or not self.finished:
            raise UserError(
                f"{shlex.join(['python', program, *arguments])} ended with exit code {code}; the "
                "same sweep continues from there"
            )


def training(
    table: Table,
    seeds: Sequence[int],
    out: Path,
    *,
    steps: int | None,
    more: Sequence[str],
    scored: Sequence[str] = (),
) -> Iterator[SweepCommand]:
    """The training of every variant with every seed. ``more``: further flags of all of them;
    ``scored``: sets that the comparison scores, which distillations keep out of training."""
    imitating, _ = of_distillation(more, scored)
    for variant in table.variants:
        for seed in seeds:
            folder = run_of(variant, seed, out)
            numbers = ("--seed", str(seed), *(() if steps is None else ("--steps", str(steps))))
            if variant.program == "distill":
                flags = overlay((*variant.flags, *imitating, *numbers, "--out", str(folder)))
                command = ("distill", *flags)
                # The last file that it writes: a kill may leave only a part of the model.
                yield SweepCommand("benchmark", command, folder, "distillation.json")
            else:
                flags = overlay((*variant.flags, *more, *numbers, "--run-dir", str(folder)))
                yield SweepCommand("train", tuple(flags), folder, "summary.json")


def of_distillation(more: Sequence[str], scored: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """What a distillation takes of further flags of every training, as it calls them, and the flags
    that are left out. Sets may be ``scored`` besides those in the flags."""
    flags: list[str] = []
    left_out: list[str] = []
    sets = list(scored)
    for word, *values in options(more):
        flag = word.replace("_", "-")
        if flag == "--problems.eval":
            sets += values
        elif flag in _OF_DISTILL:
            flags += [_OF_DISTILL[flag], *values]
        else:
            left_out.append(word)
    return [*flags, *(["--scored", *dict.fromkeys(sets)] if sets else [])], left_out


def comparing(
    name: str, table: Table, seeds: Sequence[int], out: Path, more: Sequence[str]
) -> Iterator[SweepCommand]:
    """The comparison of the table ``name`` for every seed, each with the further flags ``more``."""
    for seed in seeds if table.comparison else ():
        arguments = list(table.comparison)
        for variant in table.variants:
            run = str(run_of(variant, seed, out))
            arguments = [argument.replace(f"{{{variant.name}}}", run) for argument in arguments]
        folder = out / name / f"seed-{seed}"
        arguments += [*more, "--seed", str(seed), "--out", str(folder)]
        command = tuple(overlay(arguments))
        yield SweepCommand("benchmark", command, folder, "results.json", trains=False)


def check_comparison(arguments: Sequence[str], *, reads: bool) -> None:
    """Refuse a command of ``benchmark.py`` that would fail after its trainings; its runs need not
    exist yet. With ``reads``, also open the sets of problems and check their graders.

    Raises:
        UserError: a flag, a value or a set of problems is invalid.
    """
    settings, typed_flags = _read(arguments)
    if not getattr(settings, "preset", ""):
        refuse_idle(settings, typed_flags)
    sets = scored_sets(arguments)
    for problems in sets:
        check_source(problems)
    if reads and isinstance(settings, ComparisonSettings) and sets:
        opened = open_questions(sets, settings)
        check_graders(
            settings.scoring, [problem for questions in opened for problem in questions.problems]
        )


def scored_sets(arguments: Sequence[str]) -> tuple[str, ...]:
    """The sets of problems that a comparison of ``benchmark.py`` scores, or a distillation
    learns."""
    settings, typed_flags = _read(arguments)
    preset = getattr(settings, "preset", "")
    if preset and "--problems" not in typed_flags:
        return preset_problems(preset)
    return (settings.problems,) if isinstance(settings.problems, str) else settings.problems


def _read(arguments: Sequence[str]) -> tuple[Any, set[str]]:
    """The settings of a command of ``benchmark.py``, and the flags that are typed there."""
    name, *flags = arguments
    module, kind, _ = comparisons()[name]
    settings = parse_flags(getattr(import_module(module), kind), flags, prog=f"benchmark.py {name}")
    return settings, {*map(positive, flags_in(flags))}


def answers_of(arguments: Sequence[str]) -> str:
    """Say how many answers a comparison of ``benchmark.py`` samples."""
    settings, typed_flags = _read(arguments)
    counts = {key: getattr(settings, key) for key in ("questions", "held_out", "samples")}
    if settings.preset:
        paper = preset_questions(settings.preset, typed_flags)
        counts |= {
            key: n for key, n in paper.items() if f"--{key.replace('_', '-')}" not in typed_flags
        }
    sizes = [
        measured([each], (trains_on(each) and counts["held_out"]) or counts["questions"] or None)
        for each in scored_sets(arguments)
    ]
    problems = [size for size in sizes if size is not None]
    if len(problems) < len(sizes):
        return "answers are not counted: only reading the problems tells how many there are"
    answers = sum(problems) * counts["samples"]
    line = f"{answers:,} answers of each model or system to {sum(problems):,} problems"
    if (
        settings.preset
        and "--rlvr" in typed_flags
        and (fitted := preset_comparison(settings.preset))
    ):
        from coterie.extras.papers.corea import ROUTER_RESPONSES

        line += f", {ROUTER_RESPONSES * fitted['fit_questions']:,} of one model to fit on"
    return line


def run_of(variant: Variant, seed: int, out: Path) -> Path:
    """The folder of a variant's run, which all tables with the variant share."""
    return out / "runs" / f"{variant.name}-{seed}"

"""The commands that a table needs, and which of them are still to be run."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coterie.datatypes import UserError
from coterie.papers.preset import Table, Variant


@dataclass(frozen=True)
class Job:
    """One command, and the folder that it fills."""

    program: str
    """``train`` or ``benchmark``."""
    arguments: tuple[str, ...]
    folder: Path
    done: str
    """File or folder in it that appears at its end."""
    trains: bool = True
    """Whether it is a training; a comparison goes on from what it has stored."""

    @property
    def finished(self) -> bool:
        return (self.folder / self.done).exists()

    def command(self) -> list[str]:
        """As it would be typed: new, or to take up what was cut off."""
        if self.program == "train" and any(self.folder.glob("checkpoints/step-*")):
            return ["train.py", "--resume", str(self.folder)]
        return [f"{self.program}.py", *self.arguments]

    def run(self) -> None:
        """Run it to its end.

        Raises:
            UserError: it failed.
        """
        program, *arguments = self.command()
        if self.trains and "--resume" not in arguments and self.folder.is_dir():
            # It was cut off before its first checkpoint; a trainer wants an empty folder.
            shutil.rmtree(self.folder)
        module = f"coterie.{program.removesuffix('.py')}"
        code = subprocess.run([sys.executable, "-m", module, *arguments], check=False).returncode
        if code or not self.finished:
            raise UserError(
                f"{shlex.join(['python', program, *arguments])} ended with exit code {code}; the "
                "same sweep goes on from there"
            )


def training(
    table: Table, seeds: Sequence[int], out: Path, *, steps: int | None, more: Sequence[str]
) -> Iterator[Job]:
    """Every variant with every seed."""
    for variant in table.variants:
        for seed in seeds:
            folder = run_of(variant, seed, out)
            numbers = ("--seed", str(seed), *(() if steps is None else ("--steps", str(steps))))
            if variant.program == "distill":
                place = ("--out", str(folder))
                yield Job(
                    "benchmark", ("distill", *variant.flags, *numbers, *place), folder, "final"
                )
            else:
                place = ("--run-dir", str(folder))
                flags = (*variant.flags, *more, *numbers, *place)
                yield Job("train", flags, folder, "summary.json")


def comparing(
    name: str, table: Table, seeds: Sequence[int], out: Path, more: Sequence[str]
) -> Iterator[Job]:
    """The table's comparison with every seed."""
    for seed in seeds if table.comparison else ():
        arguments = list(table.comparison)
        for variant in table.variants:
            run = str(run_of(variant, seed, out))
            arguments = [one.replace(f"{{{variant.name}}}", run) for one in arguments]
        folder = out / name / f"seed-{seed}"
        numbers = (*more, "--seed", str(seed), "--out", str(folder))
        yield Job("benchmark", (*arguments, *numbers), folder, "results.json", False)


def run_of(variant: Variant, seed: int, out: Path) -> Path:
    """Where a variant is trained; the same for every table that has it."""
    return out / "runs" / f"{variant.name}-{seed}"

"""Rebuild the tiny team: ``PYTHONPATH=research python -m miniatures.build alice``."""

import argparse
import dataclasses
import importlib
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from coterie.datatypes import UserError
from miniatures.recipe import Recipe
from miniatures.recipes import RECIPES

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from miniatures.fitting import Report

SHIPPED = Path(__file__).resolve().parents[2] / "agents" / "models" / "tiny"
"""Where the repository keeps the checkpoints."""
_ATTEMPTS = 6


def main(arguments: list[str] | None = None) -> int:
    """Parse, build, and say what came out; 2 where the user or every seed failed."""
    parser = argparse.ArgumentParser(
        prog="python -m miniatures.build",
        description="Train tiny roles from scratch and write those that pass their gate.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("role", choices=[*RECIPES, "all"], help="which role to build")
    parser.add_argument("--into", type=Path, default=SHIPPED, help="folder of the checkpoints")
    parser.add_argument("--seed", type=int, default=None, help="first seed; the recipe's if absent")
    parser.add_argument("--attempts", type=int, default=_ATTEMPTS, help="seeds to try per role")
    parser.add_argument("--threads", type=int, default=1, help="threads of one training")
    options = parser.parse_args(arguments)
    roles = list(RECIPES) if options.role == "all" else [options.role]
    try:
        if options.attempts < 1 or options.threads < 1:
            raise UserError("--attempts and --threads must be 1 or more")
        for role in roles:
            recipe = RECIPES[role]
            if options.seed is not None:
                recipe = dataclasses.replace(recipe, seed=options.seed)
            build(recipe, options.into / role, attempts=options.attempts, threads=options.threads)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(recipe: Recipe, into: Path, *, attempts: int = _ATTEMPTS, threads: int = 1) -> dict:
    """Warm-start seed after seed until one passes the gate; write it and return its record."""
    import torch

    from miniatures.fitting import NoConvergence
    from miniatures.gate import as_json, asking, complaints
    from miniatures.tokenizers import build_tokenizer

    torch.set_num_threads(threads)
    family = importlib.import_module(f"miniatures.{recipe.family}")
    for attempt in range(attempts):
        tried = dataclasses.replace(recipe, seed=recipe.seed + attempt)
        tokenizer = build_tokenizer(tried)
        started = time.perf_counter()
        try:
            with progress(f"{tried.role} (seed {tried.seed})") as report:
                model = warm_start(tried, tokenizer, report)
        except NoConvergence as plateau:
            print(f"{tried.role}: seed {tried.seed} refused: {plateau}")
            continue
        seconds = time.perf_counter() - started
        measured = family.measure(tried, asking(model, tokenizer))
        print(f"{tried.role}: seed {tried.seed}, {seconds:.0f} s: {as_json(measured)}")
        if refused := complaints(measured, tried.gate):
            print(f"{tried.role}: seed {tried.seed} refused: {'; '.join(refused)}")
            continue
        model.save_pretrained(into)
        # A fresh one: sampling leaves its padding behind in the tokenizer that it used.
        build_tokenizer(tried).save_pretrained(into)
        record = {
            "measured": as_json(measured),
            "recipe": dataclasses.asdict(tried),
            "attempt": attempt + 1,
            "train_s": round(seconds, 1),
        }
        (into / "gate.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return record
    raise UserError(
        f"{recipe.role}: no seed in {recipe.seed}..{recipe.seed + attempts - 1} passed the gate; "
        "try another --seed or more --attempts"
    )


def warm_start(
    recipe: Recipe, tokenizer: "PreTrainedTokenizerFast", report: "Report"
) -> "PreTrainedModel":
    """Return a model that has read the role's texts.

    Raises:
        NoConvergence: it stays on the plateau of phase 1.
    """
    import torch

    from miniatures import deferral
    from miniatures.fitting import train
    from miniatures.network import build_model, remember

    torch.manual_seed(recipe.seed)
    model = build_model(recipe, tokenizer)
    if recipe.family == "deferral":
        remember(model, tokenizer, deferral.beliefs(recipe))
    phases = importlib.import_module(f"miniatures.{recipe.family}").phases(recipe)
    train(recipe, model, tokenizer, phases, report)
    return model


@contextmanager
def progress(title: str) -> "Iterator[Report]":
    """One bar a phase, with the smoothed loss."""
    loss = TextColumn("{task.completed}/{task.total}, loss {task.fields[loss]:.3f}")
    phases: dict[str, TaskID] = {}
    with Progress("{task.description}", BarColumn(), loss, TimeElapsedColumn()) as bars:

        def report(phase: str, step: int, steps: int, loss: float) -> None:
            if phase not in phases:
                phases[phase] = bars.add_task(f"{title} {phase}", total=steps, loss=loss)
            bars.update(phases[phase], completed=step, loss=loss)

        yield report


if __name__ == "__main__":
    raise SystemExit(main())

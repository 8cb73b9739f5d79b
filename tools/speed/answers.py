"""Measure how many answers a second are checked: ``python tools/speed/answers.py --data FOLDER``.

Half of the answers are right. Short-cuts decide numbers; formulas need algebra, and so show the
gain of a second worker. ``golds`` are gold answers of GSM8K and MATH-500, half of each, from the
folder's ``gsm8k_test.jsonl`` and ``math500.jsonl``. Each is answered by itself in another spelling,
or by the gold answer of another problem.
"""

import argparse
import os
import random
import time
from dataclasses import replace
from pathlib import Path

from coterie.datatypes import Problem
from coterie.problems.files import load_file
from coterie.rewards.grading.answers import Checker

Request = tuple[str, Problem]

SETS = ("gsm8k_test.jsonl", "math500.jsonl")


def numbers(rng: random.Random, count: int) -> list[Request]:
    """Return fractions in several spellings."""
    requests: list[Request] = []
    for index in range(count):
        top, bottom = rng.randint(-999, 999), rng.choice((2, 4, 5, 8))
        stated = top + rng.randint(0, 1)
        spelling = rng.choice(
            (rf"\frac{{{stated}}}{{{bottom}}}", f"{stated}/{bottom}", f"{stated / bottom:.3f}")
        )
        problem = Problem(id=str(index), question="", gold=rf"\frac{{{top}}}{{{bottom}}}")
        requests.append((rf"So the answer is $\boxed{{{spelling}}}$.", problem))
    return requests


def formulas(rng: random.Random, count: int) -> list[Request]:
    """Return products of linear factors, each answered by its expansion."""
    requests: list[Request] = []
    for index in range(count):
        a, b, c = (rng.randint(2, 30) for _ in range(3))
        shift = rng.randint(0, 1)
        problem = Problem(id=str(index), question="", gold=f"({c}x+{a})(x+{b})")
        stated = f"{c}x^2+{a + b * c}x+{a * b + shift}"
        requests.append((rf"So the answer is $\boxed{{{stated}}}$.", problem))
    return requests


def golds(rng: random.Random, count: int, folder: Path) -> list[Request]:
    """Return gold answers of :data:`SETS`."""
    requests: list[Request] = []
    for name in SETS:
        source = load_file(folder / name)
        for _ in range(count // len(SETS)):
            problem, other = (source[rng.randrange(source.size)] for _ in range(2))
            stated = rng.choice((_respell(problem.gold), other.gold))
            # The checker caches verdicts; with a number, no two questions are equal.
            problem = replace(problem, question=f"{problem.question} ({len(requests)})")
            requests.append((rf"So the answer is $\boxed{{{stated}}}$.", problem))
    rng.shuffle(requests)
    return requests


def _respell(gold: str) -> str:
    if gold.isdigit():
        return f"{int(gold):,}.00"
    return gold.replace(r"\frac", r"\dfrac").replace("+", " + ").replace("(", r"\left( ")


def rate(requests: list[Request], workers: int) -> tuple[float, float, int]:
    """Return answers per second with warm workers, CPU milliseconds per answer, and right answers.

    CPU time includes the workers' and their start.
    """
    before = _cpu_s()
    checker = Checker(workers=workers, deadline_s=20.0)
    warm = [(rf"\boxed{{{i}+y}}", Problem(id="w", question="", gold=f"z+{i}")) for i in range(32)]
    checker.check_many(warm)
    start = time.perf_counter()
    verdicts = checker.check_many(requests)
    elapsed = time.perf_counter() - start
    checker.close()
    cpu_ms = (_cpu_s() - before) / len(requests) * 1000
    return len(requests) / elapsed, cpu_ms, sum(verdict.correct for verdict in verdicts)


def _cpu_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> None:
    """Print a row for each kind of answer, for one and two workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="answers of each kind")
    parser.add_argument("--data", type=Path, help=f"folder that holds {' and '.join(SETS)}")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.count < 2:
        parser.error("--count must be at least 2")
    rng = random.Random(options.seed)
    kinds = {"numbers": numbers(rng, options.count), "formulas": formulas(rng, options.count)}
    if options.data is not None:
        kinds["golds"] = golds(rng, options.count, options.data)
    print(f"{options.count} answers of each kind, {os.cpu_count()} cores")
    print(f"{'answers':<10}{'workers':>8}{'answers/s':>12}{'CPU ms':>9}{'right':>8}")
    for name, requests in kinds.items():
        for workers in (1, 2):
            speed, cpu_ms, right = rate(requests, workers)
            print(f"{name:<10}{workers:>8}{speed:>12,.0f}{cpu_ms:>9.2f}{right:>8}")


if __name__ == "__main__":
    main()

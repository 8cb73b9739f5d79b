"""How many answers a second are checked: ``python tools/speed/answers.py``.

Generated answers, half of them right. Numbers are settled by the short-cuts; formulas need
math-verify, so they show what a second worker is worth.
"""

import argparse
import os
import random
import time

from rewards.answers import Checker
from vocabulary import Problem

Request = tuple[str, Problem]


def numbers(rng: random.Random, count: int) -> list[Request]:
    """Fractions in several spellings."""
    requests: list[Request] = []
    for index in range(count):
        top, bottom = rng.randint(-999, 999), rng.choice((1, 2, 4, 5, 8))
        stated = top + rng.randint(0, 1)
        spelling = rng.choice(
            (rf"\frac{{{stated}}}{{{bottom}}}", f"{stated}/{bottom}", f"{stated / bottom:.3f}")
        )
        problem = Problem(id=str(index), question="", gold=rf"\frac{{{top}}}{{{bottom}}}")
        requests.append((rf"So the answer is $\boxed{{{spelling}}}$.", problem))
    return requests


def formulas(rng: random.Random, count: int) -> list[Request]:
    """Products of linear factors against their expansion."""
    requests: list[Request] = []
    for index in range(count):
        a, b, c = (rng.randint(2, 30) for _ in range(3))
        shift = rng.randint(0, 1)
        problem = Problem(id=str(index), question="", gold=f"({c}x+{a})(x+{b})")
        stated = f"{c}x^2+{a + b * c}x+{a * b + shift}"
        requests.append((rf"So the answer is $\boxed{{{stated}}}$.", problem))
    return requests


def rate(requests: list[Request], *, shortcuts: bool, workers: int) -> tuple[float, int]:
    """(answers per second with warm workers, answers that were right)."""
    checker = Checker(shortcuts=shortcuts, workers=workers, deadline_s=20.0)
    warm = [(rf"\boxed{{{i}+y}}", Problem(id="w", question="", gold=f"z+{i}")) for i in range(32)]
    checker.check_many(warm)
    start = time.perf_counter()
    verdicts = checker.check_many(requests)
    elapsed = time.perf_counter() - start
    checker.close()
    return len(requests) / elapsed, sum(verdict.correct for verdict in verdicts)


def main() -> None:
    """Print one row for each kind of answer, with and without short-cuts, by workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="answers of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.count < 1:
        parser.error("--count must be at least 1")
    rng = random.Random(options.seed)
    print(f"{options.count} answers of each kind, {os.cpu_count()} cores")
    print(f"{'answers':<10}{'short-cuts':<12}{'workers':>8}{'answers/s':>12}{'right':>8}")
    for name, make in (("numbers", numbers), ("formulas", formulas)):
        requests = make(rng, options.count)
        for shortcuts in (True, False):
            for workers in (1, 2):
                speed, right = rate(requests, shortcuts=shortcuts, workers=workers)
                switch = "on" if shortcuts else "off"
                print(f"{name:<10}{switch:<12}{workers:>8}{speed:>12,.0f}{right:>8}")


if __name__ == "__main__":
    main()

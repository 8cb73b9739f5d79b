"""What bounds a training step with so many policies on so many GPUs, by simulation.

    PYTHONPATH=tools python -m scale.scenarios
    PYTHONPATH=tools python -m scale.page

The first writes ``docs/scale/results.jsonl`` (half an hour), the second table and picture of
``docs/scale.md``. Placement and memory are the program's own (:mod:`coterie.cluster.bases`,
:mod:`coterie.training.plan`), and so is routing (:mod:`coterie.cluster.routing`).
"""

import itertools
import json
import math
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.cluster.routing import PREFIX, choose
from scale.constants import value
from scale.model import (
    MODELS,
    TURNS,
    Case,
    Split,
    bases_of,
    holds,
    kind_of,
    placed,
    planned,
    splits,
    update_s,
    weights_s,
    why_not,
)
from scale.simulation import Ask, Route, Work, play

RESULTS = Path(__file__).resolve().parents[2] / "docs/scale/results.jsonl"
POLICIES, GPUS, TUNINGS = (2, 4, 8), (8, 64, 1000), ("lora", "full")


def _by_crc(prompt: Any, engines: Any, load: Any) -> str:
    begun = zlib.crc32(prompt[:PREFIX].tobytes())
    return max(engines, key=lambda name: zlib.crc32(name.encode(), begun))


ROUTES: dict[str, Route] = {
    "program": choose,
    "CRC of the beginning": _by_crc,
    "even hash of the beginning": lambda prompt, engines, load: choose(prompt, engines, {}),
    "least loaded": lambda prompt, engines, load: min(engines, key=lambda name: load.get(name, 0)),
}
"""The program's; what it had before; without a bound; without the beginning."""


def lengths(case: Case, seed: int = 0) -> Any:
    """(episodes, policies, answers) tokens of every answer."""
    random, sigma = np.random.default_rng(seed), value("sigma") / math.sqrt(2)
    own = random.normal(0, sigma, (case.episodes, case.policies, sum(TURNS)))
    problem = random.normal(0, sigma, (case.episodes, 1, 1))
    drawn = value("median") * np.exp(problem + own)
    return np.clip(drawn, 1, value("longest")).astype(int)


def episodes_of(case: Case, written: Any) -> list[list[list[Ask]]]:
    """The same, as requests to the bases."""
    random = np.random.default_rng(1)
    prompts = random.integers(0, 150_000, (case.episodes, PREFIX))
    if case.alike:
        prompts[:] = prompts[0]
    found = []
    for prompt, answers in zip(prompts, written):
        turns, first = [], 0
        for turn, count in enumerate(TURNS):
            read = int(value("prompt") + turn * value("hint"))
            turns.append([
                Ask("policy0" if case.tuning == "lora" else f"policy{policy}", f"policy{policy}",
                    prompt, read, int(value("prompt")) - 1, int(answers[policy, place]))
                for policy in range(case.policies) for place in range(first, first + count)
            ])  # fmt: skip
            first += count
        found.append(turns)
    return found


def guess_s(case: Case, written: Any, split: Split) -> float:
    """Roughly: to choose the placement that is simulated."""
    kind, engines = kind_of(case, split), bases_of(case) * split.replicas
    mean = written.mean() / 2 + value("prompt")
    rows = max(1, int(min(kind.rows, kind.room / mean, written.size / engines)))
    rate = rows / kind.speed.decode_s(rows, rows * mean)
    longest = value("longest") * kind.speed.decode_s(1, mean)
    return written.sum() / (rate * engines) + longest + update_s(case, written, split)


def simulate(case: Case, split: Split | None = None) -> dict[str, Any]:
    """One row of the results; of what cannot be, why."""
    told, written = asdict(case), lengths(case)
    possible = [one for one in splits(case) if holds(case, one)] if split is None else [split]
    if not possible:
        return told | {"impossible": why_not(case)}
    split = min(possible, key=partial(guess_s, case, written))
    role, kind = planned(case.size, case.tuning, split.learner)[0], kind_of(case, split)
    engines = placed(case, split)[0]
    kinds = dict.fromkeys(engines, kind)
    run = partial(play, episodes_of(case, written), engines, kinds, route=ROUTES[case.route])
    work = Work(value("episode_s"), value("request_s") + value("call_s"), value("token_s"))
    played, free = run(work), run()
    after = case.episodes * value("after_episode_s") + written.size * value("after_row_s")
    after += float(written.sum()) * value("after_token_s")
    update, way = update_s(case, written, split), weights_s(case, role, split)
    phases = {
        "sampling": free.seconds - free.tail_s,
        "tail": free.tail_s,
        "learner": update,
        "weights": way,
        "driver": max(0.0, played.seconds - free.seconds) + after,
    }
    step = sum(phases.values())
    engine_s = sum(played.engine_s.values()) * split.spans
    most = max(played.asked.values()) * bases_of(case) * split.replicas
    return told | {
        "split": asdict(split),
        "step_s": round(step, 1),
        "tokens": played.tokens,
        "phases": {name: round(one, 2) for name, one in phases.items()},
        "busy": round((engine_s + update * split.learner * bases_of(case)) / (case.gpus * step), 4),
        "most_asked": round(most / sum(played.asked.values()), 3),
        "driver_s": round(played.driver_s + after, 1),
        "nccl_s": round(weights_s(case, role, split, nccl=True), 2),
    }


def simulated() -> Iterator[tuple[Case, Split | None]]:
    """All that the page shows; without a split, what :func:`guess_s` chooses."""
    for size, tuning, policies, gpus in itertools.product(MODELS, TUNINGS, POLICIES, GPUS):
        for shared in (False, True):
            yield Case(size, tuning, policies, gpus, shared), None
    small = Case("4B", "lora", 2, 64)
    for route, alike in itertools.product(ROUTES, (False, True)):
        yield replace(small, route=route, alike=alike), Split(16, 48, 1)
    for spans, episodes in itertools.product((1, 2, 4, 8), (512, 2048)):
        yield replace(small, episodes=episodes), Split(16, 48 // spans, spans)
    for episodes in (2048, 4096):
        yield replace(small, gpus=1000, episodes=episodes), None


def main() -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor() as pool, RESULTS.open("w", encoding="utf-8") as file:
        for row in pool.map(simulate, *zip(*simulated())):
            print(line := json.dumps(row), flush=True)
            file.write(line + "\n")


if __name__ == "__main__":
    main()

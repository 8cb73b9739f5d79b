"""Runs behind docs/first-real-model.md: the page's command for several seeds, and what came of it.

``python research/first_model.py MODEL PROBLEMS --seeds 0 1 2 --out runs/first``: runs that are
there already are not made again. The figures of all go to docs/first-real-model.json, from which
``python tools/pictures/draw.py`` draws the page's picture.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.envs.solo.evaluation import estimate
from coterie.evaluation.evaluation import Resampled, difference
from coterie.training.run.directory import METRICS, WARMUP, RunDirectory
from evidence.commands import cpu_s
from evidence.studies import ROOT

RESULTS = ROOT / "docs/first-real-model.json"
FLAGS = shlex.split(
    "--env solo --algo gspo --agents.solver.tuning full --problems.held-out 160 "
    "--env.eval-answers 3 --env.max-new-tokens 24 --warmup.steps 10 "
    "--warmup.problems-per-step 12 --rollout.problems-per-step 12 --learner.lr 1e-5 --steps 16 "
    "--checkpoint-every 8 --algo.overlong-factor 0"
)
"""The page's command, but for the model, the problems, the seed and the folder."""
MOMENTS = ("before", "warmed-up", "after")
_COST = "cost.json"
_RESAMPLES = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run what is missing, and write the metrics of all runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as for --agents.solver.model")
    parser.add_argument("problems", help="as for --problems.train")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("runs/first-real-model"))
    settings = parser.parse_args(argv)
    for seed in settings.seeds:
        if not (settings.out / f"seed{seed}/summary.json").is_file():
            run(settings.model, settings.problems, seed, settings.out)
    rows = [row(settings.out / f"seed{seed}") for seed in settings.seeds]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    for measured in rows:
        print(
            measured["seed"],
            *(measured[when][0] for when in MOMENTS),
            measured["change"],
            measured["cpu_s"],
        )
    return 0


def run(model: str, problems: str, seed: int, out: Path) -> None:
    """Start one run in a separate process; store its cost beside its summary."""
    folder, began, used = out / f"seed{seed}", time.time(), cpu_s()
    own = ("--agents.solver.model", model, "--problems.train", problems, "--seed", str(seed))
    program = (sys.executable, str(ROOT / "train.py"), *FLAGS, *own, "--run-dir", str(folder))
    subprocess.run(program, check=True)
    spent = {"cpu_s": round(cpu_s() - used), "wall_s": round(time.time() - began)}
    (folder / _COST).write_text(json.dumps(spent), encoding="utf-8")


def row(folder: Path) -> dict[str, Any]:
    """Return the metrics of one run: Pass@1 at each moment, and its change by reward, each with its
    95 % interval over held-out problems; the warm-up's losses; the share of right answers in each
    step; and its cost."""
    run = RunDirectory.reopen(folder)
    seed = run.config()["run"]["seed"]
    estimates = {
        when: estimate(_json(folder / f"evaluation/{when}.json"), _RESAMPLES, seed)["pass@1"]
        for when in MOMENTS
    }
    return {
        "seed": seed,
        **{when: _figures(estimated) for when, estimated in estimates.items()},
        "change": _figures(difference(estimates["warmed-up"], estimates["after"])),
        "losses": [round(step["loss/solver"], 3) for step in run.read_log(WARMUP)],
        "right": [round(step["reward/solver"], 4) for step in run.read_log(METRICS)],
        "tokens": _json(folder / "summary.json")["sampled_tokens"],
        **(run.read_json(_COST) or {"cpu_s": None, "wall_s": None}),
    }


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _figures(estimated: Resampled) -> list[float]:
    low, high = estimated.interval()
    return [round(float(value), 4) for value in (estimated.value, low, high)]


if __name__ == "__main__":
    sys.exit(main())

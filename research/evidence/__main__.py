"""The runs behind docs/evidence.md: what is missing is run, one after another, and stored.

    python research/evidence --list              # what is missing, in the order of the studies
    nice python research/evidence --until 13:30  # runs it; begins no run after that time
    python research/evidence --only default-core # those with this in their name
    python research/evidence --again control-disjoint-other-same-330 --seed 7
                                                 # an arm on a fresh seed, shown and not stored
    python research/evidence --tables            # makes the pages' tables and pictures anew

A stored run is not run again; a run that was cut off continues from its last checkpoint. Start the
command as often as there are cores: each run is left to one process.
"""

import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "research"), str(ROOT / "tools")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="show what is missing, and train none")
    parser.add_argument("--tables", action="store_true", help="make the pages' tables anew")
    parser.add_argument("--only", default="", help="of the runs those with this in their name")
    parser.add_argument("--until", default="23:59", help="begin no run after this time, HH:MM")
    parser.add_argument("--out", type=Path, default=ROOT / "runs/evidence", help="where runs go")
    parser.add_argument("--again", default="", help="a run's name without its seed: run it anew")
    parser.add_argument("--seed", type=int, default=7, help="of --again")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from evidence import pages, runner
    from evidence.studies import studies

    if options.tables:
        pages.write()
        return
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if options.again:
        print(runner.again([*studies().values()], options.again, options.seed, out))
        return
    for study in studies().values():
        runs = [run for run in study.missing() if options.only in run.name]
        if options.list:
            print("".join(f"{run.name}\n" for run in runs), end="")
        else:
            runner.run_missing(study, runs, out, options.until)


if __name__ == "__main__":
    main()

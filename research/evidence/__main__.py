"""The runs behind docs/evidence.md: what is missing is trained, run by run, and stored.

    python research/evidence --list              # what is missing, in the order of the protocols
    nice python research/evidence --until 13:30  # trains it; begins no run after that time
    python research/evidence --only default-core # those with this in their name
    python research/evidence --again control-disjoint-other-same-330 --seed 7
                                                 # an arm on a fresh seed, shown and not stored
    python research/evidence --tables            # makes the pages' tables and pictures anew

A finished run is never run again: another session goes on with the next one. A run that was cut off
goes on from its last checkpoint. Start it as often as there are cores: a run is trained by one
process only.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

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
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from evidence import (
        consulting,
        contests,
        controls,
        eapo_published,
        peers,
        published,
        real_models,
    )
    from evidence.runs import again, train_all

    if asked.tables:
        from evidence import (
            consulting_tables,
            contest_tables,
            control_tables,
            eapo_published_tables,
            peer_tables,
            published_tables,
            real_tables,
        )

        peer_tables.write()
        contest_tables.write()
        control_tables.write()
        consulting_tables.write()
        real_tables.write()
        published_tables.write()
        eapo_published_tables.write()
        return
    asked.out.mkdir(parents=True, exist_ok=True)
    # A protocol is a module with RESULTS, planned, stored and train.
    protocols = (peers, contests, controls, consulting, real_models, published, eapo_published)
    if asked.again:
        print(again(protocols, asked.again, asked.seed, asked.out))
        return
    for protocol in protocols:
        tried = None
        # What is planned may depend on what came out.
        while (missing := _missing(protocol, asked.only)) != tried:
            if asked.list:
                print("".join(f"{run.name}\n" for run in missing), end="")
                break
            train_all(protocol, missing, asked.out, asked.until)
            tried = missing


def _missing(protocol: Any, only: str) -> list[Any]:
    done = protocol.stored()
    return [run for run in protocol.planned() if run not in done and only in run.name]


if __name__ == "__main__":
    main()

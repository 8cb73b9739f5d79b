"""This project on a machine with a GPU and no network, whose Python has torch.

    python tools/gpu gather --has freeze.txt --to wheels     where there is an index
    python tools/gpu run --wheels wheels --out results       there; less than ten minutes
    python tools/gpu run --small --out results               the same on a CPU, to rehearse

``freeze.txt`` is the target's ``pip freeze``. See docs/real-models.md.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:1] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "research")]


def main() -> int:
    """Return 0: done, 1: a part failed, 2: the user's mistake."""
    parser = argparse.ArgumentParser(prog="tools/gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="{gather,run}")
    gather = verbs.add_parser("gather", help="fetch the wheels that a machine lacks")
    gather.add_argument("--to", type=Path, required=True, help="folder for the wheels")
    gather.add_argument("--has", type=Path, required=True, help="file with its pip freeze")
    gather.add_argument("--python", default="3.12", help="its Python (default: 3.12)")
    gather.add_argument("--most", type=float, default=45, help="MiB of a wheel (default: 45)")
    run = verbs.add_parser("run", help="run every part, and write figures.json and figures.md")
    run.add_argument("--out", type=Path, required=True, help="folder for the figures")
    run.add_argument("--wheels", type=Path, help="folder of wheels to install for this run alone")
    run.add_argument("--parts", nargs="+", help="only these (default: all)")
    run.add_argument("--small", action="store_true", help="small shapes; always so on a CPU")
    part = verbs.add_parser("part")  # what run starts; without help it is not listed
    part.add_argument("name")
    part.add_argument("--scratch", type=Path, required=True)
    part.add_argument("--small", action="store_true")
    options = parser.parse_args()

    from coterie.datatypes import UserError
    from gpu import gather as wheels
    from gpu import running

    try:
        if options.verb == "gather":
            return wheels.run(options.has, options.to, options.python, options.most)
        if options.verb == "run":
            return running.run(options.out, options.wheels, options.parts, options.small)
        return running.measure(options.name, options.scratch, options.small)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""Write a run as one HTML file: ``coterie report runs/x``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coterie.cli.arguments import Arguments
from coterie.cli.output_paths import check_file, keep
from coterie.datatypes import UserError
from coterie.evaluation.report.scan import WHICH


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 2 the user's mistake."""
    try:
        path, out, options = _parse(sys.argv[1:] if argv is None else argv)
        # Read the command line before the slow imports.
        from coterie.evaluation.report.page import page
        from coterie.evaluation.report.rundata import read_run

        run = read_run(path)
        check_file(out, "--out")
        html = page(run, **options)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(html, encoding="utf-8")
        except OSError as error:
            kept = keep(out.name, html)
            raise UserError(f"--out: {out} cannot be written ({error.strerror}); {kept}") from None
    except UserError as mistake:
        print(f"coterie report: {mistake}", file=sys.stderr)
        return 2
    print(f"{out}  ({len(html.encode()) / 2**20:.1f} MiB)")
    return 0


def _parse(argv: Sequence[str]) -> tuple[Path, Path, dict[str, Any]]:
    """(the run's directory, the file to write, the arguments of :func:`page`)."""
    parser = Arguments(
        prog="coterie report",
        description="Write a run as one self-contained HTML file.",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("run", type=Path, help="the run's directory, such as runs/x")
    parser.add_argument(
        "--out", type=Path, default=None, help="the file to write; without, report.html in the run"
    )
    parser.add_argument(
        "--episodes", type=int, default=60, help="how many episodes the page holds at most"
    )
    parser.add_argument(
        "--which", choices=WHICH, default="spaced", help="evenly spaced over the run, first or last"
    )
    parser.add_argument("--only", metavar="TAG", help="only episodes with this tag, such as failed")
    parser.add_argument(
        "--megabytes",
        type=float,
        default=16.0,
        help="room for episodes; fewer are kept where they are long",
    )
    chosen = vars(parser.read(argv))
    if chosen["episodes"] < 0:
        raise UserError(f"--episodes is {chosen['episodes']}; say how many, 0 or more")
    if not chosen["megabytes"] > 0:
        raise UserError(f"--megabytes is {chosen['megabytes']}; say more than 0")
    run, out = chosen.pop("run"), chosen.pop("out")
    return run, out or run / "report.html", chosen


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        # The help text itself explains a default of None.
        return action.help if action.default is None else super()._get_help_string(action)


if __name__ == "__main__":
    sys.exit(main())

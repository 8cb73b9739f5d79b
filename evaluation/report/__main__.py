"""Write a run as one HTML file: ``coterie report runs/x``."""

import sys
from collections.abc import Sequence

from coterie.datatypes import UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 2 the user's mistake."""
    from coterie.evaluation.report.settings import parse

    try:
        settings = parse(sys.argv[1:] if argv is None else argv)
        # What takes time to import waits until the command line has been read.
        from coterie.evaluation.report.page import page
        from coterie.evaluation.report.rundata import read_run

        html = page(read_run(settings.run), settings)
        try:
            settings.out.parent.mkdir(parents=True, exist_ok=True)
            settings.out.write_text(html, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write {settings.out}: {error.strerror}") from None
    except UserError as mistake:
        print(f"coterie report: {mistake}", file=sys.stderr)
        return 2
    print(f"{settings.out}  ({len(html.encode()) / 2**20:.1f} MiB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())

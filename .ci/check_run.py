"""Whether the README's main job did what the README says: ``python .ci/check_run.py RUN_DIR``.

The bounds leave room for chance: one seed on another machine. Those of the roles are far above
where they start; the team is at the top from the start and must stay there.
"""

import json
import sys
from pathlib import Path

AT_LEAST = {"pass@1/alice": 0.88, "pass@1/bob": 0.92, "team_pass@2": 0.97}


def main(run: Path) -> int:
    summary = json.loads((run / "summary.json").read_text())
    failed = 0
    for name, bound in AT_LEAST.items():
        before, after = summary["before"][name], summary["after"][name]
        good = after >= bound
        failed += not good
        print(f"{name}: {before:.3f} -> {after:.3f} ({'at least' if good else 'BELOW'} {bound})")
    print(f"{summary['wall_s']:.0f} s, {summary['sampled_tokens']:,} sampled tokens")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

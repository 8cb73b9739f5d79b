"""CONTRIBUTING's promise: a new surrogate, with a name and flags of its own, edits two files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

NUMBERS = '''
@dataclass(frozen=True)
class PlainScore(Surrogate):
    """``-weight A log pi``."""

    weight: float = 1.0
    """Multiplies the score."""

    def __post_init__(self) -> None:
        refuse((not self.weight > 0, "algo.surrogate.weight must be above 0"))


'''
FUNCTION = '''
from algorithms.algorithm import PlainScore  # noqa: E402


@surrogate.register
def plain_score(
    choice: PlainScore, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-weight A log pi."""
    ratio_BT = token_ratio(logp_BT, old_BT).detach()
    return Terms(-choice.weight * advantage * logp_BT, ratio_BT, torch.zeros_like(mask_BT))
'''
ENTRY = '    "plain-score": Algorithm(surrogate=PlainScore(weight=0.5)),\n}\n'


def checkout(into: Path) -> Path:
    """This tree with a copy of ``algorithms``, in which files may be edited."""
    for path in ROOT.iterdir():
        if path.name == "algorithms":
            shutil.copytree(path, into / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.name == "train.py":  # a link would put the folder that it points to first
            shutil.copy(path, into)
        elif not path.name.startswith("."):
            (into / path.name).symlink_to(path)
    return into / "algorithms"


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_new_surrogate_edits_two_files(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    data, functions = folder / "algorithm.py", folder / "surrogates.py"
    above = "@dataclass(frozen=True)\nclass Algorithm:"
    edit(data, above, NUMBERS.lstrip("\n") + above)
    edit(data, "epsilon=1e-8),\n}\n", "epsilon=1e-8),\n" + ENTRY)
    functions.write_text(functions.read_text(encoding="utf-8") + FUNCTION, encoding="utf-8")
    changed = {
        path.name
        for path in folder.glob("*.py")
        if path.read_bytes() != (ROOT / "algorithms" / path.name).read_bytes()
    }
    assert changed == {"algorithm.py", "surrogates.py"}

    def train(*flags: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "train.py", "--algo", "plain-score", *flags],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert "--algo.surrogate.weight" in train("--env", "core-teaching", "--help").stdout
    refused = train("--algo.surrogate.weight", "0")
    assert (refused.returncode, "weight must be above 0" in refused.stderr) == (2, True)
    small = ("--rollout.problems-per-step", "2", "--eval.no-enabled", "--problems.held-out", "1")
    done = train("--steps", "1", "--run-dir", "run", *small)
    assert done.returncode == 0, done.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["algo"]["surrogate"] == {"weight": 0.5}

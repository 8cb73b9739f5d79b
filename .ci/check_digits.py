"""Whether a run of tiny models ends in the same digits on another processor: ``check_digits.py``.

The other processor is emulated: its libraries find fewer instructions, and it has one core.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHORT = ("--env", "core-teaching", "--algo", "gspo", "--steps", "3", "--problems.held-out", "32")
OTHER = {
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OMP_NUM_THREADS": "1",
}
# A run that does not promise anything, which shows that the comparison can fail.
UNLIKE = {"ATEN_CPU_CAPABILITY": "default"}


def digits(folder: Path, variables: dict[str, str]) -> dict[str, object]:
    """The trained weights, every episode and the results of a run under ``variables``."""
    command = [sys.executable, "train.py", *SHORT, "--run-dir", str(folder)]
    with open(f"{folder}.log", "w") as log:
        subprocess.run(
            command, cwd=ROOT, env={**os.environ, **variables}, stdout=log, stderr=log, check=True
        )
    summary = json.loads((folder / "summary.json").read_text())
    weights = sorted(folder.glob("final/*/*.safetensors"))
    return {
        **{str(path.relative_to(folder)): path.read_bytes() for path in weights},
        "episodes.jsonl": (folder / "episodes.jsonl").read_bytes(),
        **{name: summary[name] for name in ("before", "after", "sampled_tokens")},
    }


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        here, there = digits(work / "here", {}), digits(work / "there", OTHER)
        unlike = digits(work / "unlike", UNLIKE)
    differing = [name for name in here if here[name] != there[name]]
    print(f"another processor: {', '.join(differing) or 'nothing'} differs of {', '.join(here)}")
    if unlike == here:
        print("other instructions give the same digits, so this shows nothing")
    return 1 if differing or unlike == here else 0


if __name__ == "__main__":
    sys.exit(main())

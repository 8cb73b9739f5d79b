"""Real weights through everything: each environment, team and tuning, as one table.

    python tools/real_matrix.py                        # all eighteen: about an hour and a half
    python tools/real_matrix.py --env core-teaching --team smollm2 --tuning lora

Weights are those of tools/fetch_weights.py, from its cache or from the folder COTERIE_WEIGHTS. A
run is trained, killed, resumed, evaluated, asked by a benchmark and reported, and transformers
loads what it has trained. A row goes to the table as soon as it is done.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coterie.agents.models.cache import fetched_folder
from fetch_weights import WEIGHTS

ROOT = Path(__file__).resolve().parents[1]
ROLES = {
    "core-teaching": ("alice", "bob"),
    "corea-deferral": ("small", "large"),
    "eapo-consultation": ("policy", "expert"),
}
"""Environment -> its roles."""
TEAMS = {
    "smollm2": ("smollm2", "smollm2"),
    "gemma3": ("gemma3", "gemma3"),
    "both": ("smollm2", "gemma3"),
}
"""Team -> the weights of each role."""
TUNINGS = ("lora", "full")
STAGES = ("train, kill", "resume", "evaluate", "benchmark", "report", "export")
"""What is seen of a run, in this order."""
STEPS = 2
_QUESTIONS = 12
_FEW = {
    "core-teaching": ("--env.k-cold", "2"),
    "corea-deferral": ("--env.traces", "2", "--env.eval-traces", "1"),
    "eapo-consultation": (
        *("--env.experts", "1", "--env.group-size", "2", "--env.eval-samples", "1"),
        *("--env.expert-max-new-tokens", "12", "--env.reply-tokens", "12"),
    ),
}
"""Environment -> how few answers it asks for."""
_SHORT = (
    *("--algo", "grpo", "--steps", str(STEPS), "--rollout.problems-per-step", "2"),
    *("--problems.held-out", "2", "--env.max-new-tokens", "12"),
    *("--warmup.steps", "1", "--warmup.problems-per-step", "2"),
    *("--checkpoint-every", "1", "--keep-checkpoints", "1", "--threads", "1"),
)


class Broken(Exception):
    """A stage did not do what it should."""


@dataclass
class Seen:
    """What was seen of one run."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Stage -> how long it took."""
    silence_s: float = 0.0
    """Longest time without a line through the pipe while training, in seconds."""


@dataclass
class Cell:
    """One run of the matrix."""

    env: str
    team: str
    tuning: str

    def check(self, folder: Path) -> Seen:
        """Run it in ``folder``.

        Raises:
            Broken: a stage failed; says which.
        """
        run, problems, seen = folder / "run", write_problems(folder), Seen()
        stages: tuple[Callable[[], None], ...] = (
            lambda: self._train(run, problems, seen),
            lambda: self._resume(run, seen),
            lambda: self._evaluate(run),
            lambda: self._benchmark(run, problems, folder / "compared"),
            lambda: self._report(run),
            lambda: self._load(run),
        )
        for name, do in zip(STAGES, stages, strict=True):
            began = time.monotonic()
            try:
                do()
            except (Broken, OSError, ValueError, AssertionError) as why:
                raise Broken(f"{name}: {why}") from why
            seen.seconds[name] = time.monotonic() - began
        return seen

    def flags(self, run: Path, problems: Path) -> list[str]:
        """Return the flags for train.py."""
        words = ["--env", self.env, *_FEW[self.env], *_SHORT, "--problems.train", str(problems)]
        for role, name in zip(ROLES[self.env], TEAMS[self.team]):
            words += [f"--agents.{role}.model", str(weights_file(name))]
            words += [f"--agents.{role}.tuning", self.tuning]
        return [*words, "--run-dir", str(run)]

    def _train(self, run: Path, problems: Path, seen: Seen) -> None:
        ended = follow(["train.py", *self.flags(run, problems)], seen, lambda: _is_saved(run))
        expect(ended, "it ended before it was killed")

    def _resume(self, run: Path, seen: Seen) -> None:
        follow(["train.py", "--resume", str(run)], seen)
        steps = [
            json.loads(line)["step"] for line in (run / "metrics.jsonl").read_text().splitlines()
        ]
        expect(steps == list(range(1, STEPS + 1)), f"steps are {steps}")
        for when in ("before", "warmed-up", "after"):
            expect(bool(_json(run / f"evaluation/{when}.json")), f"nothing was measured {when}")

    def _evaluate(self, run: Path) -> None:
        follow(["train.py", "--evaluate", str(run)])
        again, after = _json(run / "evaluation/again.json"), _json(run / "evaluation/after.json")
        expect(again["outcomes"] == [after], "the exported models answer otherwise")

    def _benchmark(self, run: Path, problems: Path, out: Path) -> None:
        asked = ["--teams", f"it={run}", "--suite", self.env, "--problems", str(problems)]
        asked += ["--questions", "2", "--samples", "1", "--out", str(out)]
        follow(["benchmark.py", *asked])
        expect(bool(_json(out / "results.json")), "there are no results")

    def _report(self, run: Path) -> None:
        follow(["-m", "coterie", "report", str(run)])
        expect((run / "report.html").stat().st_size > 10_000, "the report is empty")

    def _load(self, run: Path) -> None:
        learned = sorted(path.name for path in (run / "final").iterdir())
        expect(bool(learned), "nothing was exported")
        names = dict(zip(ROLES[self.env], TEAMS[self.team]))
        for role in learned:
            load(run / "final" / role, names[role])


def weights_file(name: str) -> Path:
    """Return the path of the weights ``name``, whether or not the file exists."""
    named = os.environ.get("COTERIE_WEIGHTS")
    return (Path(named) if named else fetched_folder()) / WEIGHTS[name].file


def write_problems(folder: Path) -> Path:
    """Write sums with worked solutions."""
    path = folder / "problems.jsonl"
    sums = [
        {"question": f"What is {n} + 2?", "answer": str(n + 2), "solution": f"{n} + 2 = {n + 2}"}
        for n in range(_QUESTIONS)
    ]
    path.write_text("".join(json.dumps(problem) + "\n" for problem in sums), encoding="utf-8")
    return path


def follow(
    argv: Sequence[str], seen: Seen | None = None, until: Callable[[], bool] | None = None
) -> bool:
    """Run a command of ours to its end, or kill it as soon as ``until``; says whether it was.

    Raises:
        Broken: it failed; its last lines.
    """
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [sys.executable, *argv], cwd=ROOT, env=env, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    killed = threading.Event()

    def watch() -> None:
        while until is not None and process.poll() is None:
            if until():
                killed.set()
                process.kill()
                return
            time.sleep(0.02)

    threading.Thread(target=watch, daemon=True).start()
    lines, last = [], time.monotonic()
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            now = time.monotonic()
            if seen is not None and now - last > seen.silence_s:
                seen.silence_s = now - last
            last = now
            lines.append(line)
    if process.wait() and not killed.is_set():
        raise Broken(" ".join(argv[:2]) + "\n" + "".join(lines[-40:]))
    return killed.is_set()


def load(folder: Path, name: str) -> None:
    """Load what was exported with transformers (and peft) alone, and see that it has learned.

    Raises:
        Broken: it says no finite numbers, or those of the model that it was made of.
    """
    import torch
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from coterie.agents.models.gguf import converted

    torch.set_num_threads(1)
    base = converted(weights_file(name))
    adapter = (folder / "adapter_config.json").is_file()
    kind: Any = AutoPeftModelForCausalLM if adapter else AutoModelForCausalLM
    tokenizer = AutoTokenizer.from_pretrained(base if adapter else folder)
    expect(bool(tokenizer.chat_template) is (name == "smollm2"), "its chat template is another")
    if not adapter:
        expect("quantization_config" not in (folder / "config.json").read_text(), "quantised")
    ids = tokenizer("7 + 8 =", return_tensors="pt")
    said = []
    with torch.no_grad():
        for model in (
            kind.from_pretrained(folder, dtype=torch.float32),
            AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
        ):
            said.append(model(input_ids=ids.input_ids).logits)
    expect(bool(said[0].isfinite().all()), "it says no finite numbers")
    expect(not torch.equal(*said), "it is the model from which training began")


def expect(holds: bool, otherwise: str) -> None:
    """Raise what is wrong, unless it ``holds``."""
    if not holds:
        raise Broken(otherwise)


def _is_saved(run: Path) -> bool:
    return any(run.glob("checkpoints/step-*"))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the selected cells; return 1 if one failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--env", nargs="+", choices=ROLES, default=list(ROLES))
    parser.add_argument("--team", nargs="+", choices=TEAMS, default=list(TEAMS))
    parser.add_argument("--tuning", nargs="+", choices=TUNINGS, default=list(TUNINGS))
    asked = parser.parse_args(argv)
    print("| environment | team | tuning |", " | ".join(STAGES), "| longest silence |")
    print("|---" * (4 + len(STAGES)) + "|", flush=True)
    failed = 0
    for env in asked.env:
        for team in asked.team:
            for tuning in asked.tuning:
                with tempfile.TemporaryDirectory() as folder:
                    try:
                        seen = Cell(env, team, tuning).check(Path(folder))
                        cells = [f"{seen.seconds[name]:.0f} s" for name in STAGES]
                        cells.append(f"{seen.silence_s:.1f} s")
                    except Broken as why:
                        failed += 1
                        cells = [f"failed: {str(why).splitlines()[0]}"]
                        print(why, file=sys.stderr, flush=True)
                print(f"| {env} | {team} | {tuning} |", " | ".join(cells), "|", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

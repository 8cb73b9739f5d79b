"""A training step of core-teaching with two roles of one shape, and its memory beside the plan.

Answers of a random model are all wrong, so that credit is zero everywhere. The update learns from
made-up advantages instead, 1 and -1 in turn.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from coterie.agents.models.forward.packed import pack
from coterie.cli.command_line import parse
from coterie.extras.ops.plan import DevicePlan, plan
from coterie.training.config.preflight import preflight
from coterie.training.session import Session, open_session
from gpu.peak import most_taken
from gpu.shapes import WORK, ceiling, checkpoint, device, operations, settle

GIB = 2**30
_STEPS = 2
"""The last one counts; the first allocates the optimizer's moments."""


def flags(shape: str, tuning: str, model: Path, run: Path) -> list[str]:
    """Return the flags for ``train.py``."""
    work, here = WORK[shape], str(device())
    words = ["--env", "core-teaching", "--algo", "gspo", "--run-dir", str(run)]
    words += ["--problems.train", "chains"]  # generated: a real model's default needs a network
    if (shape, tuning) == ("3b", "full"):
        words += ["--learner.moments", "8bit"]  # two such models need 109 GiB with float32 moments
    words += ["--steps", str(_STEPS), "--eval.no-enabled", "--learner.no-skip-idle-rows"]
    words += ["--rollout.problems-per-step", str(work.problems), "--learner.lr", "1e-5"]
    # A micro-batch costs as much time to launch as 16 thousand tokens take to compute.
    words += ["--env.max-new-tokens", str(work.new), "--learner.micro-batch-tokens", "32768"]
    for role in ("alice", "bob"):
        for name, value in (("model", str(model)), ("tuning", tuning), ("device", here)):
            words += [f"--agents.{role}.{name}", value]
    return words


def measure(shape: str, tuning: str, scratch: Path) -> dict[str, Any]:
    """Return the figures of one step; memory in GiB, times in seconds."""
    model = checkpoint(shape, scratch / shape)
    most = ceiling()
    with ExitStack() as closing:
        place = closing.enter_context(TemporaryDirectory(dir=scratch))
        settings = parse(flags(shape, tuning, model, Path(place) / "run"))
        session = closing.enter_context(open_session(settings, preflight(settings)))
        figures: dict[str, Any] = {}
        metrics, longest = {}, 0
        for number in range(1, _STEPS + 1):
            metrics, longest = _step(session, number, figures)
        config = session.team.loaded["alice"].handle.causal_lm.config
        planned = plan(settings, None, longest).devices[0]
    work = operations(config, figures["learned_tokens"], figures["scored"], full=tuning == "full")
    figures["ceiling_tflops"] = most / 1e12
    figures["share_of_ceiling"] = work / figures["update_s"] / most
    figures |= _beside(planned, figures)
    for role in ("alice", "bob"):
        for name in ("grad_norm", "mismatch/mean", "mismatch/max"):
            figures[f"{role}/{name}"] = metrics[f"learner/{role}/{name}"]
    return figures


def _step(session: Session, number: int, figures: dict[str, Any]) -> tuple[dict[str, float], int]:
    """Measure one step into ``figures``; return its metrics, and the longest prompt of its rows."""
    with _measured(figures, "sample"):
        batch = session.sample(number)
    rows = batch.rows
    credit = session.credit(batch)
    each = np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    with _counted(session, figures), _measured(figures, "update"):
        metrics = session.update(batch, replace(credit, advantage_B=each))
    figures["rows"] = len(rows)
    figures["sampled_tokens"] = int(sum(row.mask.sum() for row in rows))
    figures["sampled_tokens_s"] = figures["sampled_tokens"] / figures["sample_s"]
    figures["learned_tokens_s"] = figures["learned_tokens"] / figures["update_s"]
    return metrics, max(int(np.argmax(row.mask)) for row in rows)


def _resident() -> int:
    """Return this process's memory in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024


@contextmanager
def _measured(figures: dict[str, Any], what: str) -> Iterator[None]:
    """Add the seconds of the body, and the memory at its peak."""
    here = device()
    before = torch.cuda.memory_allocated(here) if here.type == "cuda" else _resident()
    settle()
    start = time.perf_counter()
    with most_taken(here) as taken:
        yield
        settle()
        figures[f"{what}_s"] = time.perf_counter() - start
    figures[f"{what}_gib"] = (before + sum(taken)) / GIB


@contextmanager
def _counted(session: Session, figures: dict[str, Any]) -> Iterator[None]:
    """Count the tokens that an update computes with a gradient, and those that it scores."""
    figures |= {"learned_tokens": 0, "scored": 0}
    handles = [session.team.loaded[role].handle for role in session.team.trained]
    with ExitStack() as closing:
        for handle in handles:
            plain = handle.scored_states

            def counted(ids: Any, mask: Any, plain: Any = plain, handle: Any = handle) -> Any:
                if torch.is_grad_enabled():
                    packed = pack(ids.cpu().numpy(), mask.cpu().numpy())
                    figures["learned_tokens"] += (
                        len(packed.ids_S) if handle.shares_from is not None else ids.numel()
                    )
                    figures["scored"] += len(packed.scored_N)
                return plain(ids, mask)

            vars(handle)["scored_states"] = counted
            closing.callback(vars(handle).pop, "scored_states")
        yield


def _beside(planned: DevicePlan, figures: dict[str, Any]) -> dict[str, float]:
    """Return the plan's memory by phase, and the measured memory as a share of it."""
    compared: dict[str, float] = {}
    # torch does not see what CUDA itself takes.
    own = sum(part.size for part in planned.parts if part.what == "CUDA")
    for phase, when in (("sample", "sampling"), ("update", "learning")):
        size = sum(part.size for part in planned.parts if part.when in ("always", when)) - own
        compared[f"{phase}_planned_gib"] = size / GIB
        compared[f"{phase}_of_plan"] = figures[f"{phase}_gib"] * GIB / size
    return compared

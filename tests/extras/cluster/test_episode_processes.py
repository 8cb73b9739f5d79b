"""Episode workers in processes of their own, which are killed: the run is the one without them."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import train
from coterie.extras.cluster.actor import Actor
from coterie.extras.cluster.episodes import EpisodeWorkers
from coterie.extras.cluster.processes import Process

pytestmark = pytest.mark.slow
Play = Callable[..., dict[str, bytes]]
TWO = ("--cluster.episode-workers", "2", "--cluster.cpus", "0.5")

PLANNING = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, EnvSpec, Outcome

@dataclass(frozen=True)
class PlanningSettings:
    max_new_tokens: int = 24
    breaks: bool = False

class Planning(ConversationEnv):
    title = "planning"
    metadata = {**ConversationEnv.metadata, "name": "planning_v0"}
    settings_class = PlanningSettings
    default_roles = ("planner", "solver")

    def conversation(self, problem, options, random):
        planner, solver = self.possible_agents
        plans = yield {planner: f"Question: {problem.question}"}
        if self.settings.breaks:
            raise LookupError("no way on")
        answers = yield {solver: f"{problem.question} {plans.get(planner, '')}"}
        right = float(self.scorer.check(answers.get(solver, ""), problem).correct)
        return Outcome(terms={planner: {"right": right}, solver: {"right": right}})

SPEC = EnvSpec("planning", 0, "planning:Planning", PlanningSettings, Planning.default_roles)
"""


def test_an_environment_of_ones_own_in_processes_of_which_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "planning.py").write_text(PLANNING)
    monkeypatch.syspath_prepend(tmp_path)
    flags = [
        *("--env", "planning:SPEC", "--steps", "2", "--rollout.problems-per-step", "3"),
        *("--problems.held-out", "6", "--eval.every", "1", "--threads", "1"),
        *("--agents.planner.model", "scripted:oracle", "--agents.planner.no-trained"),
        *("--agents.solver.model", "tiny:bob"),
    ]
    killed: list[str] = []
    play_on = EpisodeWorkers.play_on

    async def kill(self: EpisodeWorkers, actor: Actor, *more: Any) -> Any:
        if len(killed) < 2 and len(more[-1]) > 8:
            begun = asyncio.ensure_future(play_on(self, actor, *more))
            await asyncio.sleep(0.001 * len(killed))
            os.kill(actor.handle.process.pid, signal.SIGKILL)
            killed.append(actor.name)
            return await begun
        return await play_on(self, actor, *more)

    monkeypatch.setattr(EpisodeWorkers, "play_on", kill)

    def files(name: str, *more: str) -> dict[str, bytes]:
        assert train.main([*flags, *more, "--run-dir", str(tmp_path / name)]) == 0
        paths = [*(tmp_path / name).rglob("*.safetensors"), *(tmp_path / name).rglob("eval*.json")]
        paths += [*(tmp_path / name).glob("evaluation/*.json"), tmp_path / name / "episodes.jsonl"]
        return {str(file.relative_to(tmp_path / name)): file.read_bytes() for file in paths}

    assert files("many", *TWO) == files("one")
    assert len(killed) == 2
    capsys.readouterr()

    def refused(*more: str) -> str:
        argv = [*flags, "--env.breaks", *more, "--run-dir", str(tmp_path / "broken")]
        assert train.main(argv) == 2
        return capsys.readouterr().err

    assert "no way on" in refused()
    assert refused(*TWO) == refused()


def test_ctrl_c_ends_the_step_and_all_workers(interrupted: Any, tmp_path: Path) -> None:
    interrupted(tmp_path / "run", *TWO)


def test_one_that_is_killed_while_it_starts_is_started_again(
    play: Play, full: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of its own, and SIGKILL before it has said anything."""
    killed: list[int] = []
    start = Process.start

    def strike(self: Process) -> None:
        start(self)
        if not killed and self.name == "episode worker 1":
            killed.append(self.handle.process.pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(Process, "start", strike)
    assert play(tmp_path / "run", "--cluster.episode-workers", "1", "--cluster.cpus", "0.5") == full
    assert len(killed) == 1

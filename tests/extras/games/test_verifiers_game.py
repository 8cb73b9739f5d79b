"""A taskset of verifiers: its tasks, its rewards, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from coterie import envs
from coterie.datatypes import UserError

pytest.importorskip("verifiers", reason="pip install -e '.[verifiers]'")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

SUMS = """
import verifiers.v1 as vf

class SumData(vf.TaskData):
    answer: int

class SumTask(vf.Task[SumData]):
    @vf.reward(weight=2.0)
    async def right(self, task, trace) -> float:
        return float(trace.last_reply == str(task.answer))
    REWARD

class SumsConfig(vf.TasksetConfig):
    count: int = 8

class Sums(vf.Taskset[SumTask, SumsConfig]):
    def load(self):
        for k in range(self.config.count):
            data = SumData(prompt=f"{k} + 1 =", system_prompt="Add.", answer=k + 1)
            yield SumTask(data, self.config.task)

__all__ = ["Sums"]
"""
SETUP = """
    async def setup(self, trace, runtime) -> None:
        trace.state.target = 3
"""
RUNTIME = """
    @vf.reward
    async def ran(self, task, trace, runtime) -> float:
        return 0.0
"""


@pytest.fixture
def tasksets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sums_of_a_test.py").write_text(SUMS.replace("REWARD", ""))
    (tmp_path / "boxes_of_a_test.py").write_text(SUMS.replace("    REWARD", RUNTIME))
    (tmp_path / "setups_of_a_test.py").write_text(SUMS.replace("    REWARD", SETUP))
    some = SUMS.replace('f"{k} + 1 ="', 'f"{k} + 1 =" if k != 1 else None')
    (tmp_path / "silences_of_a_test.py").write_text(some.replace("REWARD", ""))
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("tasksets")
async def test_a_task_is_put_and_paid_by_the_tasksets_own_rewards() -> None:
    env: Any = envs.make("verifiers:sums_of_a_test", view="text")
    # An event loop runs here already, as it does in training.
    observations, _ = env.reset(seed=9)
    assert observations["solver_0"]["text"] == "Add.\n\n1 + 1 ="  # task 9 mod 8
    _, rewards, _, _, infos = env.step({"solver_0": " 2 "})
    assert rewards == {"solver_0": 2.0}
    assert infos["solver_0"]["reward_terms"] == {"game": 2.0}
    env.reset(seed=9)
    assert env.step({"solver_0": "3"})[1] == {"solver_0": 0.0}
    # Verifiers' own runner keeps a thought out of the reply, too.
    for text, reward in (("<think>3?</think>2", 2.0), ("<think>2</think>3", 0.0)):
        env.reset(seed=9)
        assert env.step({"solver_0": text})[1] == {"solver_0": reward}
    few: Any = envs.make("verifiers:sums_of_a_test?count=3", view="text")
    assert few.reset(seed=9)[0]["solver_0"]["text"] == "Add.\n\n0 + 1 ="  # task 9 mod 3


@pytest.mark.usefixtures("tasksets")
@pytest.mark.parametrize("view", ["token", "text"])
def test_the_contract(view: Any) -> None:
    envs.check_env(envs.make("verifiers:sums_of_a_test", view=view))


@pytest.mark.usefixtures("tasksets")
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("verifiers:boxes_of_a_test", "needs a container, which verifiers' own runner gives"),
        ("verifiers:setups_of_a_test", "needs a container"),
        ("verifiers:silences_of_a_test", "needs a prompt in text"),
        ("verifiers:nowhere_at_all", "cannot be made: ModuleNotFoundError: .*nowhere_at_all"),
        ("verifiers:sums_of_a_test?colour=3", "cannot be made: .*colour"),
    ],
)
def test_what_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        envs.make(name)

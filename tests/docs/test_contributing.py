"""CONTRIBUTING's promises, kept in a copy of the tree: how many files that exist are edited for an
algorithm, a surrogate, a mechanism of the loss, a reward term of CoRe, an extra, an environment.
"""

import functools
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--steps", "1", "--rollout.problems-per-step", "2", "--eval.no-enabled")

NUMBERS = '''
@dataclass(frozen=True)
class PlainScore(Surrogate):
    """``-weight A log pi``."""

    weight: Annotated[float, Gt(0)] = 1.0
    """Multiplies the score."""


'''
FORMULA = '''
from coterie.algorithms.algorithm import PlainScore  # noqa: E402


@surrogate.register
def plain_score(
    choice: PlainScore, logp_BT: Tensor, old_BT: Tensor, advantage: Tensor, mask_BT: Tensor
) -> Terms:
    """-weight A log pi."""
    ratio_BT = token_ratio(logp_BT, old_BT).detach()
    return Terms(-choice.weight * advantage * logp_BT, ratio_BT, torch.zeros_like(mask_BT))
'''
TERM = '''"""A term that pays short traces."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def brevity(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """(B,) 1 / (1 + words)."""
    return np.array([1 / (1 + len(text.split())) for text in texts])
'''

SETTING = '''    pull: Annotated[float, Ge(0)] = 0.0
    """Weight of a pull away from whatever was sampled."""
'''
SPEC = '''"""What is known of ``copying`` before it is built."""

from coterie.envs.copying.environment import CopyingSettings
from coterie.envs.env_spec import EnvSpec

SPEC = EnvSpec(
    name="copying",
    version=0,
    factory="coterie.envs.copying.environment:CopyingEnv",
    settings=CopyingSettings,
    roles=("alice",),
    defaults={"problems": {"train": "chains"}, "rollout": {"replicas": 4}},
)
'''
ENVIRONMENT = '''"""Whoever says the question again is paid."""

from dataclasses import dataclass

from coterie.envs.conversation import ConversationEnv
from coterie.envs.problem_env import metadata_of
from coterie.envs.turns import Outcome


@dataclass(frozen=True)
class CopyingSettings:
    """How much of it."""

    words: int = 2
    """Words that must come again."""
    max_new_tokens: int = 12
    """Longest answer."""


class CopyingEnv(ConversationEnv):
    """One agent, one question."""

    title = "copying"
    metadata = metadata_of("copying_v0", "problem+role", "problem")
    settings_class = CopyingSettings
    default_roles = ("alice",)

    def conversation(self, problem, options, random):
        (agent,) = self.possible_agents
        answers = yield {agent: f"{problem.question}\\n"}
        words = answers.get(agent, "").split()[: self.settings.words]
        again = sum(word in problem.question for word in words)
        return Outcome({agent: {"again": again / self.settings.words}})
'''


GREETING = '''"""Say hello."""


def main(argv):
    print("hello", *argv)
    return 0
'''


class Checkout:
    """This tree with copies of some of its rooms, in which files may be edited."""

    def __init__(self, into: Path, python: Callable[..., Any], *rooms: str) -> None:
        self.path, self._python = into, python
        self._rooms = rooms
        for path in ROOT.iterdir():
            if path.name in (*rooms, "coterie"):
                shutil.copytree(path, into / path.name, symlinks=True)
            elif path.name == "train.py":  # a link would put the folder that it points to first
                shutil.copy(path, into)
            elif not path.name.startswith("."):
                (into / path.name).symlink_to(path)

    def insert(self, file: str, text: str, *, before: str) -> None:
        """Add ``text`` in front of what stands there once."""
        old = (self.path / file).read_text(encoding="utf-8")
        assert old.count(before) == 1, before
        (self.path / file).write_text(old.replace(before, text + before), encoding="utf-8")

    def edited(self) -> set[str]:
        """Files of the original that are different here."""
        names = (
            path.relative_to(ROOT) for room in self._rooms for path in ROOT.glob(f"{room}/**/*.py")
        )
        return {
            str(name)
            for name in names
            if (self.path / name).read_bytes() != (ROOT / name).read_bytes()
        }

    def train(self, *flags: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        """``python train.py`` with the edited rooms."""
        return self._python("train.py", *flags, cwd=self.path, code=code, PYTHONPATH=str(self.path))

    def trained(self, *flags: str) -> Path:
        """The folder of a small run."""
        run = self.path / "-".join(("run", *flags))
        self.train(*SMALL, *flags, "--run-dir", str(run))
        return run


@pytest.fixture
def checkout(tmp_path: Path, python) -> Callable[..., Checkout]:
    return functools.partial(Checkout, tmp_path, python)


@pytest.mark.slow
def test_a_new_mechanism_of_the_loss_edits_two_files(checkout) -> None:
    tree = checkout("algorithms")
    data, loss = "algorithms/algorithm.py", "algorithms/objective.py"
    tree.insert(data, SETTING, before="    distillation: Distillation = field(")
    term = "    loss_BT = loss_BT + algorithm.pull * logp_BT\n"
    tree.insert(loss, term, before="    if gain_BT is not None:\n")
    assert tree.edited() == {data, loss}

    runs = (tree.trained("--preset", "core-gated", "--algo.pull", pull) for pull in ("0", "1"))
    weights = [(run / "final/alice/model.safetensors").read_bytes() for run in runs]
    assert weights[0] != weights[1]


@pytest.mark.slow
def test_an_extra_is_a_folder_and_an_entry(checkout, python) -> None:
    tree = checkout("cli", "extras")
    folder = tree.path / "extras" / "greeting"
    folder.mkdir()
    (folder / "__init__.py").write_text(GREETING, encoding="utf-8")
    entry = '    "greet": Program("coterie.extras.greeting", "say hello"),\n'
    tree.insert("cli/extras.py", entry, before='    "push": Program(')
    assert tree.edited() == {"cli/extras.py"}

    def coterie(*argv: str) -> str:
        return python("-m", "coterie", *argv, cwd=tree.path, PYTHONPATH=str(tree.path)).stdout

    assert "\n  greet      say hello\n" in coterie("--help")
    assert coterie("greet", "you") == "hello you\n"


@pytest.mark.slow
def test_an_environment_is_a_folder_and_its_name(checkout, tmp_path: Path) -> None:
    tree = checkout("envs")
    folder = tmp_path / "envs" / "copying"
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Copying."""\n', encoding="utf-8")
    (folder / "spec.py").write_text(SPEC, encoding="utf-8")
    (folder / "environment.py").write_text(ENVIRONMENT, encoding="utf-8")
    tree.insert("envs/__init__.py", ', "copying"', before="):\n    register(")
    assert tree.edited() == {"envs/__init__.py"}

    assert "copying" in tree.train("--help").stdout
    shown = tree.train("--env", "copying", "--help").stdout
    assert "--env.words" in shown
    assert "Words that must come again." in shown
    run = tree.trained("--env", "copying")
    assert "reward/alice/again" in (run / "metrics.jsonl").read_text()


@pytest.mark.slow
def test_a_protocol_goes_with_its_folder_and_its_name(checkout, tmp_path: Path) -> None:
    """Settings, prompts, presets, tables, evaluation: nothing else of the core asks for them."""
    tree = checkout("envs")
    names = tmp_path / "envs" / "__init__.py"
    text = names.read_text(encoding="utf-8")
    for protocol in ("corea_deferral", "eapo_consultation", "sd_e2"):
        shutil.rmtree(tmp_path / "envs" / protocol)
        assert text.count(f'"{protocol}", ') == 1
        text = text.replace(f'"{protocol}", ', "")
    names.write_text(text, encoding="utf-8")

    shown = tree.train("--help").stdout
    assert "core-gated" in shown
    assert "sd-e2" not in shown
    assert "corea" not in shown
    tree.trained("--preset", "core-gated")


@pytest.mark.slow
def test_a_new_surrogate_edits_two_files(checkout, tmp_path: Path) -> None:
    tree = checkout("algorithms")
    data, functions = "algorithms/algorithm.py", tmp_path / "algorithms" / "surrogates.py"
    tree.insert(
        data, NUMBERS.lstrip("\n"), before="@dataclass(frozen=True)\nclass Algorithm(Validated):"
    )
    entry = '    "plain-score": Algorithm(surrogate=PlainScore(weight=0.5)),\n'
    tree.insert(data, entry, before="}\n\n\nPLUGINS")
    functions.write_text(functions.read_text(encoding="utf-8") + FORMULA, encoding="utf-8")
    assert tree.edited() == {data, "algorithms/surrogates.py"}

    algo = ("--algo", "plain-score")
    shown = tree.train("--env", "core-teaching", *algo, "--help").stdout
    assert "--algo.surrogate.weight" in shown
    assert "``-weight A log pi``" in shown
    refused = tree.train(*algo, "--algo.surrogate.weight", "0", code=2)
    assert "--algo.surrogate.weight is 0.0; it must be above 0" in refused.stderr
    config = json.loads((tree.trained(*algo) / "config.json").read_text())
    assert config["algo"]["surrogate"] == {"weight": 0.5}


@pytest.mark.slow
def test_a_new_reward_term_edits_two_files(checkout, tmp_path: Path) -> None:
    tree = checkout("envs", "rewards")
    settings, scoring = "envs/core_teaching/settings.py", "envs/core_teaching/scoring.py"
    (tmp_path / "rewards" / "brevity.py").write_text(TERM, encoding="utf-8")
    field = '    w_brevity: float = 0.0\n    """Weight of brevity."""\n'
    tree.insert(settings, field, before="    lambda_b: ")
    tree.insert(settings, "    brevity: float\n", before="    teacher_lift: float\n\n")
    tree.insert(settings, "        brevity=settings.w_brevity,\n", before="        teacher_lift=s")
    tree.insert(
        scoring,
        "from coterie.rewards.brevity import brevity\n",
        before="from coterie.rewards.exploration ",
    )
    paid = '            "brevity": weights.brevity * brevity([trace.text for trace in traces]),\n'
    tree.insert(scoring, paid, before='            "teacher_lift": weights')
    assert tree.edited() == {settings, scoring}

    run = tree.trained("--env.w-brevity", "0.5")
    lines = (run / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for line in lines for row in json.loads(line)["trajectories"]]
    for row in rows:
        words = len("".join(row["texts"][1:]).split())
        assert row["reward_terms"]["brevity"] == pytest.approx(0.5 / (1 + words))
        assert row["reward"] == pytest.approx(sum(row["reward_terms"].values()))
    assert "reward/alice/brevity" in (run / "metrics.jsonl").read_text()

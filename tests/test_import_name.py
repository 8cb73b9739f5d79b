"""One import name: ``coterie``, from anywhere, whatever else is called ``models`` or ``agents``."""

import shutil
from pathlib import Path

import pytest

import coterie

ROOT = Path(__file__).resolve().parents[1]
ROOMS = sorted(p.name for p in (ROOT / "coterie").iterdir() if p.is_symlink() and p.is_dir())
SMALL = ("--steps", "2", "--rollout.problems-per-step", "2", "--eval.no-enabled")
MINE = """
from dataclasses import dataclass
from coterie.envs import ConversationEnv, Outcome

@dataclass(frozen=True)
class EchoSettings:
    max_new_tokens: int = 8

class Echo(ConversationEnv):
    title = "echo"
    settings_class = EchoSettings
    default_roles = ("alice",)
    def conversation(self, problem, options, random):
        answers = yield {"alice_0": problem.question}
        right = float(self.scorer.check(answers.get("alice_0", ""), problem).correct)
        return Outcome({"alice_0": {"correct": right}})
"""
TWICE = f"""
import sys, os, collections, coterie
from coterie.train import main
main([*{SMALL!r}, '--run-dir', 'run'])
root = os.path.dirname(os.path.dirname(os.path.realpath(coterie.__file__)))
seen = collections.Counter(
    os.path.realpath(f) for m in [*sys.modules.values()] if (f := getattr(m, '__file__', None))
)
print([f for f, n in seen.items() if n > 1 and f.startswith(root)])
"""
SPAWN = """
import multiprocessing
from coterie.agents.vllm.processes import end_with_parent

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=end_with_parent)
    process.start()
    process.join()
    print(process.exitcode)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A user's folder, with modules of their own under the names of ours, and an environment."""
    for name in (*ROOMS, "train"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('mine')\n")
    (tmp_path / "echo_of_mine.py").write_text(MINE)
    return tmp_path


def test_every_package_is_found_under_its_name() -> None:
    assert len(ROOMS) > 10
    for name in ROOMS:
        assert getattr(coterie, name).__name__ == f"coterie.{name}"
    assert {*ROOMS, "make", "register", "check_env", "EnvSpec"} <= {*dir(coterie)}
    assert coterie.make("sd-e2").possible_agents
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = coterie.nothing


@pytest.mark.slow
def test_no_module_is_in_memory_twice(tmp_path: Path, python) -> None:
    """Not even where the repository's root, whose folders have the bare names, is on the path."""
    done = python("-c", TWICE, cwd=tmp_path, PYTHONPATH=str(ROOT))
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_copy_that_is_not_installed(elsewhere: Path, python) -> None:
    """And, like a checkout on Windows, without links."""
    copy = elsewhere / "copy"
    for path in ROOT.iterdir():
        if path.name in ROOMS or path.name in ("train.py", "benchmark.py"):
            copy.mkdir(exist_ok=True)
            (copy / path.name).symlink_to(path)
    (copy / "coterie").mkdir()
    for name in ("__init__.py", "__main__.py"):
        (copy / "coterie" / name).write_bytes((ROOT / "coterie" / name).read_bytes())
    for name in (*ROOMS, "train.py"):
        if "." not in name:
            (copy / "coterie" / name).write_text(f"../{name}")
    code = "import coterie.envs, coterie.agents.models.spec; print(coterie.envs.__file__)"
    assert python("-c", code, cwd=copy).stdout == f"{copy / 'envs' / '__init__.py'}\n"
    assert python("-m", "coterie", "check", "sd-e2", cwd=copy).stderr == ""


@pytest.mark.slow
def test_a_wheel_in_a_folder_with_modules_of_the_same_names(elsewhere: Path, python) -> None:
    """Built, unpacked, and used by its console script; an entry point of a package is found."""
    built, site = elsewhere / "built", elsewhere / "site"
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check")
    leave = shutil.ignore_patterns(".*", "__pycache__", "build", "runs", "site", "*.egg-info")
    tree = shutil.copytree(ROOT, elsewhere / "tree", symlinks=True, ignore=leave)
    python(*pip, "wheel", "--no-deps", "--wheel-dir", built, tree, cwd=elsewhere)
    wheel = next(built.glob("*.whl"))
    python(*pip, "install", "--no-deps", "--target", site, wheel, cwd=elsewhere)
    named = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert named == {"coterie", "bin"}
    info = site / "echo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[coterie.environments]\necho = echo_of_mine:Echo\n")

    def run(*command: object) -> str:
        return python(*command, cwd=elsewhere, PYTHONPATH=str(site)).stdout

    console = site / "bin" / "coterie"
    assert ("\n  serve " in run(console, "--help")) == (ROOT / "extras").is_dir()  # of an extra
    shown = run("-c", "import coterie; print(coterie.__file__)")
    assert shown == f"{site / 'coterie' / '__init__.py'}\n"
    assert run("-c", TWICE).splitlines()[-1] == "[]"
    for env in ("echo", "echo_of_mine:Echo"):
        run(console, "check", env)
    run(console, "report", "run")
    assert (elsewhere / "run" / "report.html").is_file()

    # What engines are spawned with.
    (elsewhere / "engine.py").write_text(SPAWN)
    assert run("engine.py") == "0\n"

"""As many threads as other programs leave free."""

import os

import pytest

from coterie.agents.models.threads import ProcessorLoad, free_threads

START = ProcessorLoad(clock=10.0, idle=100.0, own=5.0)


@pytest.mark.parametrize(
    ("idle", "own", "processors", "quota", "threads"),
    [
        (4.0, 0.0, 2, float("inf"), 2),  # 2 s of two processors: all of it idle
        (2.1, 1.9, 2, float("inf"), 2),  # one idle, one ours
        (0.2, 1.9, 2, float("inf"), 1),  # one ours, the other somebody else's
        (0.0, 0.4, 2, float("inf"), 1),  # three others and we on two
        (11.0, 0.0, 8, float("inf"), 6),  # 5.5 of eight, to the even neighbour
        (16.0, 0.0, 8, 2.5, 2),  # a container is granted two and a half
        (float("nan"), 1.0, 2, float("inf"), 2),  # nobody tells
    ],
)
def test_what_was_idle_or_ours_is_free(idle, own, processors, quota, threads) -> None:
    now = ProcessorLoad(clock=12.0, idle=100.0 + idle, own=5.0 + own)
    assert free_threads(START, now, processors, quota) == threads


def test_time_that_has_not_passed_says_nothing() -> None:
    assert free_threads(START, START, 3, float("inf")) == 3


@pytest.fixture
def said(python, monkeypatch: pytest.MonkeyPatch):
    """What code prints at last in a process where nobody has named a number of threads but here."""
    for name in os.environ:
        if name.startswith(("OMP_", "GOMP_")):
            monkeypatch.delenv(name)

    def run(code: str, **environment: str) -> str:
        return python("-c", code, **environment).stdout.splitlines()[-1]

    return run


_CHOOSE = (
    "import torch; from coterie.agents.models import threads; torch.set_num_threads(2); {}"
    "threads.free_threads = lambda *_: 1; now = threads.ProcessorLoad.now(); "
    "print(threads.use_free_threads(now))"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "variables", "threads"),
    [
        ("", {}, "1"),
        ("threads.fix_threads(0); ", {}, "1"),
        ("threads.fix_threads(2); ", {}, "2"),
        ("", {"OMP_NUM_THREADS": "2"}, "2"),
    ],
)
def test_a_number_that_was_named_stays(said, before: str, variables, threads: str) -> None:
    assert said(_CHOOSE.format(before), **variables) == threads


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "named", "expected"),
    [
        ("train", {}, "passive 4000"),
        ("benchmark", {}, "passive 4000"),
        ("__main__", {}, "passive 4000"),
        ("train", {"OMP_WAIT_POLICY": "active"}, "active None"),
        ("train", {"GOMP_SPINCOUNT": "7"}, "passive 7"),
    ],
)
def test_threads_wait_briefly_from_before_torch_is_imported(
    said, program: str, named: dict[str, str], expected: str
) -> None:
    code = (
        "import os, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n"
        "            print(os.environ.get('OMP_WAIT_POLICY'), os.environ.get('GOMP_SPINCOUNT'))\n"
        "            sys.stdout.flush(); os._exit(0)\n"
        "sys.meta_path.insert(0, Watch())\n"
        f"import coterie.{program} as program\n"
        f"program.main({['train'] * (program == '__main__')} + {_ARGUMENTS[program]})"
    )
    assert said(code, **named) == expected


_ARGUMENTS = {
    "train": ["--eval.no-enabled"],
    "benchmark": ["--policies", "a=tiny:alice"],
    "__main__": ["--eval.no-enabled"],
}

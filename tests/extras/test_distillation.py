"""Environments of extras have no traces of peers to distil from."""

import pytest

from coterie.train import main


@pytest.mark.parametrize(
    "name",
    [
        "coterie.extras.programs.tool_use:SPEC",
        "coterie.extras.papers.leap:LeapEnv",
        "gymnasium:FrozenLake-v1",
    ],
)
def test_distillation_without_peers_is_refused(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    model = ("--agents.solver.model", "tiny:alice") if name.endswith("SPEC") else ()
    assert main(["--env", name, "--algo.distillation.beta", "1", *model, "--steps", "1"]) == 2
    sentence = f"{name} has no trace read again, so nothing is distilled: leave out --algo.dist"
    assert sentence in " ".join(capfd.readouterr().err.split())

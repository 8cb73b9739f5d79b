"""Real Ray: three nodes on this machine, whole runs, and what happens when something is killed."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from coterie.datatypes import UserError
from coterie.training.session import Session

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    # Of Ray's own.
    pytest.mark.filterwarnings("ignore"),
]
Play = Callable[..., dict[str, bytes]]
ROOT = Path(__file__).resolve().parents[2]
APART = (
    "--cluster.cpus", "0.25",
    "--agents.alice.engine-replicas", "1", "--agents.bob.engine-replicas", "1",
)  # fmt: skip


class Nodes:
    """A head and three nodes; what is removed is added again for the next test."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        # Nothing is placed on the head, which cannot be removed.
        self.ray = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False}
        )
        self.more: list[Any] = []
        self.fill()
        self.flags = ("--cluster.address", self.ray.address)

    def remove(self, node: str) -> None:
        """The node whose number begins so."""
        gone = next(one for one in self.more if one.node_id.startswith(node))
        self.more.remove(gone)
        self.ray.remove_node(gone, allow_graceful=False)

    def fill(self) -> None:
        """Three nodes again."""
        while len(self.more) < 3:
            # Ray gives a node 30 s to start, which a busy machine may not do.
            with suppress(Exception):
                self.more.append(self.ray.add_node(num_cpus=1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    nodes = Nodes()
    yield nodes
    nodes.ray.shutdown()


@pytest.fixture
def nodes(cluster: Nodes) -> Nodes:
    cluster.fill()
    return cluster


def test_a_run_on_three_nodes_is_the_run_in_this_process(
    nodes: Nodes, play: Play, full: dict[str, bytes], tmp_path: Path
) -> None:
    assert play(tmp_path / "run", *nodes.flags, *APART) == full
    places = json.loads((tmp_path / "run" / "summary.json").read_text())["places"]
    assert len(places) == 4
    assert len({row["node"] for row in places}) == 3


@pytest.mark.parametrize("what", ["engine", "node"])
def test_what_is_killed_while_it_answers_is_replaced_and_nothing_changes(
    nodes: Nodes, play: Play, full: dict[str, bytes], tmp_path: Path, what: str
) -> None:
    killed: list[str] = []

    def kill(session: Session, step: int) -> None:
        pool: Any = session.team.fleet
        actors = [one for one in pool._actors if not one.learns]
        answer = actors[1].begin

        def begin(verb: str, *arguments: Any) -> Any:
            begun = answer(verb, *arguments)
            if verb == "sample" and step == 2 and not killed:
                killed.append(actors[1].name)
                if what == "engine":
                    import ray

                    ray.kill(actors[1].handle)
                else:
                    nodes.remove(actors[1].row["node"])
            return begun

        if step == 2:
            actors[1].begin = begin

    if what == "engine":
        assert play(tmp_path / "run", *nodes.flags, *APART, before=kill) == full
    else:
        # A node takes its learner with it, if it has one: a sentence, and the run goes on later.
        try:
            assert play(tmp_path / "run", *nodes.flags, *APART, before=kill) == full
        except UserError as error:
            assert "learner of" in str(error)  # noqa: PT017
            assert "--resume" in str(error)  # noqa: PT017
            nodes.fill()
            assert play(tmp_path / "run", *nodes.flags) == full
    assert killed


def test_a_learner_that_is_killed_ends_the_run_and_resume_goes_on(
    nodes: Nodes, play: Play, full: dict[str, bytes], tmp_path: Path
) -> None:
    def kill(session: Session, step: int) -> None:
        import ray

        if step == 2:
            pool: Any = session.team.fleet
            ray.kill(pool._actors[0].handle)

    with pytest.raises(UserError, match="learner of alice has died, or its node has; --resume"):
        play(tmp_path / "run", *nodes.flags, "--cluster.cpus", "0.5", before=kill)
    assert play(tmp_path / "run", *nodes.flags) == full


def test_what_a_cluster_cannot_hold_and_errors_in_an_actor_are_one_sentence(
    nodes: Nodes, play: Play, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"cannot hold this run: 2 processes .* need 16 cores"):
        play(tmp_path / "a", *nodes.flags, "--cluster.cpus", "8")
    with pytest.raises(UserError, match="need 2 cores and 1 GPUs"):
        play(tmp_path / "b", *nodes.flags, "--agents.bob.device", "cuda")
    assert not list(tmp_path.iterdir())

    def fail(session: Session, step: int) -> None:
        pool: Any = session.team.fleet
        pool._actors[1].ask("weights", "nobody")

    with pytest.raises(UserError, match="learner of bob failed: KeyError"):
        play(tmp_path / "c", *nodes.flags, "--cluster.cpus", "0.5", before=fail)


def test_nobody_at_the_address_is_one_sentence(play: Play, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no cluster can be joined"):
        play(tmp_path / "run", "--cluster.address", "127.0.0.1:9")


def test_ctrl_c_ends_the_step_and_everything_that_was_started(
    interrupted: Any, tmp_path: Path
) -> None:
    interrupted(tmp_path / "run", "--cluster.address", "local", "--cluster.cpus", "0.25")

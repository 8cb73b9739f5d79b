"""Who lives together, who is asked, and that it is the same run: on workers in this process."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file

from coterie.agents.models.locate import TINY
from coterie.cli.arguments import overlay
from coterie.cli.command_line import parse
from coterie.datatypes import Prompt, Sampling, UserError
from coterie.extras.cluster.pool import Pool
from coterie.extras.cluster.remote_roles import RemotePolicy, RemoteRole
from coterie.extras.cluster.worker import Worker
from coterie.training.config.preflight import preflight
from coterie.training.session import Session, open_session

Play = Callable[..., dict[str, bytes]]
CLUSTER = ("--cluster.address", "local")
LORA = (
    "--agents.alice.tuning", "lora", "--agents.bob.model", "tiny:alice",
    "--agents.bob.tuning", "lora", "--learner.lr", "0.002",
    # What rows were told besides is in the episodes.
    "--algo.distillation.beta", "0.5", "--env.reread", "wrong",
)  # fmt: skip
IMITATION = (
    "--warmup.steps", "3", "--warmup.problems-per-step", "2", "--warmup.lr", "0.01",
    "--algo.kl-coefficient", "0.1", "--eval.no-enabled", "--threads", "1",
)  # fmt: skip


def test_what_is_compared_has_learned(full: dict[str, bytes]) -> None:
    for role in ("alice", "bob"):
        now, then = (
            load(full[f"final/{role}/model.safetensors"]),
            load_file(TINY / role / "model.safetensors"),
        )
        assert max(float((now[name] - then[name]).abs().max()) for name in then) > 1e-4


@pytest.mark.parametrize("flags", [(), LORA], ids=["full", "one base"])
def test_engines_apart_from_their_learner_answer_as_this_process_does(
    fake_cluster: Any, play: Play, tmp_path: Path, full: dict[str, bytes], flags: tuple[str, ...]
) -> None:
    here = play(tmp_path / "here", *flags) if flags else full
    assert len(here) == 7  # episodes; of each role weights, twice, and moments
    apart = ("--agents.alice.engine-replicas", "1", "--agents.bob.engine-replicas", "1")
    assert play(tmp_path / "there", *flags, *CLUSTER, *apart) == here
    names = [actor.name for actor in fake_cluster.made]
    places = json.loads((tmp_path / "there" / "summary.json").read_text())["places"]
    assert [row["process"] for row in places] == names
    bases = ["alice and bob"] if flags else ["alice", "bob"]
    assert names == [f"{part} of {base}" for base in bases for part in ("learner", "engine 1")]


def test_samplers_of_other_processes_forget_what_learning_makes_stale(
    fake_cluster: Any, play: Play, tmp_path: Path
) -> None:
    copies: list[list[bool]] = []

    def look(session: Session, step: int) -> None:
        for actor in (fake_cluster.made[0], fake_cluster.made[2]):
            (policy,) = actor.handle.models.policies.values()
            kept = policy.sampler._kept._kept
            copies.append([policy.sampler._weights is not None, len(kept) > 0])
            kept[b"an answer"] = range(9)

    play(tmp_path / "run", *CLUSTER, "--agents.bob.engine-replicas", "1", before=look)
    # Before either step: alice's learner, which samples too, and bob's engine. Apart from learners,
    # which need the memory, the copy stays.
    assert copies == [[False, False]] * 3 + [[True, False]]


async def test_a_sampler_elsewhere_is_told_which_answers_may_go_on() -> None:
    asked: list[Any] = []

    async def ask(call: Any) -> Any:
        asked.append(call)

    about: Any = SimpleNamespace(context=64, vocab_size=99)
    policy = RemotePolicy("alice", about, ask)
    for continues in (False, True):
        prompt = Prompt(np.array([5, 6], np.int64), "", "alice_0", 3, continues=continues)
        await policy(prompt, Sampling(4))
    assert [request.continues for _, _, request in asked] == [False, True]


@pytest.mark.parametrize("checkpoints", ["shared", "driver"])
def test_a_run_goes_on_without_its_cluster_and_the_reverse(
    fake_cluster: Any,
    play: Play,
    tmp_path: Path,
    full: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    checkpoints: str,
) -> None:
    asked: list[Path | None] = []
    write = Worker.write

    def watched(self: Worker, role: str, verb: str, there: Path | None) -> Any:
        asked.append(there)
        return write(self, role, verb, there)

    monkeypatch.setattr(Worker, "write", watched)
    cluster = (*CLUSTER, "--cluster.checkpoints", checkpoints)
    play(tmp_path / "first", "--steps", "1", *cluster, "--agents.bob.engine-replicas", "1")
    assert play(tmp_path / "first", "--cluster.address", "none") == full
    play(tmp_path / "second", "--steps", "1")
    assert play(tmp_path / "second", *cluster) == full
    assert len(asked) == 8  # of two runs and two roles, a checkpoint and the final model
    assert {path is None for path in asked} == {checkpoints == "driver"}


def test_checkpoints_with_folders_pass_between_processes(tmp_path: Path) -> None:
    """As of tokenizers with several chat templates."""
    template = "additional_chat_templates/tool_use.jinja"
    loaded: list[str] = []

    class Trained:
        loaded = SimpleNamespace(handle=SimpleNamespace(stamp=(1, 0)))

        def save(self, folder: Path) -> dict[str, int]:
            (folder / template).parent.mkdir()
            (folder / template).write_text("{{ tools }}")
            return {"step": 3}

        def load(self, folder: Path, plain: dict[str, int]) -> None:
            loaded.append((folder / template).read_text())

    worker: Any = Worker.__new__(Worker)
    worker.models = SimpleNamespace(trained={"bob": Trained()})
    about: Any = SimpleNamespace(context=64, stamp=(0, 0))
    role = RemoteRole("bob", lambda verb, *more: getattr(worker, verb)(*more), about, shared=False)
    plain = role.save(tmp_path / "bob")
    assert (tmp_path / "bob" / template).read_text() == "{{ tools }}"
    role.load(tmp_path / "bob", plain)
    assert (plain, loaded, role.stamp) == ({"step": 3}, ["{{ tools }}"], (1, 0))


@pytest.mark.parametrize("dead", ["engine 1", "learner", "learner engine 1"])
def test_who_dies_before_weights_are_sent_is_started_again_and_asked_again(
    fake_cluster: Any, play: Play, tmp_path: Path, full: dict[str, bytes], dead: str
) -> None:
    dying = [f"{part} of bob" for part in ("engine 1", "learner") if part in dead]

    def kill(session: Session, step: int) -> None:
        for actor in fake_cluster.made if step == 2 else ():
            if actor.name in dying:
                actor.stop()

    there = play(tmp_path / "there", *CLUSTER, "--agents.bob.engine-replicas", "1", before=kill)
    assert there == full
    names = [actor.name for actor in fake_cluster.made]
    assert sorted(names) == sorted([*set(names), *dying])  # nobody else is


@pytest.mark.slow
@pytest.mark.parametrize(
    ("saved", "flags"), [("1", LORA), ("3", LORA[-4:])], ids=["checkpoint", "updates again"]
)
def test_a_learner_that_dies_learns_again_what_it_had_learned(
    fake_cluster: Any, play: Play, tmp_path: Path, saved: str, flags: tuple[str, ...]
) -> None:
    # Long enough that some answers are right, and there is something to learn.
    flags = (*flags, "--env.max-new-tokens", "64", "--rollout.problems-per-step", "4")
    more = (*flags, "--steps", "3", "--checkpoint-every", saved)
    here = play(tmp_path / "here", *more)
    moved = play(tmp_path / "less", *flags, "--steps", "1")
    assert all(moved[name] != here[name] for name in moved if name.startswith("final"))

    def kill(session: Session, step: int) -> None:
        if step == 3:
            session.update = partial(die_first, session.update)  # type: ignore[method-assign]

    def die_first(update: Any, *given: Any) -> dict[str, float]:
        [actor for actor in fake_cluster.made if "learner" in actor.name][-1].stop()
        return update(*given)

    assert play(tmp_path / "there", *more, *CLUSTER, before=kill) == here
    names = [actor.name for actor in fake_cluster.made]
    assert names.count(names[-1]) == 2


@pytest.mark.parametrize("saved", ["1", "3"], ids=["checkpoint", "steps again"])
@pytest.mark.parametrize("asked", ["imitate", "begin"])
def test_a_learner_that_dies_imitates_again_what_it_had_imitated(
    fake_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saved: str, asked: str
) -> None:
    """Two roles learn in one process, which dies when the last of them is asked."""
    flags = (*LORA[:6], *IMITATION, "--checkpoint-every", saved)

    def warmed(name: str, *more: str) -> dict[str, bytes]:
        settings = parse(overlay([*flags, *more, "--run-dir", str(tmp_path / name)]))
        with open_session(settings, preflight(settings)) as session:
            session.warm_up(lambda: None)
        folder = tmp_path / name / "checkpoints" / "warmup-000003"
        return {f"{p.parent.name}/{p.name}": p.read_bytes() for p in folder.glob("*/*.safetensors")}

    here = warmed("here")
    really, calls = getattr(RemoteRole, asked), []

    def dies(self: Any, *rows: Any) -> Any:
        calls.append(self._role)
        if calls.count("bob") == (3 if asked == "imitate" else 1) and calls[-1] == "bob":
            fake_cluster.made[-1].stop()
        return really(self, *rows)

    monkeypatch.setattr(RemoteRole, asked, dies)
    assert warmed("there", *CLUSTER) == here
    assert [actor.name for actor in fake_cluster.made] == ["learner of alice and bob"] * 2


def test_a_process_that_dies_too_often_ends_the_run_with_its_name(
    fake_cluster: Any, play: Play, tmp_path: Path
) -> None:
    def kill(session: Session, step: int) -> None:
        fake_cluster.made[1].stop()

    way_out = f"learner of bob has died.*; --resume {tmp_path / 'run'} starts it again"
    with pytest.raises(UserError, match=way_out):
        play(tmp_path / "run", *CLUSTER, "--cluster.restarts", "0", before=kill)


@pytest.mark.parametrize("asked", ["code", "load", "where"])
def test_a_process_that_dies_while_it_starts_leaves_no_run(
    fake_cluster: Any, play: Play, tmp_path: Path, asked: str
) -> None:
    fake_cluster.dying = {"learner of bob": asked}
    with pytest.raises(UserError) as ended:
        play(tmp_path / "run", *CLUSTER)
    assert str(ended.value) == (
        "learner of bob has died, while the run started; nothing is lost: give the same "
        "command again"
    )
    assert not (tmp_path / "run").exists()
    assert fake_cluster.made[0].handle is None  # nobody is left behind


def test_weights_reach_all_replicas_or_none(
    fake_cluster: Any, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicas = ("--agents.bob.engine-replicas", "2")
    undisturbed = play(tmp_path / "undisturbed", *CLUSTER, *replicas)
    taken: list[tuple[str, int]] = []
    take = Worker.take

    def refuse(self: Worker, role: str, weights: Any) -> None:
        taken.append((f"{self}"[7], weights[1]))
        if taken.count(("2", 1)) == 1 and taken[-1] == ("2", 1):
            raise UserError("the engine refuses")
        take(self, role, weights)

    monkeypatch.setattr(Worker, "take", refuse)
    assert play(tmp_path / "there", *CLUSTER, *replicas) == undisturbed
    # Replica 2 refuses version 1: 1 goes back, 2 is another process, and both take it.
    assert taken == [("1", 1), ("2", 1), ("1", 0), ("2", 0), ("1", 1), ("2", 1)]


def test_a_replica_that_refuses_twice_ends_the_run(
    fake_cluster: Any, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Worker.take

    def refuse(self: Worker, role: str, weights: Any) -> None:
        if weights[1] == 1 and "engine 2" in f"{self}":
            raise UserError("the engine of 2 refuses")
        take(self, role, weights)

    monkeypatch.setattr(Worker, "take", refuse)
    versions: list[int] = []
    with pytest.raises(UserError, match="the engine of 2 refuses"):
        play(tmp_path / "run", *CLUSTER, "--agents.bob.engine-replicas", "2",
             before=lambda session, step: versions.append(step))  # fmt: skip
    assert versions == [1, 2]


def test_other_code_on_a_node_is_refused_and_everything_ends(
    fake_cluster: Any, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coterie.extras.cluster.starting.code_mark", lambda: "another")
    with pytest.raises(UserError, match="learner of alice runs other code"):
        play(tmp_path / "run", *CLUSTER)
    assert all(actor.handle is None for actor in fake_cluster.made)
    assert not (tmp_path / "run").exists()


def test_a_node_that_does_not_see_the_run_is_refused_before_models_are_loaded(
    fake_cluster: Any, play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Worker, "seen", lambda self, path: b"")
    monkeypatch.setattr(Worker, "load", lambda self: pytest.fail("a model was loaded"))
    with pytest.raises(UserError, match=r"learner of alice does not see .*--run-dir on a disk"):
        play(tmp_path / "run", *CLUSTER)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_gone_for_a_learner_is_not_made_anew(
    fake_cluster: Any, play: Play, tmp_path: Path
) -> None:
    def check(session: Session, step: int) -> None:
        with pytest.raises(FileNotFoundError):
            fake_cluster.made[0].handle.write("alice", "save", tmp_path / "elsewhere")

    play(tmp_path / "run", *CLUSTER, before=check)


def test_no_request_is_answered_with_other_weights_than_were_asked_for(
    fake_cluster: Any, play: Play, tmp_path: Path
) -> None:
    def age(session: Session, step: int) -> None:
        if step == 2:
            session.run_async(session.team.backend.refresh())
            actor = next(a for a in fake_cluster.made if a.name == "engine 1 of bob")
            actor.handle.models.loaded["bob"].handle.version = 0

    with pytest.raises(RuntimeError, match="bob has version 0 here, but version 1 was requested"):
        play(tmp_path / "run", *CLUSTER, "--agents.bob.engine-replicas", "1", before=age)


def test_roles_of_different_places_learn_at_the_same_time(fake_cluster: Any) -> None:
    import threading

    from coterie.agents.team import AgentSettings, build_team
    from coterie.agents.team.backend import LearningSetup
    from coterie.algorithms import LearnerSettings, get
    from coterie.extras.cluster.settings import ClusterSettings

    agents = {"alice": AgentSettings("tiny:alice"), "bob": AgentSettings("tiny:bob")}
    learning = LearningSetup(get("gspo"), LearnerSettings(), temperature=1.0, total_steps=2)
    team = build_team(agents, learning=learning, backend=Pool(ClusterSettings("local")))
    both = threading.Barrier(2, timeout=20)
    assert list(team.backend.learn(lambda role, number: both.wait() + 1)) == ["alice", "bob"]
    assert torch.get_num_threads() == 1


def test_a_teacher_in_another_process_reads_the_same(
    fake_cluster: Any, play: Play, tmp_path: Path
) -> None:
    solo = ("--env", "solo", "--agents.solver.model", "tiny:alice", "--problems.train", "chains")
    play(tmp_path / "teacher", *solo, "--learner.lr", "0.01")
    flags = (*solo, "--algo.distillation.beta", "1", "--algo.distillation.no-rewards")
    flags += ("--algo.distillation.teacher", str(tmp_path / "teacher" / "final" / "solver"))
    here = play(tmp_path / "here", *flags)
    assert play(tmp_path / "there", *flags, *CLUSTER) == here


def test_roles_that_learn_differently_do_so_in_other_processes(
    fake_cluster: Any, play: Play, tmp_path: Path, full: dict[str, bytes]
) -> None:
    differs = ("--agents.bob.learner.lr", "1e-4", "--agents.alice.algo", "rloo")
    here = play(tmp_path / "here", *differs)
    assert here != full
    assert play(tmp_path / "there", *differs, *CLUSTER) == here

"""Talking to a role of a run: whose weights answer, what they read, what is shown."""

import io
import json
import os
import pty
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.__main__ import main
from coterie.agents.models.locate import TINY
from coterie.agents.sampling import Sampler
from coterie.agents.team.model_specs import model_spec
from coterie.cli.command_line import parse, read_run
from coterie.datatypes import PolicyFailure, Problem
from coterie.extras.ops.chat_role import ChatRole, kind_of_run, model_of
from coterie.training.prompt_limit import opening_prompts

ROOT = Path(__file__).parents[3]
ASKED = "4 + 5 - 6 ="


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def write_run(folder: Path, *flags: str, **final: Path) -> Path:
    """A run as training would leave it, with the shipped models as what it has trained."""
    settings = parse(["--rollout.temperature", "0.5", "--seed", "3", *flags])
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings.plain()))
    for role, model in (final or {"alice": TINY / "alice", "bob": TINY / "bob"}).items():
        shutil.copytree(model, folder / "final" / role)
    return folder


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def command(*argv: Any, typed: str = f"{ASKED}\n", code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        assert main(["chat", *map(str, argv)]) == code
        shown = capsys.readouterr()
        return shown.out, shown.err

    return command


def opened(run: Path, role: str, load_role: Any, **overrides: Any) -> ChatRole:
    """The partner of ``coterie chat``."""
    settings = read_run(run)
    agent = model_of(run, settings.agents[role], role, None)
    loaded = load_role(model_spec(agent).model, trained=False)
    return ChatRole(
        role, settings, loaded, kind=kind_of_run(run), seed=3, overrides=overrides
    )  # fmt: skip


def spied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every request from now on, with its completion."""
    seen: list[Any] = []
    really = Sampler.sample

    def sample(self: Sampler, requests: Any, tell: Any = None) -> Any:
        completions = really(self, requests, tell)
        seen.extend(zip(requests, completions))
        return completions

    monkeypatch.setattr(Sampler, "sample", sample)
    return seen


def test_only_answers_are_printed_without_a_terminal(
    run: Path, chat: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spied(monkeypatch)
    out, err = chat(run, "--role", "alice", typed=f"{ASKED}\n\n{ASKED}\n")
    assert len(out.splitlines()) == len(asked) == 2
    assert err == ""
    request, _ = asked[0]
    assert (request.sampling.temperature, request.sampling.max_new_tokens) == (0.5, 48)
    # A question again is another draw; the command again is the same answer.
    assert asked[0][0].seed != asked[1][0].seed
    assert request.tokens.tolist() == asked[1][0].tokens.tolist()
    assert chat(run, "--role", "alice")[0] == out.splitlines(keepends=True)[0]
    other = chat(run, "--role", "alice", "--seed", 4, "--temperature", 0, "--max-new-tokens", 2)
    request, completion = asked[-1]
    assert (request.sampling.temperature, len(completion.tokens)) == (0, 2)
    assert "cut off after 2 tokens" in other[1]


def test_a_role_reads_what_it_was_trained_on(run: Path, load_role: Any) -> None:
    alice = opened(run, "alice", load_role)
    prompt = alice.prompt(ASKED)
    assert prompt is not None
    assert prompt[0] == f"Question: {ASKED}\nLet's solve this step by step:"
    settings = read_run(run)
    codec = alice._codec
    env = settings.make_env(codecs={"alice": codec})
    trained = opening_prompts(env, Problem("p", ASKED, "3", "number"))["alice"]
    assert codec.open(prompt[0]) == trained.tolist()
    env.close()


def test_the_kind_of_answer_is_the_run_s(run: Path, load_role: Any, tmp_path: Path) -> None:
    assert kind_of_run(run) == "math"
    (run / "episodes.jsonl").write_text('{"kind": "number"}\n{"kind": "choice"}\n')
    assert kind_of_run(run) == "number"
    (run / "episodes.jsonl").write_text('{"kind": ["number"]}\n')
    assert kind_of_run(run) == "math"
    answers = write_run(tmp_path / "answers", "--env.prompt-style", "answer")
    (answers / "episodes.jsonl").write_text('{"kind": "number"}\n')
    prompt = opened(answers, "alice", load_role).prompt(ASKED)
    assert prompt is not None
    assert prompt[0].endswith('the line "Answer: " followed by the number.')


def test_a_question_alone_where_no_episode_begins_with_it(
    run: Path, load_role: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = opened(run, "alice", load_role)
    monkeypatch.setattr(alice, "_env", None)
    asked = spied(monkeypatch)
    notes = alice.answer(ASKED, lambda piece: None)
    assert notes[0] == "no episode begins by asking alice: it reads your text alone"
    assert asked[0][0].tokens.tolist() == alice._codec.open(ASKED)
    assert asked[0][0].sampling.max_new_tokens == 48


def test_a_template_makes_a_conversation(
    tmp_path: Path, checkpoint: Any, load_role: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(
        tmp_path / "talk", "--env", "solo", "--env.prompt", "{question}", solver=checkpoint("qwen3")
    )
    solver = opened(run, "solver", load_role, max_new_tokens=4)
    codec = solver._codec
    assert solver.converses
    asked = spied(monkeypatch)
    for question in ("one", "two"):
        solver.answer(question, lambda piece: None)
    (first, said), (second, _) = asked
    assert first.tokens.tolist() == codec.open("one")
    ended = said.finish_reason == "eos"
    after = codec.follow("two", ended=ended, mark=int(said.tokens[-1]) if ended else None)
    assert second.tokens.tolist() == [*first.tokens, *said.tokens, *after]
    # 128 tokens of context are soon full: the conversation begins anew.
    for _ in range(20):
        notes = solver.answer("again and again", lambda piece: None)
        if "the context is full: the conversation begins anew" in notes:
            break
    assert asked[-1][0].tokens.tolist() == codec.open("again and again")
    with pytest.raises(PolicyFailure, match="tokens and the context 128"):
        opened(run, "solver", load_role).answer("long " * 200, lambda piece: None)


def test_a_stopped_answer_stays_in_the_conversation(
    tmp_path: Path, checkpoint: Any, load_role: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(
        tmp_path / "talk", "--env", "solo", "--env.prompt", "{question}", solver=checkpoint("qwen3")
    )
    solver = opened(run, "solver", load_role, max_new_tokens=8)
    shown: list[str] = []

    def stop(piece: str) -> None:
        shown.append(piece)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.answer("one", stop)
    codec = solver._codec
    kept = solver._context
    assert kept[: len(codec.open("one"))] == codec.open("one")
    assert "".join(shown) == codec.decode(kept[len(codec.open("one")) :])
    asked = spied(monkeypatch)
    solver.answer("two", lambda piece: None)
    assert asked[0][0].tokens.tolist() == kept + codec.follow("two", ended=False)


def test_which_weights(run: Path, chat: Callable[..., Any], tmp_path: Path) -> None:
    settings = read_run(run)
    alice, final = settings.agents["alice"], run / "final" / "alice"
    assert model_of(run, alice, "alice", None).model == str(final)
    for step, shipped in ((1, "bob"), (12, "carol")):
        shutil.copytree(TINY / shipped, run / "checkpoints" / f"step-{step:06d}" / "alice")
    assert model_of(run, alice, "alice", None).model == str(final)
    assert model_of(run, alice, "alice", 1).model == str(run / "checkpoints/step-000001/alice")
    greedy = ("--role", "alice", "--temperature", 0)
    assert len({chat(run, *greedy, *more)[0] for more in ((), ("--step", 1), ("--step", 12))}) == 3
    _, err = chat(run, *greedy, "--step", 2, code=2)
    assert "has no checkpoint of step 2; it has step 1, step 12" in err
    shutil.rmtree(run / "final")
    newest = run / "checkpoints/step-000012/alice"
    assert model_of(run, alice, "alice", None).model == str(newest)
    shutil.rmtree(run / "checkpoints")
    assert "no weights of alice yet" in chat(run, "--role", "alice", code=2)[1]


def test_an_adapter_of_named_layers_is_talked_to_on_the_commit_of_its_base(tmp_path: Path) -> None:
    flags = ("--agents.alice.model", "some/model", "--agents.alice.lora-targets", "q_proj")
    flags += ("--agents.alice.revision", "abc", "--train-role", "alice")
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "some/model"}')
    (adapter / "adapter_model.safetensors").touch()
    run = write_run(tmp_path / "run", *flags, alice=adapter)
    spec = model_spec(model_of(run, read_run(run).agents["alice"], "alice", None))
    assert (spec.model, spec.revision) == ("some/model", "abc")


def test_which_role(run: Path, chat: Callable[..., Any], tmp_path: Path) -> None:
    assert "trained alice, bob: name one with --role" in chat(run, code=2)[1]
    assert "did you mean 'alice'?" in chat(run, "--role", "alise", code=2)[1]
    assert "is not a run" in chat(tmp_path, "--role", "alice", code=2)[1]
    flags = ("--train-role", "alice", "--agents.bob.model", "scripted:useless")
    one = write_run(tmp_path / "one", *flags, alice=TINY / "alice")
    assert chat(one)[0]
    assert "bob is played by scripted:useless" in chat(one, "--role", "bob", code=2)[1]
    frozen = write_run(tmp_path / "frozen", "--train-role", "alice", alice=TINY / "alice")
    assert chat(frozen, "--role", "bob")[0]
    assert "bob is frozen" in chat(frozen, "--role", "bob", "--step", 1, code=2)[1]


def test_what_a_model_writes_cannot_steer_the_terminal(
    run: Path, chat: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(self: ChatRole, question: str, show: Callable[[str], None]) -> Any:
        show("\x1b]0;title\x07 \u202ehidden\rover")
        return []

    monkeypatch.setattr(ChatRole, "answer", answer)
    out, _ = chat(run, "--role", "alice")
    assert out == "␛]0;title␇ ‹U+202E›hidden␍over\n"


def test_at_a_terminal(run: Path) -> None:
    """A question, Ctrl-C during its answer, another question, Ctrl-C at the prompt."""
    code = (
        "import sys, time\n"
        "from coterie.agents.sampling import sample\n"
        "from coterie.__main__ import main\n"
        "really = sample.choose\n"
        "def slow(*args):\n"
        "    time.sleep(0.3)\n"
        "    return really(*args)\n"
        "sample.choose = slow\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    child, master = pty.fork()
    if child == 0:
        os.environ |= {"PYTHONPATH": str(ROOT), "TERM": "dumb"}
        os.execv(sys.executable, [sys.executable, "-c", code, "chat", str(run), "--role", "alice"])
    keys = [
        ("> ", f"{ASKED}\n"),
        ("<strategy", "\x03"),  # within the first answer
        ("(stopped)\r\n> ", "\x03"),
    ]
    shown, until = "", time.monotonic() + 120
    try:
        while time.monotonic() < until:
            if not select.select([master], [], [], 2)[0]:
                if not keys:
                    # input() misses an interrupt that comes just before it waits, until the next.
                    os.write(master, b"\x03")
                continue
            if not (part := os.read(master, 1 << 16)):
                break
            shown += part.decode()
            if keys and keys[0][0] in shown:
                os.write(master, keys.pop(0)[1].encode())
        else:
            os.kill(child, signal.SIGKILL)
    except OSError:  # the end of a pseudo-terminal
        pass
    finally:
        os.close(master)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, shown
    assert not keys
    assert "Traceback" not in shown
    assert "each question stands alone" in shown
    # It was stopped within its 48 tokens.
    assert "</final_answer>" not in shown

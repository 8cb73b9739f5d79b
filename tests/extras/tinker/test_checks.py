"""What a server cannot do is refused before the run begins."""

import json
import shutil
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from coterie import train
from coterie.agents.models.locate import TINY
from coterie.cli.command_line import parse
from coterie.datatypes import UserError
from coterie.extras.tinker import checks
from coterie.extras.tinker.service import capabilities, one_line
from coterie.extras.tinker.settings import KEY, Prices, TinkerSettings

CORE = (
    "--env core-teaching --algo gspo --engine tinker --tinker.url http://127.0.0.1:9 "
    "--algo.distillation.decay 0 --algo.distillation.likeliest 0"
)

SOLO = (
    "--env solo --algo gspo --agents.solver.model tiny:alice --problems.train chains "
    "--engine tinker --algo.distillation.beta 1 --algo.distillation.likeliest 0 "
    "--algo.distillation.teacher"
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, "tml-test")
    monkeypatch.setattr(checks, "find_spec", lambda name: name)


def said(argv: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert train.main(argv.split()) == 2
    shown = capsys.readouterr()
    assert not shown.out
    (line,) = shown.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ("--env solo --algo gspo --engine tinker --agents.solver.model tiny:alice --problems.train "
         "chains", "--engine tinker needs the address of a server: --tinker.url URL"),
        ("--env core-teaching --algo gspo --tinker.url http://x:1", "needs --engine tinker"),
        ("--env core-teaching --algo gspo --engine tinker --tinker.url http://x:1",
         "say --algo.distillation.likeliest 0"),
        ("--env core-teaching --algo gspo --engine tinker --tinker.url http://x:1 "
         "--algo.distillation.likeliest 0", "--algo.distillation.reader start"),
        (f"{CORE} --tinker.url ftp://x", "is given twice"),
        (f"{CORE} --algo.entropy-coefficient 0.1", "no gradient of entropies"),
        (f"{CORE} --agents.bob.algo dr-grpo", "say --agents.bob.algo.distillation.likeliest 0"),
        (f"{CORE} --agents.bob.algo.entropy-coefficient 0.1",
         "say --agents.bob.algo.entropy-coefficient 0"),
        (f"{CORE} --agents.bob.learner.moments 8bit",
         "leave out --agents.bob.learner.moments 8bit"),
        (f"{CORE} --rollout.temperature 0.7", "say --rollout.learner-temperature 1"),
        (f"{CORE} --agents.alice.tuning full", "leave out --agents.alice.tuning full"),
        (f"{CORE} --agents.bob.dtype bfloat16", "leave out --agents.bob.dtype"),
        (f"{CORE} --agents.bob.engine-replicas 2", "leave out --agents.bob.engine-replicas"),
        (f"{CORE} --agents.bob.lora-alpha 8", "the server chooses the scale of adapters"),
        (f"{CORE} --learner.moments 8bit", "leave out --learner.moments 8bit"),
        (f"{CORE} --cluster.address local", "--cluster.* places models on machines of yours"),
        (f"{CORE} --plan", "--plan is about models on this machine"),
        (f"{CORE} --doctor", "leave out one of the two"),
        (f"{CORE} --tinker.names tiny:carol=x", "tiny:carol: no role has this model"),
        (f"{CORE} --tinker.names x", "use MODEL=NAME"),
        (f"{CORE} --tinker.prices 1,2", "PREFILL,SAMPLE,TRAIN"),
        (f"{CORE} --tinker.prices 1,2,-3", "PREFILL,SAMPLE,TRAIN"),
        (CORE, "no server answers"),
    ],
)  # fmt: skip
def test_refusals(argv: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sentence in said(argv, capsys)


def test_without_the_package_or_the_key(monkeypatch, capsys) -> None:
    monkeypatch.delenv(KEY)
    assert f"reads the server's key from {KEY}" in said(CORE, capsys)
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert 'pip install -e ".[tinker]"' in said(CORE, capsys)


@pytest.mark.parametrize("key", ["sk-other", "tml-kéy", "tml-key\n", "tml-a b"])
def test_a_key_that_the_official_client_does_not_take(key, monkeypatch, capsys) -> None:
    monkeypatch.setenv(KEY, key)
    sentence = said(CORE, capsys)
    assert f"the key in {KEY} must begin with tml- and have no spaces" in sentence
    assert key not in sentence


@pytest.fixture
def answering() -> Iterator[Any]:
    """Starts a server that answers everything in one way; returns its settings."""
    servers = []

    def start(status: int, body: bytes) -> TinkerSettings:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status if self.headers["X-API-Key"] == "tml-test" else 418)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        servers.append(server := HTTPServer(("127.0.0.1", 0), Handler))
        Thread(target=server.serve_forever, daemon=True).start()
        return TinkerSettings(f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, b"{}", f"refuses the key in {KEY}"),
        (404, b"{}", "does not speak Tinker's API"),
        (200, b"<html>", "does not speak Tinker's API"),
        (200, b"[]", "does not speak Tinker's API"),
        (500, b"", "answers with 500"),
    ],
)
def test_other_servers(status, body, sentence, answering) -> None:
    with pytest.raises(UserError, match=sentence.replace("(", r"\(")):
        capabilities(answering(status, body))


def test_models_that_are_not_served(answering) -> None:
    from coterie.agents.team.settings import AgentSettings

    body = json.dumps({"supported_models": [{"model_name": "A/one"}, {"model_name": "A/two"}]})
    settings = answering(200, body.encode())
    listed = capabilities(settings)
    checks.check_served(settings, {"alice": AgentSettings("A/one")}, listed)
    with pytest.raises(UserError) as refused:
        checks.check_served(settings, {"alice": AgentSettings("A/three")}, listed)
    assert "does not serve 'A/three', the model of alice; it serves A/one, A/two" in str(
        refused.value
    )
    named = TinkerSettings(settings.url, names=("A/three=A/two",))
    checks.check_served(named, {"alice": AgentSettings("A/three")}, listed)
    # A list without names, as Hatchery's, says nothing.
    checks.check_served(
        settings, {"alice": AgentSettings("A/three")}, {"supported_models": [{"model_id": "x"}]}
    )


def test_a_server_without_the_loss(answering) -> None:
    settings = answering(200, b'{"supported_loss_fns": ["ppo"]}')
    with pytest.raises(UserError, match="has no loss cross_entropy"):
        checks.check_served(settings, {}, capabilities(settings))


def test_a_teacher_is_served_and_named_like_a_role(answering, tmp_path, capsys) -> None:
    teacher = shutil.copytree(TINY / "alice", tmp_path / "teacher")
    served = [{"model_name": str((TINY / "alice").resolve())}, {"model_name": "the-teacher"}]
    url = answering(200, json.dumps({"supported_models": served}).encode()).url
    words = f"{SOLO} {teacher} --tinker.url {url}"
    assert f"does not serve {str(teacher)!r}, the model of solver's teacher" in said(words, capsys)
    settings = parse(f"{words} --tinker.names {teacher}=the-teacher".split())
    checks.check_run(settings.section(TinkerSettings), settings)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text('{"base_model_name_or_path": "tiny:alice"}')
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    settings = parse(f"{SOLO} {adapter} --tinker.url {url}".split())
    with pytest.raises(UserError, match="is an adapter, which cannot be sent to a server"):
        checks.check_run(settings.section(TinkerSettings), settings)


def test_prices_and_names() -> None:
    settings = TinkerSettings(
        "http://x", names=("tiny:alice=/models/alice",), prices=("1,2,3", "B/b=0.5,4,6")
    )
    assert settings.prices_of("A/a") == Prices(1, 2, 3)
    assert settings.prices_of("B/b") == Prices(0.5, 4, 6)
    assert settings.name_of("tiny:alice", "/here") == "/models/alice"
    assert settings.name_of("tiny:bob", "/here") == "/here"
    assert settings.name_of("A/a") == "A/a"


def test_a_message_of_a_server_is_one_line() -> None:
    assert one_line("a\n\x1b[2J b\u202e" + "x" * 500) == ("a [2J b" + "x" * 500)[:200]

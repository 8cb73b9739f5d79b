"""What goes to the hub, tried against a stand-in of its HTTP interface on this machine."""

import base64
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer

from coterie.__main__ import main
from coterie.agents.models.checksums import changed_files, write_checksums
from coterie.agents.models.locate import ELSEWHERE, TINY
from coterie.cli.command_line import parse

WEIGHTS, COMMIT = b"weights of ", "0" * 40


class Hub(ThreadingHTTPServer):
    """Notes what it is sent; ``refuses`` maps a path's end to a status."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked, self.created, self.files, self.refuses = [], [], {}, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        self.server.asked.append((path, self.headers.get("Authorization")))
        for end, status in self.server.refuses.items():
            if path.endswith(end):
                return self.answer({"error": "no"}, status)
        if path == "/api/repos/create":
            self.server.created.append(json.loads(body))
            return self.answer({"url": f"{self.server.address}/org/name"})
        if path.endswith("/preupload/main"):
            files = [file["path"] for file in json.loads(body)["files"]]
            return self.answer({"files": [
                {"path": file, "uploadMode": "regular", "shouldIgnore": False} for file in files
            ]})  # fmt: skip
        if path.endswith("/commit/main"):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    self.server.files[value["path"]] = base64.b64decode(value["content"])
            address = f"{self.server.address}/org/name/commit/{COMMIT}"
            return self.answer({"commitUrl": address, "commitOid": COMMIT, "success": True})
        return self.answer({})

    def do_GET(self):
        if "create" in self.server.refuses:  # nor is there such a repository
            return self.answer({"error": "no"}, 404)
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        return self.answer({"id": "org/name", "sha": COMMIT, "siblings": []})

    def answer(self, content, status=200):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch):
    server = Hub()
    # What HF_ENDPOINT names, as it was when the library was imported.
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", server.address)
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    yield server
    server.shutdown()
    server.server_close()


def ended(path, *flags, adapter=False):
    """A run's directory as it is at its end."""
    settings = parse(list(flags))
    for role in (role for role, agent in settings.agents.items() if agent.trained):
        folder = path / "final" / role
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_bytes(WEIGHTS + role.encode())
        if adapter:
            config = {"base_model_name_or_path": "/home/me/secret", "r": 16}
            (folder / "adapter_config.json").write_text(json.dumps(config))
        write_checksums(folder)
    measured = {"pass@1/alice": 0.25}
    summary = {"before": measured, "after": {"pass@1/alice": 0.75}, "steps": 3, "wall_s": 4.0}
    begun = {"at": "2026-01-01 10:00 +0000", "command": "python train.py --seed 3", "commit": "abc"}
    (path / "config.json").write_text(json.dumps(settings.plain()))
    (path / "summary.json").write_text(json.dumps({**summary, "sampled_tokens": 1200}))
    (path / "environment.json").write_text(
        json.dumps({"begun": begun, "packages": {"torch": "2.13"}, "problems": {"train": "f00"}})
    )
    return path


def test_weights_that_are_elsewhere_cannot_be_sent(tmp_path, capsys):
    run = ended(tmp_path / "run")
    weights = run / "final" / "alice" / "model.safetensors"
    weights.unlink()
    (weights.parent / ELSEWHERE).write_text("they are on a server; put them here\n")
    write_checksums(weights.parent)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert f"{weights.parent} has no weights: they are on a server; put them here" in said
    assert not (run / "hub").exists()


def test_models_card_and_settings_are_sent_to_a_private_repository(hub, tmp_path, capsys):
    run = ended(tmp_path / "run")
    assert main(["push", str(run), "org/name"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"sent: {hub.address}/org/name"
    (created,) = hub.created
    assert (created["name"], created["organization"]) == ("name", "org")
    assert created.get("private", created.get("visibility")) in (True, "private")
    assert {token for path, token in hub.asked if "org/name" in path} == {"Bearer hf_token"}
    assert hub.files["alice/model.safetensors"] == b"weights of alice"
    assert hub.files["bob/model.safetensors"] == b"weights of bob"
    assert json.loads(hub.files["run/config.json"])["choice"]["env"] == "core-teaching"
    assert {"run/summary.json", "bob/SHA256SUMS", "README.md"} <= hub.files.keys()
    card = hub.files["README.md"].decode()
    for part in (
        'license: "apache-2.0"',
        "| pass@1/alice | .250 | .750 |",
        "| command | `python train.py --seed 3` |",
        "| commit | abc |",
        "| training problems | `chains?mix=0.5,0.5,0&min_length=5&max_length=5`, SHA-256 `f00` |",
        'AutoModelForCausalLM.from_pretrained("org/name", subfolder="alice")',
    ):
        assert part in card


def test_the_card_names_the_system_messages_of_training(hub, tmp_path, monkeypatch):
    run = ended(tmp_path / "run", "--agents.alice.system", 'Be "brief".\nThink.')
    monkeypatch.chdir(tmp_path)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    card = (run / "hub" / "README.md").read_text(encoding="utf-8")
    assert "system message of training (a JSON string):\n\n- `alice`: " in card
    assert json.dumps('Be "brief".\nThink.') in card
    assert '`bob`: "' not in card


def test_the_card_names_teachers_and_a_base_in_4_bits(hub, tmp_path):
    beta = ("--algo.distillation.beta", "1")
    taught = "--agents.alice.algo.distillation"
    flags = (f"{taught}.teacher", "some/teacher", f"{taught}.teacher-revision", "v1")
    flags += ("--agents.bob.algo.distillation.teacher", str(tmp_path / "home" / "runs" / "mine"))
    alone = ("--agents.bob.algo.distillation.no-rewards",)
    low = ("--agents.alice.tuning", "lora", "--agents.alice.dtype", "nf4")
    run = ended(tmp_path / "run", *beta, *flags, *alone, *low, adapter=True)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    card = (run / "hub" / "README.md").read_text(encoding="utf-8")
    for part in (
        "| `alice` | `alice` | LoRA adapter, trained on a base in 4 bits (nf4) | `tiny:alice` |",
        "| `bob` | `bob` | LoRA adapter | `tiny:bob` |",
        "- `alice` learned from the probabilities of `some/teacher` at `v1`\n",
        "- `bob` learned from the probabilities of `mine`, and from nothing else\n\n## Result",
        "Teachers have their own terms: `some/teacher`, `mine`.",
    ):
        assert part in card
    assert str(tmp_path) not in card
    # By default the team learns from itself.
    run = ended(tmp_path / "plain")
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    assert "eacher" not in (run / "hub" / "README.md").read_text(encoding="utf-8")


def test_a_dry_run_writes_the_folder_and_sends_nothing(hub, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN")
    run = ended(tmp_path / "run", "--train-role", "bob")
    assert main(["push", str(run), "org/name", "--dry-run", "--licence", "mit"]) == 0
    assert "nothing was sent" in capsys.readouterr().out
    assert hub.asked == []
    # A single model lies where the hub looks for it.
    assert (run / "hub" / "model.safetensors").read_bytes() == b"weights of bob"
    assert 'license: "mit"' in (run / "hub" / "README.md").read_text()
    # What was written before is not sent with it.
    (run / "hub" / "old.bin").touch()
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    assert not (run / "hub" / "old.bin").exists()


def test_an_adapter_names_its_base_and_has_its_tokenizer(tmp_path):
    flags = ("--agents.alice.tuning", "lora", "--agents.alice.model", str(TINY / "alice"))
    run = ended(tmp_path / "run", "--train-role", "alice", *flags, adapter=True)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    written = json.loads((run / "hub" / "adapter_config.json").read_text())
    assert written == {"base_model_name_or_path": "alice", "r": 16}
    kept = json.loads((run / "final" / "alice" / "adapter_config.json").read_text())
    assert kept["base_model_name_or_path"] == "/home/me/secret"
    assert (run / "hub" / "tokenizer.json").is_file()
    assert not (run / "hub" / "config.json").exists()
    assert changed_files(run / "hub", new=False) == []
    card = (run / "hub" / "README.md").read_text()
    assert 'library_name: "peft"' in card
    assert "license:" not in card
    assert "PeftModel.from_pretrained(alice_base" in card
    assert str(TINY) not in card


def test_the_tokenizer_of_an_adapter_is_sent_as_its_run_wrote_it(tmp_path):
    flags = ("--agents.alice.tuning", "lora", "--agents.alice.model", str(TINY / "alice"))
    run = ended(tmp_path / "run", "--train-role", "alice", *flags, adapter=True)
    final = run / "final" / "alice"
    (final / "tokenizer_config.json").write_text("{}")
    write_checksums(final)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    assert (run / "hub" / "tokenizer_config.json").read_text() == "{}"
    assert not (run / "hub" / "tokenizer.json").exists()
    assert changed_files(final) == changed_files(run / "hub", new=False) == []


def test_an_adapter_names_the_commit_of_its_base_and_leaves_its_weights_there(
    tmp_path, monkeypatch
):
    snapshot = tmp_path / "cache" / "models--some--model" / "snapshots" / COMMIT
    shutil.copytree(TINY / "alice", snapshot)
    for name in ("model.safetensors.index.json", "adapter_config.json"):
        (snapshot / name).write_text("{}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    flags = ("--agents.alice.model", "some/model", "--agents.alice.revision", COMMIT)
    run = ended(tmp_path / "run", "--train-role", "alice", *flags, adapter=True)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    written = json.loads((run / "hub" / "adapter_config.json").read_text())
    assert written == {"base_model_name_or_path": "some/model", "r": 16, "revision": COMMIT}
    assert (run / "hub" / "tokenizer.json").is_file()
    assert not (run / "hub" / "model.safetensors.index.json").exists()
    assert changed_files(run / "hub", new=False) == []


def test_the_card_loads_an_adapter_and_a_whole_model_side_by_side(tmp_path, monkeypatch):
    run = ended(tmp_path / "run", "--agents.alice.tuning", "lora")
    base = AutoModelForCausalLM.from_pretrained(TINY / "alice")
    for role, model in {"alice": get_peft_model(base, LoraConfig(r=2)), "bob": None}.items():
        folder = run / "final" / role
        shutil.rmtree(folder)
        shutil.copytree(TINY / "bob", folder) if model is None else model.save_pretrained(folder)
        write_checksums(folder)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    card = (run / "hub" / "README.md").read_text()
    assert "| `alice` | `alice` | LoRA adapter | `tiny:alice` |" in card
    assert "| `bob` | `bob` | whole model | `tiny:bob` |" in card
    assert 'library_name: "transformers"' in card
    assert "base_model" not in card  # no tiny model is on the hub
    # The card's code runs where the repository is.
    code = card.partition("```python\n")[2].partition("```")[0]
    made = {}
    exec(code.replace("org/name", str(run / "hub")), made)
    assert type(made["alice"]).__name__.startswith("PeftModel")
    assert made["bob"].config.vocab_size == len(made["bob_tokenizer"])


def test_the_card_of_an_adapter_that_went_on_names_the_model_below_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    AutoModelForCausalLM.from_pretrained(TINY / "alice").save_pretrained("models/small")
    AutoTokenizer.from_pretrained(TINY / "alice").save_pretrained("models/small")
    first = get_peft_model(AutoModelForCausalLM.from_pretrained("models/small"), LoraConfig(r=2))
    first.save_pretrained("runs/first/final/alice")
    flags = ("--agents.alice.model", "runs/first/final/alice", "--train-role", "alice")
    run = ended(tmp_path / "run", *flags, adapter=True)
    assert main(["push", str(run), "org/name", "--dry-run"]) == 0
    written = json.loads((run / "hub" / "adapter_config.json").read_text())
    assert written["base_model_name_or_path"] == "small"
    card = (run / "hub" / "README.md").read_text()
    assert '"PATH/small")  # not on the hub' in card
    assert "base_model" not in card


@pytest.mark.parametrize(
    ("arrange", "said"),
    [
        (lambda run, hub, env: env.delenv("HF_TOKEN"), "not logged in to the hub"),
        (lambda run, hub, env: hub.refuses.update({"create": 401}), "write to org/name (401)"),
        (lambda run, hub, env: hub.refuses.update({"/commit/main": 403}), "org/name (403)"),
        (
            lambda run, hub, env: env.setattr(
                "huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9"
            ),
            "http://127.0.0.1:9 cannot be reached",
        ),
        (lambda run, hub, env: (run / "summary.json").unlink(), "has not ended: coterie train"),
        (lambda run, hub, env: (run / "config.json").unlink(), "is not a run"),
        (
            lambda run, hub, env: (run / "final" / "bob" / "model.safetensors").write_text("x"),
            "model.safetensors is not what its run wrote",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused_in_one_sentence(
    arrange, said, hub, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    arrange(run := ended(tmp_path / "run"), hub, monkeypatch)
    assert main(["push", str(run), "org/name"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert hub.files == {}


@pytest.mark.parametrize("name", ["name", "a/b/c", "org/na me"])
def test_a_name_without_owner_is_refused(name, hub, tmp_path, capsys):
    assert main(["push", str(tmp_path), name]) == 2
    assert "write ORG/NAME" in capsys.readouterr().err
    assert hub.asked == []

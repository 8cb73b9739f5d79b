"""Checkpoints with random weights, a stand-in for vLLM's engine, a web server, a small run."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import hypothesis
import numpy as np
import pytest

from coterie.agents.models.instructions import has_avx2

# Runs of this process and of others are compared bit for bit. What a run of tiny models would set
# in its own process is set here, to what is fast; torch reads it once.
os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2" if has_avx2() else "default")
os.environ.setdefault("MKL_CBWR", "AUTO")
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "ALL")

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from coterie.agents.models.handle import ModelHandle
from coterie.agents.models.loading import LoadedRole, load_team
from coterie.agents.models.locate import TINY
from coterie.agents.models.spec import LoraSpec, ModelSpec
from coterie.agents.sampling.policy import LocalPolicy
from coterie.cli.arguments import overlay
from coterie.datatypes import Completion, Prompt, Sampling

# Files of tests run side by side: threads would only wait for each other's cores.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No power is lost here; what the disk is asked to keep, test_power_loss.py watches.
os.fsync = os.fdatasync = lambda descriptor: None

# A shell ignores Ctrl-C for what it starts in the background, and programs that tests start inherit
# that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A change is judged by the same examples everywhere; `--hypothesis-profile default` draws others.
hypothesis.settings.register_profile("same", derandomize=True)
hypothesis.settings.load_profile("same")

ROOT = Path(__file__).resolve().parents[1]
VOCAB = 320


def pytest_collection_finish() -> None:
    """What is imported is never looked at again: a comparison collects what its models leave, which
    would take a second each time."""
    gc.collect()
    gc.freeze()


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    **dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id")),
}
_LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 100.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
_WINDOWED = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
_CAPPED = {"head_dim": 8, "sliding_window": 8, "final_logit_softcapping": 3.0}
_HALF = {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5}
_BIASED = {"rope_parameters": _LLAMA3, "attention_bias": True, "mlp_bias": True}
_LONG = {
    "rope_type": "longrope",
    "rope_theta": 100.0,
    "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 16,
    "short_factor": [1.0, 1.0],
    "long_factor": [2.0, 5.0],
}
_ATTENTION = ("num_attention_heads", "num_key_value_heads", "max_position_embeddings")
_EXPERTS = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
CONFIGS = {
    "qwen3": ("Qwen3Config", {"head_dim": 16, "tie_word_embeddings": True}),
    # The second layer looks back over 8 positions only.
    "qwen2": ("Qwen2Config", _WINDOWED),
    "llama": ("LlamaConfig", _BIASED),
    "mistral": ("MistralConfig", {"sliding_window": 6, "head_dim": 8}),
    "phi3": ("Phi3Config", {"rope_parameters": _HALF}),
    # Contexts beyond 16 tokens use the other set of frequencies.
    "phi3-long": ("Phi3Config", {"rope_parameters": _LONG, "original_max_position_embeddings": 16}),
    # No fused decoder: capped logits, other norms.
    "gemma2": ("Gemma2Config", _CAPPED),
    "gemma3": ("Gemma3TextConfig", _CAPPED | {"sliding_window_pattern": 2}),
    # No projections called as in Llama, experts, and no attention at all.
    "gpt2": ("GPT2Config", {"num_key_value_heads": 4}),
    "gpt-neox": ("GPTNeoXConfig", {"num_key_value_heads": 4}),
    "phi2": ("PhiConfig", {}),
    "opt": ("OPTConfig", {"ffn_dim": 48, "num_key_value_heads": 4}),
    "mixtral": ("MixtralConfig", _EXPERTS),
    "qwen3-moe": ("Qwen3MoeConfig", _EXPERTS | {"head_dim": 16, "moe_intermediate_size": 24}),
    "mamba": ("MambaConfig", {"state_size": 8} | dict.fromkeys(_ATTENTION, ...)),
}


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE with ChatML marks."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=["<|im_start|>", "<|im_end|>"],
    )
    backend.train_from_iterator(["Question: 7 + 8 - 3 = the answer is 12"] * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", chat_template=CHATML
    )


def write_checkpoint(folder: Path, name: str, *, spread: float = 0.3, **shape: int) -> Path:
    """A model with weights large enough that every part of it matters; ``shape`` is laid over what
    its configuration has."""
    kind, settings = CONFIGS[name]
    given = {key: value for key, value in (_SMALL | settings).items() if value is not ...}
    given |= {key: value for key, value in shape.items() if key in given}
    config = getattr(transformers, kind)(**given)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * spread + (p.ndim == 1))
    model.save_pretrained(folder)
    byte_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory):
    """name -> folder of its checkpoint; written once."""
    return cache(lambda name: write_checkpoint(tmp_path_factory.mktemp(name), name))


@pytest.fixture(autouse=True)
def no_local_copies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known data sets come from the stand-in of the hub; tests marked ``data`` read real ones."""
    if request.node.get_closest_marker("data") is None:
        monkeypatch.delenv("COTERIE_DATA", raising=False)


_ROUNDINGS = 2 * 2 * 7 * 64 * 2.0**-24
"""What rounding does, at most, to two float32 computations: each is two layers of seven products,
sums of up to 64 terms, and a processor chooses their order. 1e-4 of the largest entry."""


@pytest.fixture(scope="session")
def near() -> Callable[..., None]:
    """(ours, expected, passes=1): float32 tensors, or dictionaries of them, that are equal but for
    rounding, on any processor; a gradient has gone through two ``passes``."""

    def check(ours: Any, expected: Any, passes: int = 1) -> None:
        if isinstance(expected, dict):
            assert ours.keys() == expected.keys()
            for name in expected:
                check(ours[name], expected[name], passes)
            return
        ours, expected = torch.as_tensor(ours), torch.as_tensor(expected)
        scale = float(expected.abs().max()) or 1.0
        torch.testing.assert_close(ours / scale, expected / scale, rtol=0, atol=passes * _ROUNDINGS)

    return check


@pytest.fixture
def without_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samplers draw from the whole vocabulary evenly, whatever the logits are, and score what they
    draw: no rounding decides between two tokens."""

    def draw(logits_BV: torch.Tensor, u_B: torch.Tensor, rules: Any) -> tuple[Any, Any]:
        tokens_B = (u_B * logits_BV.shape[1]).long()
        logp_BV = logits_BV.float().log_softmax(-1)
        return tokens_B, logp_BV.gather(1, tokens_B[:, None])[:, 0]

    monkeypatch.setattr("coterie.agents.sampling.sample.choose", draw)


@pytest.fixture(scope="session")
def load_role(checkpoint: Callable[[str], Path]) -> Callable[..., LoadedRole]:
    """Loads a model for a role: one of the checkpoints above by its name, a folder, a tiny one."""

    def load(model: str | Path, *, trained: bool = True, **settings: Any) -> LoadedRole:
        name = str(checkpoint(str(model)) if model in CONFIGS else model)
        spec = ModelSpec(name, **{"device": "cpu"} | settings)
        return load_team({"a": spec}, {"a"} if trained else set())["a"]

    return load


@pytest.fixture(scope="session")
def shake() -> Callable[..., None]:
    """Adds noise to what a role trains: an update that is large enough to be seen."""

    def add(handle: ModelHandle, seed: int = 3, size: float = 0.1, only: str = "") -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, p in handle.parameters().items():
                if only in name:
                    p += size * torch.randn(p.shape, generator=generator).to(p)
        handle.version += 1

    return add


@pytest.fixture(scope="session")
def write_shaped() -> Callable[..., Path]:
    """Writes a checkpoint of another shape."""
    return write_checkpoint


class FileEngine:
    """Stands in for a vLLM engine: knows the weights that it has read from files, nothing else.

    It decodes in this process, at the widths and with the adapters that it was given.
    """

    started: ClassVar[list["FileEngine"]] = []
    _loading: ClassVar = threading.Lock()

    def __init__(self, spec: Any, settings: Any) -> None:
        self.spec, self.settings = spec, settings
        self.closed = False
        self.reloads = 0
        self._adapters: dict[int, LocalPolicy] = {}
        FileEngine.started.append(self)

    def start(self) -> None:
        self._base = self._policy(self.spec.model)

    async def generate(self, tokens: list[int], params: Any, adapter: Any) -> Any:
        policy = self._base if adapter is None else self._adapters[adapter.number]
        prompt = Prompt(np.array(tokens, np.int64), "", "a_0", params["seed"])
        answer = await policy(prompt, params["sampling"])
        ids = answer.tokens.tolist()
        logprobs = [{i: SimpleNamespace(logprob=float(p))} for i, p in zip(ids, answer.logprobs)]
        return SimpleNamespace(token_ids=ids, logprobs=logprobs, finish_reason="stop")

    async def add_adapter(self, adapter: Any) -> None:
        with warnings.catch_warnings():
            # The adapter was trained on the base in its own folder.
            warnings.filterwarnings("ignore", message="The PEFT config's `base_model_name")
            lora = LoraSpec(adapter=str(adapter.path))
            self._adapters[adapter.number] = self._policy(self.spec.model, lora)

    async def drop_adapter(self, adapter: Any) -> None:
        del self._adapters[adapter.number]

    async def reload(self, folder: Path) -> None:
        self.reloads += 1
        self._base = self._policy(str(folder))

    async def sleep(self) -> None: ...

    async def wake(self) -> None: ...

    def close(self) -> None:
        self.closed = True

    def _policy(self, model: str, lora: LoraSpec | None = None) -> LocalPolicy:
        spec = ModelSpec(model, lora=lora, device="cpu")
        # Engines start side by side, and transformers loads one model at a time.
        with FileEngine._loading:
            role = load_team({"x": spec}, set())["x"]
        return LocalPolicy(role.handle, role.codec)


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``python ARGUMENTS`` at the repository's root or in ``cwd``; further names are variables
    of its environment. It must end with ``code``; None: with any."""

    def run(
        *arguments: object, cwd: Path = ROOT, code: int | None = 0, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=cwd,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert code in (None, done.returncode), done.stdout[-4000:] + done.stderr[-4000:]
        return done

    return run


class Scripted:
    """Implements :class:`coterie.datatypes.Policy`: what ``write`` makes of a prompt, whole."""

    def __init__(self, codec: Any, write: Callable[[Prompt], str]) -> None:
        self._codec, self._write = codec, write

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        tokens = np.array(self._codec.extend(self._write(prompt)), np.int64)
        return Completion(tokens, np.zeros(len(tokens), np.float32), "eos")


@pytest.fixture
def scripted() -> type[Scripted]:
    """Makes policies of functions from prompts to texts."""
    return Scripted


@pytest.fixture
def file_engine(monkeypatch: pytest.MonkeyPatch) -> type[FileEngine]:
    """Has ``--engine vllm`` start engines that read files."""

    def params(sampling: Any, seed: int, eos_ids: Any) -> dict[str, Any]:
        return {"sampling": sampling, "seed": seed}

    FileEngine.started = []
    monkeypatch.setattr("coterie.agents.vllm.fleet.Engine", FileEngine)
    monkeypatch.setattr("coterie.agents.vllm.policy.sampling_params", params)
    monkeypatch.setattr("coterie.agents.vllm.settings.find_spec", lambda name: object())
    return FileEngine


@pytest.fixture
def random_model(tmp_path: Path) -> str:
    """Eight million random weights behind a vocabulary of some hundred tokens."""
    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY / "alice")
    shape = {"hidden_size": 256, "intermediate_size": 1024, "max_position_embeddings": 1024}
    shape |= {"num_hidden_layers": 8, "num_attention_heads": 4, "num_key_value_heads": 4}
    vocabulary = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id}
    config = transformers.LlamaConfig(**shape, **vocabulary, bos_token_id=None)
    folder = tmp_path / "random"
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def graded_files(tmp_path: Path) -> dict[str, str]:
    """Six problems of each kind that needs a grader, in the formats of SimpleQA and of HumanEval:
    kind -> file."""
    rows = {
        "judged": [
            {"problem": f"Which number follows {n}?", "answer": str(n + 1), "metadata": "{}"}
            for n in range(6)
        ],
        "code": [
            {
                "prompt": f"def add{n}(x):\n    '''x + {n}'''\n",
                "canonical_solution": f"    return x + {n}\n",
                "entry_point": f"add{n}",
                "test": f"def check(candidate):\n    assert candidate(1) == {n + 1}\n",
            }
            for n in range(6)
        ],
    }
    for kind, problems in rows.items():
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(map(json.dumps, problems)))
    return {kind: str(tmp_path / f"{kind}.jsonl") for kind in rows}


class Web:
    """A server on loopback: ``answer`` gives a request its status and body, or None to hang up."""

    def __init__(self, answer: Callable[[], tuple[int, str] | None], port: int) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if (given := answer()) is None:
                    return
                status, body = given[0], given[1].encode()
                kind = "text/html" if body.startswith(b"<") else "application/json"
                with suppress(OSError):  # nobody reads ten megabytes
                    self.send_response(status)
                    self.send_header("content-type", kind)
                    self.send_header("content-length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def web() -> Iterator[Callable[..., Web]]:
    """(answer, port=0) -> a server that runs until it, or the test, is over."""
    with ExitStack() as running:

        def start(answer: Callable[[], tuple[int, str] | None], port: int = 0) -> Web:
            server = Web(answer, port)
            running.callback(server.close)
            return server

        yield start


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """(main, words of the command line) -> the one sentence with which it is refused, and 2."""

    def sentence(main: Callable[[list[str]], int], *words: object) -> str:
        assert main([str(word) for word in words]) == 2
        text = capsys.readouterr().err
        assert text.count("\n") == 1, text
        return text.rstrip("\n")

    return sentence


@pytest.fixture
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows read from an answer's end on, by batch; models of any size keep
    contexts."""
    from coterie.agents.sampling import sample
    from coterie.agents.sampling.fused import FusedDecoder

    monkeypatch.setattr(sample, "KEEPS_FROM", 0)
    rows: list[int] = []
    resume = FusedDecoder.resume

    def counted(decoder: Any, prompts: Any, kept: Any, room: int) -> Any:
        rows.append(len(prompts))
        return resume(decoder, prompts, kept, room)

    monkeypatch.setattr(FusedDecoder, "resume", counted)
    return rows


SMALL_RUN = ("--steps", "2", "--rollout.problems-per-step", "8", "--eval.no-enabled")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a session of a small run with further flags."""
    from coterie.cli.command_line import parse
    from coterie.training.config.preflight import preflight
    from coterie.training.session import open_session

    sessions: list[Any] = []

    def start(*flags: str) -> Any:
        folder = tmp_path / f"run{len(sessions)}"
        settings = parse(overlay([*SMALL_RUN, "--run-dir", str(folder), *flags]))
        sessions.append(open_session(settings, preflight(settings)))
        return sessions[-1]

    yield start
    for session in sessions:
        session.__exit__()

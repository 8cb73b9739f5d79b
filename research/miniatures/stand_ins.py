"""What papers' presets find elsewhere: data sets of the hub, and an expert behind a port."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from coterie.agents.models.process import replaced

ROWS: Mapping[str, Callable[[int], dict[str, Any]]] = {
    "openai/gsm8k": lambda i: {
        "question": f"What is {i} + 1?",
        "answer": f"One more. #### {i % 4}",
    },
    "qwedsacf/competition_math": lambda i: {
        "problem": f"Find $x$ where $x - {i} = 1$.",
        "solution": f"So $x = \\boxed{{{i % 4}}}$.",
    },
    "TianHongZXY/aime-1983-2025": lambda i: {"problem": f"Find {i} mod 8.", "answer": str(i % 4)},
    "Idavidrein/gpqa": lambda i: {
        "Question": f"Which particle is number {i}?",
        "Correct Answer": f"quark {i}",
        **{f"Incorrect Answer {n}": f"lepton {i + n}" for n in (1, 2, 3)},
    },
    "openlifescienceai/medmcqa": lambda i: {
        "question": f"Which vitamin is number {i}?",
        **{f"op{letter}": f"{letter}{i}" for letter in "abcd"},
        "cop": i % 4,
    },
    "zwhe99/DeepMath-103K": lambda i: {
        "question": f"Compute the limit of {i}.",
        "final_answer": str(i % 4),
    },
    "HuggingFaceH4/MATH-500": lambda i: {"problem": f"Add {i} and 1.", "answer": str(i % 4)},
    "Hothan/OlympiadBench": lambda i: {
        "question": f"Compute the sum of {i}.",
        "final_answer": [str(i % 4)],
    },
    "tau/commonsense_qa": lambda i: {
        "question": f"Where is number {i}?",
        "choices": {"label": list("ABCDE"), "text": [f"place {i} {n}" for n in range(5)]},
        "answerKey": "ABCDE"[i % 5],
    },
    "BytedTsinghua-SIA/DAPO-Math-17k": lambda i: {
        "prompt": [{"role": "user", "content": f"Solve it.\n\nHow many of {i}?\n\nRemember."}],
        "reward_model": {"ground_truth": str(i % 4), "style": "rule"},
    },
    "math-ai/aime24": lambda i: {"problem": f"Count to {i}.", "solution": f"\\boxed{{{i % 4}}}"},
    "math-ai/aime25": lambda i: {"problem": f"Count down {i}.", "answer": str(i % 4)},
}
"""Data set on the hub -> its row number i."""
ROWS_OF_A_SET = 620


@contextmanager
def data_sets() -> Iterator[None]:
    """While open, data sets of the hub have rows with the columns of theirs."""
    import datasets

    def load_dataset(repo: str, *, name: Any, split: str, revision: Any) -> Any:
        start = 1000 if split in ("test", "validation") else 0
        return datasets.Dataset.from_list([ROWS[repo](start + i) for i in range(ROWS_OF_A_SET)])

    with replaced(datasets, "load_dataset", load_dataset):
        yield


class _Expert(BaseHTTPRequestHandler):
    """It thinks, and answers 3."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert asked["model"] == "expert"
        message = {"content": "<think>It may be 3.</think>\nAnswer: 3"}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def expert() -> Iterator[int]:
    """The port of what EAPO's presets expect behind port 8000."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Expert)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

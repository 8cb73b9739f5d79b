"""Every number that the simulation rests on, with its unit and where it comes from."""

from typing import NamedTuple

_H100 = "[NVIDIA, H100 SXM](https://www.nvidia.com/en-us/data-center/h100/)"
_TITAN = (
    "[torchtitan, Llama 3.1 8B](https://github.com/pytorch/torchtitan/blob/"
    "31a17bfdb70bab6f62a13d21816a5339b911d6e3/benchmarks/llama3_h100_202412_torchtitan.md)"
)
_LAB = "https://docs.gpustack.ai/2.0/performance-lab"
_FIT = f"fitted to vLLM 0.11 on one H100 SXM: [Qwen3-8B, 4 at a time]({_LAB}/qwen3-8b/h100-latency)"
_HERE = "measured here: `python -m scale.measure driver`, in processor seconds"
_RAY = "measured here: `python -m scale.measure ray`, two nodes on one machine"
_TAIL = "long tails of answers: arXiv:2509.21009, arXiv:2605.30859; this shape is assumed"


class Constant(NamedTuple):
    value: float
    unit: str
    what: str
    source: str


CONSTANTS: dict[str, Constant] = {
    "peak": Constant(989e12, "FLOP/s", "H100, bfloat16, dense", _H100),
    "bandwidth": Constant(3.35e12, "B/s", "H100, main memory", _H100),
    "memory": Constant(80e9, "B", "H100, main memory", _H100),
    "nvlink": Constant(450e9, "B/s", "between GPUs of a node, one direction", _H100),
    "network": Constant(
        50e9, "B/s", "of each GPU between nodes (400 Gb/s), eight GPUs a node",
        _TITAN,
    ),
    "host": Constant(
        55e9, "B/s", "between a GPU and main memory (PCIe 5, 64 at best)", _H100,
    ),
    "mfu": Constant(
        0.36, "share of peak", "a learner's arithmetic under FSDP2; 3 % less on 128 GPUs than on 8",
        f"{_TITAN}: 0.33 to 0.39",
    ),
    "engine_peak": Constant(
        0.3, "share of peak", "an engine's arithmetic",
        f"fitted to three engines on [Qwen3-14B]({_LAB}/qwen3-14b/h100), 1,000 requests at once",
    ),
    "engine_bandwidth": Constant(0.8, "share of bandwidth", "an engine's reading", _FIT),
    "iteration_s": Constant(1.3e-3, "s", "an engine's iteration beside that", _FIT),
    "hop_s": Constant(15e-6, "s", "an all-reduce of a few rows within a node (tensor parallel)",
                      "assumed; two in each layer"),
    "links": Constant(0.8, "share", "of NVLink and network that collectives get", "assumed"),
    "episode_s": Constant(2.1e-3, "s", "driver, to play an episode", _HERE),
    "request_s": Constant(3.1e-5, "s", "driver, to make and take in a request", _HERE),
    "call_s": Constant(3.3e-4, "s", "driver, to send it and its answer through Ray", _RAY),
    "token_s": Constant(5.0e-7, "s", "driver, to score and record an answer's token", _HERE),
    "after_episode_s": Constant(2.2e-4, "s", "driver, credit, packing, log of an episode", _HERE),
    "after_row_s": Constant(3.9e-5, "s", "the same, of each row", _HERE),
    "after_token_s": Constant(8.9e-8, "s", "the same, of each token", _HERE),
    "store": Constant(
        0.5e9, "B/s", "into Ray's object store, and from node to node",
        f"{_RAY}: 0.3 to 0.6; a GPU node's memory and network are several times as fast",
    ),
    "median": Constant(1200, "tokens", "median answer; log-normal", _TAIL),
    "sigma": Constant(1.0, "", "its deviation, half of the variance between problems", _TAIL),
    "longest": Constant(16384, "tokens", "where an answer is cut", "assumed"),
    "prompt": Constant(300, "tokens", "a problem with its instruction", "assumed"),
    "hint": Constant(512, "tokens", "of others' answers in the second turn's prompt", "assumed"),
}  # fmt: skip


def value(name: str) -> float:
    """The number alone."""
    return CONSTANTS[name].value


def table() -> str:
    """All of them, as the page shows them."""
    lines = ["| | value | from |", "|---|---|---|"]
    for one in CONSTANTS.values():
        unit = f" {one.unit}" if one.unit else ""
        lines.append(f"| {one.what} | {one.value:.3g}{unit} | {one.source} |")
    return "\n".join(lines)

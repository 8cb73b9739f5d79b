"""A training step on Ray beside the same step in one process: what the way there and back costs.

Two runs of the same settings take their steps in turn, so that whatever else the machine does hits
both alike; both are on this machine, with as many threads. With ``--nodes`` the one on Ray has
several, all of this machine. On one core (``taskset``) nothing is gained by the processes' working
side by side, and what is left is what the way costs.

    python tools/speed/cluster.py --sizes 127k 10m --repeat 7
    python tools/speed/cluster.py --sizes 10m --replicas 2
    taskset -c 0 python tools/speed/cluster.py --sizes 127k 10m
    python tools/speed/cluster.py --sizes 25m --roles alice bob carol dora --nodes 2

A row: median seconds of a step here and there, and the median of their ratios with its 95 %
interval (bootstrap over pairs), for the whole step (checkpoint included) and by phase; and there,
the processor seconds of the command itself, which plays the episodes.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coterie.training.command_line import parse
from coterie.training.preflight import preflight
from coterie.training.session import Session, open_session

# hidden, layers, feed-forward, heads; None: the tiny team as it is.
SIZES = {"127k": None, "10m": (320, 8, 960, 4), "25m": (512, 8, 1536, 8)}
PHASES = ("sample", "credit", "update", "record", "checkpoint")


def model(size: str, folder: Path) -> str:
    """What ``--agents.ROLE.model`` is given: a random model with the tiny team's tokenizer."""
    if SIZES[size] is None:
        return "tiny:alice"
    import torch
    from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM

    from coterie.models.locate import local_folder
    from coterie.models.spec import ModelSpec

    hidden, layers, feed_forward, heads = SIZES[size]
    tokenizer = AutoTokenizer.from_pretrained(str(local_folder(ModelSpec("tiny:alice"))))
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=feed_forward,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=heads // 2,
        head_dim=hidden // heads, tie_word_embeddings=True, max_position_embeddings=1024,
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    Qwen3ForCausalLM(config).save_pretrained(folder / size)
    tokenizer.save_pretrained(folder / size)
    return str(folder / size)


@contextmanager
def cluster_of(nodes: int) -> Iterator[str]:
    """The address of a Ray cluster with so many nodes on this machine, beside a head that has
    nothing; with none, each run starts its own."""
    if not nodes:
        yield "local"
        return
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 1 << 28}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1, object_store_memory=1 << 29)
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def flags(
    path: Path, name: str, roles: list[str], replicas: int, address: str, more: list[str]
) -> list[str]:
    """Of one run; ``replicas``: -1 for none of Ray."""
    said = ["--threads", "1", "--eval.no-enabled", "--run-dir", str(path), "--roles", *roles, *more]
    for role in roles:
        said += [f"--agents.{role}.model", name, f"--agents.{role}.tuning", "full"]
        said += [f"--agents.{role}.engine-replicas", str(replicas)] if replicas > 0 else []
    cluster = ["--cluster.address", address, "--cluster.cpus", "0.25"]
    return said + (cluster if replicas >= 0 else [])


def step(session: Session, number: int, logbook: object) -> npt.NDArray[np.float64]:
    """(phases + 1,) seconds, the last by this process's own processor time."""
    marks, own = [time.perf_counter()], time.process_time()
    batch = session.sample(number)
    marks.append(time.perf_counter())
    credit = session.credit(batch)
    marks.append(time.perf_counter())
    metrics = session.update(batch, credit)
    marks.append(time.perf_counter())
    session.record(number, batch, credit, metrics, logbook)  # type: ignore[arg-type]
    marks.append(time.perf_counter())
    session.checkpoint(number)
    own = time.process_time() - own
    return np.append(np.diff([*marks, time.perf_counter()]), own)


def interval(ratio_N: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """(median, lower, upper end of its 95 % interval)."""
    draws = np.random.default_rng(0).choice(ratio_N, (2000, len(ratio_N)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(np.median(ratio_N)), float(low), float(high)


def measure(size: str, said: argparse.Namespace, address: str) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        root, taken = Path(folder), [[], []]
        name = model(size, root)
        more = ["--steps", str(said.repeat + 1), *said.flags.split()]
        runs = []
        for place, replicas in enumerate((-1, said.replicas)):
            path = root / f"run{place}"
            settings = parse(flags(path, name, said.roles, replicas, address, more))
            session = stack.enter_context(open_session(settings, preflight(settings)))
            runs.append((session, stack.enter_context(session.open_logbook())))
        for number in range(1, said.repeat + 2):
            for place in (0, 1) if number % 2 else (1, 0):
                taken[place].append(step(runs[place][0], number, runs[place][1]))
        # The first pair starts everything.
        here, there = (np.array(one[1:])[:, :-1] for one in taken)
        own = float(np.median(np.array(taken[1][1:])[:, -1]))
    middle, low, high = interval(there.sum(1) / here.sum(1))
    print(f"{size}: {np.median(here.sum(1)):.3f} s and {np.median(there.sum(1)):.3f} s, ", end="")
    print(f"ratio {middle:.3f} [{low:.3f}, {high:.3f}]")
    for phase, a, b in zip(PHASES, np.median(here, 0), np.median(there, 0)):
        print(f"    {phase:10} {a:.3f} s and {b:.3f} s")
    print(f"    the command's own processor there: {own:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["127k"])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--roles", nargs="+", default=["alice", "bob"])
    parser.add_argument("--nodes", type=int, default=0, help="of the cluster; 0: Ray as it starts")
    parser.add_argument("--replicas", type=int, default=0, help="of each role, there")
    parser.add_argument("--flags", default="", help="more of train.py's, in one word")
    said = parser.parse_args()
    with cluster_of(said.nodes) as address:
        for size in said.sizes:
            measure(size, said, address)


if __name__ == "__main__":
    main()

"""Measure episodes a second of a program behind the gateway, and of the same protocol in process.

Alice answers twice an episode. Both ways sample from the same model and take turns in one process,
so that other load of the machine slows both alike.

    python tools/speed/gateway.py --episodes 512 --concurrency 64
    python tools/speed/gateway.py --player scripted:useless --episodes 10000 --memory

The rows are episodes per second of time and of processor time, and their ratio. With ``--memory``
the gateway plays alone, and rows are the memory of the process.
"""

import argparse
import asyncio
import http.client
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from coterie import EnvSpec, envs
from coterie.agents.team import AgentSettings, LearningSetup, Team, build_team
from coterie.algorithms import LearnerSettings, assign_credit, get
from coterie.datatypes import Sampling
from coterie.envs import ConversationEnv, Outcome
from coterie.problems.chains import ChainSource
from coterie.rollouts import Collector, tasks_for

GROUP = 8
AGAIN = "\nAgain:"


def ask(problem: Any) -> str:
    """Return alice's first prompt."""
    return f"Question: {problem.question}\nLet's solve this step by step:"


def reward(answer: str) -> float:
    """Return a reward that costs no time and differs between answers."""
    return float(len(answer) % 2)


def run(endpoints: Any, problem: Any) -> float:
    """Play the protocol as a program, with the standard library's client."""
    connection = http.client.HTTPConnection(urlsplit(endpoints.base_url).netloc)
    headers = {"authorization": f"Bearer {endpoints.api_key}"}
    messages = [{"role": "user", "content": ask(problem)}]
    for _ in range(2):
        body = json.dumps({"model": "alice", "messages": messages})
        connection.request("POST", "/v1/chat/completions", body, headers)
        answer = json.load(connection.getresponse())["choices"][0]["message"]
        messages += [answer, {"role": "user", "content": AGAIN}]
    connection.close()
    return reward(messages[-2]["content"])


class Twice(ConversationEnv):
    """The protocol as a conversation."""

    title = "twice"
    metadata = {**ConversationEnv.metadata, "name": "twice_v0"}  # noqa: RUF012
    default_roles = ("alice",)

    def conversation(self, problem: Any, options: Any, random: Any) -> Any:
        yield {"alice_0": ask(problem)}
        last = yield {"alice_0": AGAIN}
        return Outcome({"alice_0": {"program": reward(last["alice_0"])}})


SPEC = EnvSpec("gateway:SPEC", 0, Twice, None, ("alice",))
WAYS = {"in process": "gateway:SPEC", "gateway": "harness:gateway:run"}


class Way:
    """A way to play the protocol and to learn from it."""

    def __init__(self, name: str, team: Team, concurrency: int, tokens: int) -> None:
        self._team = team
        kind = envs.spec(name).settings
        settings = kind and kind(max_new_tokens=tokens)
        self._collector = Collector(
            lambda: envs.make(name, settings=settings, codecs=team.codecs),
            team.policies,
            sampling=Sampling(tokens),
            concurrency=concurrency,
        )

    def step(self, count: int, seed: int) -> tuple[float, float]:
        """Run a step with ``count`` episodes; return its seconds and processor seconds."""
        start, start_cpu = time.perf_counter(), time.process_time()
        problems = [ChainSource()[seed * count + place] for place in range(count // GROUP)]
        tasks = tasks_for(problems, seed=seed, replicas=GROUP)
        episodes = asyncio.run(self._collector.collect(tasks))
        rows = [row for episode in episodes for row in episode.trajectories]
        assert all(row.status == "ok" and len(row.turns) == 2 for row in rows)
        if learner := self._team.trained.get("alice"):
            credit = assign_credit(rows, "problem+role", get("gspo"))
            learner.update(rows, credit.advantage_B)
        return time.perf_counter() - start, time.process_time() - start_cpu


def memory_mb() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def compare(team: Team, episodes: int, concurrency: int, tokens: int, rounds: int) -> None:
    """Run both ways in turn; print medians."""
    ways = {way: Way(name, team, concurrency, tokens) for way, name in WAYS.items()}
    rates: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for seed in range(rounds + 1):
        for name, way in ways.items():
            took = way.step(episodes, seed)
            if seed:  # the first round is warm-up
                rates[name].append((episodes / took[0], episodes / took[1]))
    wall, cpu = ({way: statistics.median(r[k] for r in rates[way]) for way in ways} for k in (0, 1))
    print(f"{'':12}{'episodes/s':>12}{'per CPU s':>12}")
    for way in ways:
        print(f"{way:12}{wall[way]:12.1f}{cpu[way]:12.1f}")
    ratio, ratio_cpu = (rate["gateway"] / rate["in process"] for rate in (wall, cpu))
    print(f"{'ratio':12}{ratio:12.2f}{ratio_cpu:12.2f}")


def watch_memory(team: Team, episodes: int, concurrency: int, tokens: int) -> None:
    """Run the gateway alone; print the memory after a tenth, a half and all of the episodes."""
    way, done = Way(WAYS["gateway"], team, concurrency, tokens), 0
    for mark in (episodes // 10, episodes // 2, episodes):
        while done < mark:
            count = min(500, mark - done)
            way.step(count, done)
            done += count
        print(f"{done:8,} episodes {memory_mb():8.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--player", default="tiny:alice", help="who alice is (default: %(default)s)"
    )
    parser.add_argument("--episodes", type=int, default=512, help="episodes of a round")
    parser.add_argument("--tokens", type=int, default=64, help="of an answer, at most")
    parser.add_argument("--concurrency", type=int, default=64, help="programs at once")
    parser.add_argument("--no-learn", dest="learn", action="store_false", help="sample only")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--memory", action="store_true", help="show the memory of the gateway alone"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    learning = LearningSetup(get("gspo"), LearnerSettings(), 1.0, 1000) if options.learn else None
    team = build_team({"alice": AgentSettings(options.player)}, learning=learning)
    if options.memory:
        watch_memory(team, options.episodes, options.concurrency, options.tokens)
    else:
        compare(team, options.episodes, options.concurrency, options.tokens, options.rounds)


if __name__ == "__main__":
    main()

"""``verifiers:TASKSET``: the tasks of an installed taskset of verifiers (0.4, its v1 interface).

One agent gets a task whose prompt is text and answers once; the taskset's own rewards count. A
taskset that uses harnesses, tools or containers is refused: it needs verifiers' own runner, which
queries a model over HTTP and does not return exact tokens.
"""

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

import verifiers.v1 as vf
from annotated_types import Ge
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, UserMessage
from verifiers.v1.utils.generic import concrete_type
from verifiers.v1.utils.loaders import load_taskset, taskset_class

from coterie.datatypes import UserError
from coterie.datatypes.thinking import split_thinking
from coterie.envs.registry import EnvSpec
from coterie.extras.games.game import Game, GameSettings, game_spec
from coterie.extras.games.options import read_value

_PLAYER = "solver"
_MOST_TASKS = 10_000


@dataclass(frozen=True)
class VerifiersSettings(GameSettings):
    """Prompts and answers of a task."""

    max_new_tokens: Annotated[int, Ge(1)] = 1024
    """Longest answer."""
    stop: tuple[str, ...] = ()
    """Strings that end an answer."""
    ending: str = ""
    """Text between the prompt and the answer."""


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """The spec of ``verifiers:IDENTITY``; options are fields of the taskset's config."""
    return game_spec(name, lambda settings: Taskset(name, identity, options), VerifiersSettings)


class Taskset(Game):
    """A taskset, one task at a time; the seed selects the task."""

    players = (_PLAYER,)

    reads_thinking = True

    def __init__(self, name: str, identity: str, options: Mapping[str, str]) -> None:
        """
        Args:
            name: prefix of error messages.
            identity: the package that exports the taskset.
            options: fields of the taskset's config.

        Raises:
            UserError: the taskset needs more than one text answer.
        """
        kind = taskset_class(identity)
        config = concrete_type(kind, vf.TasksetConfig, origin=vf.Taskset) or vf.TasksetConfig
        taskset = load_taskset(
            config(id=identity, **{key: read_value(text) for key, text in options.items()})
        )
        self._tasks = list(islice(taskset, _MOST_TASKS))
        if not self._tasks:
            raise UserError(f"env {name!r}: the taskset has no tasks.")
        task = self._tasks[0]
        functions = [*task.hooks("reward"), *task.hooks("metric")]
        hooked = any(
            getattr(type(task), hook) is not getattr(vf.Task, hook)
            for hook in ("setup", "finalize")
        )
        needs = {
            "tools": kind.toolsets(taskset.config) or type(task).toolsets(task.config),
            "a container": hooked
            or any(task.data.image for task in self._tasks)
            or any("runtime" in inspect.signature(function).parameters for function in functions),
            "a prompt in text": not all(task.data.prompt_text for task in self._tasks),
        }
        for need, missing in needs.items():
            if missing:
                raise UserError(
                    f"env {name!r} needs {need}, which verifiers' own runner gives and this "
                    "adapter does not: it puts one prompt in text and scores one answer."
                )
        self._task, self._paid = task, None

    def reset(self, seed: int) -> None:
        self._task, self._paid = self._tasks[seed % len(self._tasks)], None

    def asks(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        if self._paid is not None:
            return {}
        parts = [self._task.data.system_prompt, self._task.data.prompt_text]
        return {_PLAYER: ("\n\n".join(filter(None, parts)), ())}

    def play(self, answer: str) -> bool:
        data = self._task.data
        thinking, reply = split_thinking(answer)
        said = AssistantMessage(content=reply or "", reasoning_content=thinking or None)
        trace = Trace(
            task=TraceTask(type=type(self._task).__name__, data=data),
            agent=AgentInfo(config=vf.AgentConfig()),
            nodes=[
                MessageNode(message=UserMessage(content=data.prompt_text)),
                MessageNode(message=said, parent=0, sampled=True),
            ],
        )
        # The caller may run inside an event loop, which cannot wait for another loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, self._task.score(trace)).result()
        self._paid = float(trace.reward)
        return True

    def rewards(self) -> Mapping[str, float]:
        return {_PLAYER: self._paid or 0.0}

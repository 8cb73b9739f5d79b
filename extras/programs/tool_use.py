"""One agent with a Python console: it writes lines of Python, reads their output, and answers.

| | |
|---|---|
| Creation | ``coterie.envs.make("coterie.extras.programs.tool_use:SPEC")`` |
| Actions | text; tokens in the token view |
| Parallel API | yes |
| Agents | ``solver_0`` |
| Action space | ``TextSpace``; ``TokenSpace`` in the token view |
| Observation space | ``Dict(text: TextSpace, active: Discrete(2))`` |

The output is appended to the agent's own turn. The agent did not sample these tokens, so they get
no loss. Reward: 1 for a right answer, less the cost of the calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from coterie.datatypes import Problem, ScoreRequests, Validated, refuse
from coterie.envs.conversation import ConversationEnv
from coterie.envs.env_spec import EnvSpec, never_rereads
from coterie.envs.turns import Answers, Ask, Conversation, Outcome, Turn
from coterie.extras.programs.console import begin, output_of
from coterie.extras.programs.sandbox import ProgramLimits
from coterie.rewards.grading.answers import after_thinking

_END = "\0"
"""Appended to a text: ``after_thinking`` removes it if the text ends inside a thought."""


@dataclass(frozen=True)
class ToolUseSettings(Validated):
    """The Python console of the agent."""

    prompt: str = (
        "{question}\n\nYou may run Python: what stands between <python> and </python> is run, and "
        "what it prints is shown to you. Put your final answer within \\boxed{}."
    )
    """The message; ``{question}`` stands for the problem."""
    opens: str = "<python>"
    """Starts a program; empty: a program starts after the last one, or with the answer."""
    closes: str = "</python>"
    """Ends a program and the turn; the program is then run."""
    program: str = "{}"
    """Program that is run; ``{}`` stands for the agent's text."""
    output: str = "\n<output>\n{}\n</output>\n"
    """Text that the agent reads; ``{}`` stands for the output, stripped."""
    calls: Annotated[int, Ge(1)] = 4
    """Most programs of an agent; after the last one its turn goes on without a console."""
    call_cost: float = 0.0
    """Penalty for each program."""
    output_characters: Annotated[int, Ge(1)] = 1000
    """Most characters of an output that are shown."""
    max_new_tokens: Annotated[int, Ge(1)] = 1024
    """Most tokens between two programs."""
    deadline_s: Annotated[float, Interval(gt=0, le=86_400)] = 5.0
    """Seconds for one program."""
    memory_mb: Annotated[int, Ge(64)] = 512
    """Memory of one program."""

    def check(self) -> None:
        refuse(
            ("{question}" not in self.prompt, "--env.prompt must say {question} somewhere"),
            ("{}" not in self.program, "--env.program must say {} where the program goes"),
            ("{}" not in self.output, "--env.output must say {} where the output goes"),
            (not self.closes, "--env.closes must not be empty"),
        )


class ToolUseEnv(ConversationEnv):
    """The text environment; ``envs.make`` wraps it in tokens."""

    title = "tool-use"
    metadata: dict[str, Any] = {**ConversationEnv.metadata, "name": "tool_use_v0"}  # noqa: RUF012
    settings_class = ToolUseSettings
    default_roles = ("solver",)

    def conversation(
        self, problem: Problem, options: Mapping[str, Any], random: np.random.Generator
    ) -> Conversation:
        (agent,), settings = self.possible_agents, self.settings
        written, calls, thoughts, errors = "", 0, 0, 0
        limits = ProgramLimits(settings.deadline_s, settings.memory_mb)
        ask = Ask(settings.prompt.replace("{question}", problem.question), stop=(settings.closes,))
        while True:

            def needed(
                answers: Answers, before: str = written, may_call: bool = calls < settings.calls
            ) -> ScoreRequests:
                text = answers.get(agent, "")
                if may_call and self._closes(text) and (source := self._program(before + text)):
                    # Programs of all conversations that are about to go on run side by side.
                    begin(source, limits, settings.output_characters)
                return ScoreRequests(((before + text, problem),))

            answers = yield Turn({agent: ask}, needed)
            text = answers.get(agent, "")
            written += text
            if not self._closes(text) or calls == settings.calls:
                break
            source = self._program(written)
            if source is None:
                # The agent is still thinking: let it go on, and run no program.
                thoughts += 1
                if thoughts > settings.calls:
                    break
                ask = Ask(piece="continuation", stop=(settings.closes,))
                continue
            calls += 1
            shown = output_of(source, limits, settings.output_characters).strip()
            errors += "Error" in shown.rsplit("\n", 1)[-1] or shown.startswith("killed")
            shown = settings.output.replace("{}", shown)
            written += shown
            last = calls == settings.calls
            ask = Ask(shown, "continuation", stop=() if last else (settings.closes,))
        verdict = self.scorer.check(written, problem)
        terms = {"correct": verdict.credit}
        if settings.call_cost:
            terms["calls"] = -settings.call_cost * calls
        measured = {"right": verdict.correct, "calls": calls, "errors": errors}
        return Outcome({agent: terms}, {agent: measured})

    def _closes(self, text: str) -> bool:
        """Whether a turn ends with a program, or inside of a thought as if with one."""
        return text.rstrip().endswith(self.settings.closes)

    def _program(self, written: str) -> str | None:
        """The program with which all text of the agent ends; None inside a thought."""
        said = after_thinking(f"{written}{_END}")
        if not said.endswith(_END):
            return None
        return self.settings.program.replace("{}", program_in(said, self.settings))


def program_in(written: str, settings: ToolUseSettings) -> str:
    """Return the program that ends with the last ``closes``."""
    head = written.rpartition(settings.closes)[0]
    return head.rpartition(settings.opens or settings.closes)[2].strip()


SPEC = EnvSpec(
    name="tool-use",
    version=0,
    factory="coterie.extras.programs.tool_use:ToolUseEnv",
    settings=ToolUseSettings,
    roles=ToolUseEnv.default_roles,
    rereads=never_rereads,
)

"""Talk to a role of a run: ``coterie chat runs/x --role alice``."""

import io
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import tyro
from annotated_types import Ge

from coterie.cli.commands import run_command
from coterie.cli.flags import parse_flags
from coterie.datatypes import PolicyFailure, UserError, Validated, user_path
from coterie.datatypes.validation import Seed
from coterie.datatypes.visible import visible


@dataclass(frozen=True)
class ChatSettings(Validated):
    """Talk to a role of a run in the terminal.

    It reads what you type in the environment's prompt and its model's chat template. An empty line
    or Ctrl-D ends, Ctrl-C stops an answer. Without a terminal every line of standard input is a
    question, and only the answers are printed.
    """

    run: Annotated[Path, tyro.conf.Positional]
    """The run's directory, such as runs/x."""
    role: str = ""
    """The role; default: the only one that the run trains."""
    step: Annotated[int | None, Ge(0)] = None
    """Take the weights of this step's checkpoint; default: the final ones, or those of the newest
    checkpoint."""
    temperature: Annotated[float | None, Ge(0)] = None
    """Sampling temperature; default: that of the run's evaluation. 0 is greedy."""
    max_new_tokens: Annotated[int | None, Ge(1)] = None
    """Longest answer in tokens; default: that of the run's evaluation."""
    seed: Seed | None = None
    """Seed of the answers; default: the run's."""
    device: str | None = None
    """cpu, cuda, cuda:1, ...; default: the run's device for the role."""


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the exit code: 0 the user left, 2 a user's mistake, 130 interrupted
    without a terminal."""
    return run_command(
        lambda: _chat(parse_flags(ChatSettings, argv, prog="coterie chat")),
        program="coterie chat",
        interrupted="stopped",
    )


def _chat(settings: ChatSettings) -> int:
    # Ctrl-C stops an answer only; this signal still ends the program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    on_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    partner, title = _open(settings)
    if on_terminal:
        print(f"{title}: an empty line or Ctrl-D ends, Ctrl-C stops an answer.")
        if not partner.converses:
            print("Its model has no chat template for several turns: each question stands alone.")
    for question in _questions() if on_terminal else _lines():
        _answer(partner, question, on_terminal=on_terminal)
    return 0


def _open(settings: ChatSettings) -> tuple[Any, str]:
    """(the role, its name with that of its weights)."""
    # These imports are slow, so mistakes in the command line are found before.
    from rich.console import Console

    from coterie.agents.team.model_specs import check_models, model_spec
    from coterie.cli.command_line import read_run
    from coterie.extras.ops.chat_role import ChatRole, find_role, kind_of_run, model_of
    from coterie.training.config.benchmark_defaults import are_tiny
    from coterie.training.run.directory import RunDirectory
    from coterie.training.run.stage_progress import loading

    run = RunDirectory.reopen(user_path(settings.run)).path
    stored = read_run(run)
    role = find_role(run, stored, settings.role)
    agent = model_of(run, stored.agents[role], role, settings.step)
    if settings.device is not None:
        agent = replace(agent, device=settings.device)
    check_models({role: agent})
    from coterie.agents.models.loading import load_team

    lines = not are_tiny([agent.model])
    with loading(Console(stderr=True), [agent.model], lines=lines):
        loaded = load_team({role: model_spec(agent)}, set(), seed=0)[role]
    given = {"temperature": settings.temperature, "max_new_tokens": settings.max_new_tokens}
    partner = ChatRole(
        role,
        stored,
        loaded,
        kind=kind_of_run(run),
        seed=stored.run.seed if settings.seed is None else settings.seed,
        overrides={name: value for name, value in given.items() if value is not None},
    )
    return partner, f"{role} ({agent.model})"


def _questions() -> Iterator[str]:
    """What the user types, until an empty line, Ctrl-D or Ctrl-C."""
    with suppress(ImportError):
        import_module("readline")  # input() then has the keys of an editor, and a history
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        if not line.strip():
            return
        yield line


def _lines() -> Iterator[str]:
    """The lines of standard input that are not empty."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    for line in sys.stdin:
        if question := line.strip():
            yield question


def _answer(partner: Any, question: str, *, on_terminal: bool) -> None:
    """Print the answer while it is sampled."""

    def show(piece: str) -> None:
        print(visible(piece), end="", flush=True)

    notes: list[str] = []
    try:
        notes = partner.answer(question, show)
    except PolicyFailure as failure:
        if not on_terminal:
            raise UserError(f"{failure}; ask for less") from None
        notes = [str(failure)]
    except KeyboardInterrupt:
        if not on_terminal:
            raise
        notes = ["stopped"]
    print(flush=True)
    for note in notes:
        print(f"({note})", file=sys.stdout if on_terminal else sys.stderr)

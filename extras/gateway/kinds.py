"""The environments ``harness:pkg.module:function`` and ``command:python my_agents.py``."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from coterie.cli.plugins import load
from coterie.datatypes import Scorer, TokenCodec, UserError, raised
from coterie.envs.env_spec import EnvSpec, never_rereads
from coterie.extras.gateway.command_program import read_command
from coterie.extras.gateway.environment import GatewayEnv
from coterie.extras.gateway.outcome import Played
from coterie.extras.gateway.programs import FunctionProgram, Program
from coterie.extras.gateway.settings import GatewaySettings
from coterie.problems.source import ProblemSource

_ROLES = ("alice",)


def spec(name: str, identity: str, options: Mapping[str, str]) -> EnvSpec:
    """Describe the environment ``name``.

    Args:
        name: the environment, as the user writes it.
        identity: what follows its first colon: a function or a command line.
        options: unused; a question mark belongs to ``identity``.

    Raises:
        UserError: there is no such function or command.
    """
    if name.startswith("command:"):
        program, roles = read_command(identity), _ROLES
    else:
        program, roles = _function(name, identity)

    def factory(
        settings: GatewaySettings = GatewaySettings(),  # noqa: B008 (frozen)
        roles: Sequence[str] = roles,
        scorer: Scorer | None = None,
        source: ProblemSource | None = None,
        tokenizers: Mapping[str, TokenCodec] | None = None,
        render_mode: str | None = None,
    ) -> GatewayEnv:
        return GatewayEnv(
            name,
            program,
            settings,
            turns=_turns(settings),
            roles=roles,
            scorer=scorer,
            source=source,
            tokenizers=tokenizers,
            render_mode=render_mode,
        )

    return EnvSpec(
        name,
        0,
        factory,
        GatewaySettings,
        roles,
        evaluation="coterie.extras.gateway.evaluation:EVALUATION",
        rereads=never_rereads,
        check=_check,
    )


def _function(name: str, path: str) -> tuple[Program, tuple[str, ...]]:
    """Load a function, and the roles in its attribute ``roles``."""
    title = f"env {name!r}"
    function = load(path, title)
    try:
        inspect.signature(function).bind(object(), object())
    except (TypeError, ValueError):
        raise UserError(
            f"{title} must be a function of two arguments, such as async def run(endpoints, "
            "problem)."
        ) from None
    roles = getattr(function, "roles", _ROLES)
    if isinstance(roles, str) or not all(isinstance(role, str) for role in roles) or not roles:
        raise UserError(f"{title}: its roles are {roles!r:.100}; they must be a tuple of names.")
    return FunctionProgram(function), tuple(roles)


def _turns(settings: GatewaySettings) -> Callable[[Played], bool] | None:
    """The function that chooses the trained turns, whose exceptions become one sentence."""
    if not settings.turns:
        return None
    function = load(settings.turns, "--env.turns")
    if not callable(function):
        raise UserError(
            f"--env.turns {settings.turns} is a {type(function).__name__}; name a function of one "
            "argument"
        )

    def chooses(played: Played) -> bool:
        try:
            return bool(function(played))
        except Exception as error:
            raise UserError(
                f"--env.turns {settings.turns} {raised(error)}; it must return whether a "
                "turn is learned"
            ) from error

    return chooses


def _check(settings: GatewaySettings, everything: Any) -> Iterable[tuple[bool, str]]:
    _turns(settings)
    yield (
        everything.rollout.max_prompt_tokens is not None,
        "--rollout.max-prompt-tokens needs prompts that are known before an episode is played: "
        "leave it out, as calls that exceed the role's context are refused",
    )

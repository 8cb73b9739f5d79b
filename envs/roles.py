"""Which role an agent plays."""

from collections.abc import Iterable


def role_of(agent: str) -> str:
    """What stands before the last underscore: ``alice`` for ``alice_0``; the whole name without
    one."""
    return agent.rpartition("_")[0] or agent


def roles_of(agents: Iterable[str]) -> tuple[str, ...]:
    """The roles of ``agents``, each once, in order of appearance."""
    return tuple(dict.fromkeys(role_of(agent) for agent in agents))

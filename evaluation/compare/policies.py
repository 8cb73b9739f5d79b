"""Competitors: parse ``NAME=WHAT`` into policies and teams that can be loaded and identified.

A policy plays one role; a team plays them all.
"""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from coterie.agents.models.locate import local_folder
from coterie.agents.models.spec import ModelSpec
from coterie.agents.team.model_specs import after_training, check_models, model_spec
from coterie.agents.team.settings import AgentSettings
from coterie.cli.arguments import command
from coterie.datatypes import UserError, user_path
from coterie.datatypes.errors import join_or
from coterie.experts.naming import is_player, pool_members

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,40}")
"""Valid names of suites and policies; they are used as file names."""

UNTRAINED = "untrained:"
"""Prefix of a run's directory that means the models before training."""

# Reserved: names of other rows in the same tables.
_RESERVED = ("vote", "agreement", "routing", "cascade", "verifier")


@dataclass(frozen=True)
class NamedPolicy:
    """One competitor."""

    name: str
    settings: AgentSettings
    """The settings that load it: those of its role in a run, or the defaults."""
    identity: Any
    """Identifies the source of its answers: the hash of its weights, or else its name."""
    run: Path | None = None
    """Directory of the run that trained it."""

    @property
    def model(self) -> str:
        """A folder, a hub id, ``tiny:NAME`` or a player."""
        return self.settings.model


def find_policy(
    name: str, what: str, role: str = "", frozen: AgentSettings | None = None
) -> NamedPolicy:
    """Resolve and check the policy that ``what`` names, without loading it.

    A run's directory means the policy that it trained for ``role`` (default: ``name``), or its only
    trained policy, read as the run read it; ``untrained:RUN`` means the model from which it trained
    that policy.

    Args:
        name: the policy's name in tables.
        what: a run, a model or a player.
        role: the role in a run.
        frozen: how a run reads the model or player ``what``, which is frozen there.

    Raises:
        UserError: a run that has not ended, a model that is not available, or a pool with a policy
            that its run reads in another way.
    """
    started_from: Path | None = None
    if what.startswith(UNTRAINED):
        frozen, started_from = _before_training(what, role or name)
        what = frozen.model
    settings = replace(frozen or AgentSettings(what), trained=False)
    run: Path | None = None
    if is_player(what):
        settings = replace(settings, model=_with_trained_members(what, role or name))
    else:
        model, run = _trained(what, role or name)
        settings = model or settings
    members = pool_members(settings.model)
    check_models({name: settings})
    identity: list[Any] = [
        m if is_player(m) else _identity(replace(settings, model=m)) for m in members
    ]
    if deciding := _deciding(settings):
        identity.append(deciding)
    return NamedPolicy(name, settings, identity, started_from or run)


def _with_trained_members(player: str, role: str) -> str:
    """A player in which the runs of a pool are the models that they trained for ``role``.

    Raises:
        UserError: a run has not ended, or asks its model in a way that a pool cannot.
    """
    members: list[str] = []
    for member in pool_members(player):
        model = None if is_player(member) else _trained(member, role)[0]
        if model and (own := _deciding(model).keys() - {"revision"}):
            raise UserError(
                f"{player}: {member} was trained with {_in_words(own)}, which other members do "
                "not have; name its model, RUN/final/ROLE, which is asked without"
            )
        members.append(model.model if model else member)
    return members[0] if len(members) == 1 else f"pool:{'|'.join(members)}"


@dataclass(frozen=True)
class NamedTeam:
    """Competitors who play together."""

    name: str
    players: Mapping[str, str]
    """Role -> its model or run; the key ``""`` stands for every other role."""
    frozen: bool = True
    """Whether a run's frozen roles keep their frozen models; if not, its trained policy plays."""

    @property
    def runs(self) -> list[Path]:
        """Paths of its players: runs or models."""
        named = [what for what in self.players.values() if not is_player(what)]
        return [user_path(what.removeprefix(UNTRAINED)) for what in named]

    def player(self, role: str) -> NamedPolicy | None:
        """The policy of ``role``, or None.

        Raises:
            UserError: a run that has not ended or does not know the role, or a model that is not
                available.
        """
        default = self.players.get("")
        what = self.players.get(role)
        frozen = _frozen(default, role) if default and self.frozen and not what else None
        what = what or (frozen.model if frozen else default)
        return find_policy(f"{self.name}.{role}", what, role, frozen) if what else None

    def lineup(self, roles: Sequence[str]) -> dict[str, tuple[NamedPolicy, ...]]:
        """Role -> its policy, without roles that have none."""
        players = {role: self.player(role) for role in roles}
        return {role: (player,) for role, player in players.items() if player}


def read_policies(texts: Sequence[str]) -> list[NamedPolicy]:
    """Parse policies from ``NAME=WHAT``.

    Raises:
        UserError: an invalid or repeated name, or a model that is not available.
    """
    policies = [find_policy(*_name_and_what("--policies", text)) for text in texts]
    if len({policy.name for policy in policies}) < len(policies):
        raise UserError("--policies: two policies have the same name")
    return policies


def read_teams(
    flag: str, texts: Sequence[str], taken: Sequence[str] = (), *, frozen: bool = True
) -> list[NamedTeam]:
    """Parse teams from ``NAME=RUN`` or ``RUN``.

    Args:
        flag: where the user wrote them.
        texts: one for each team.
        taken: names already in use.
        frozen: as of :class:`NamedTeam`.

    Raises:
        UserError: an invalid or repeated name.
    """
    # The default name is the last part of the path.
    named = [
        _name_and_what(
            flag,
            text if "=" in text else f"{re.split('[/:|]', text.rstrip('/:'))[-1]}={text}",
        )
        for text in texts
    ]
    names = [*taken, *(name for name, _ in named)]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{flag}: {repeated[0]} is there twice; write NAME=WHAT, each another name")
    return [NamedTeam(name, {"": what}, frozen=frozen) for name, what in named]


def read_team(texts: Sequence[str]) -> dict[str, str]:
    """Parse ``ROLE=WHAT`` into a mapping from role to model or run.

    Raises:
        UserError: another form, or a repeated role.
    """
    players: dict[str, str] = {}
    for text in texts:
        role, _, what = text.partition("=")
        if not role or not what:
            raise UserError(f"--team {text!r}: write ROLE=WHAT, such as caller=runs/x")
        if role in players:
            raise UserError(f"--team names {role} twice; name each role once")
        players[role] = what
    return players


def read_verifier(text: str, policies: Sequence[NamedPolicy]) -> NamedPolicy | None:
    """The verifier: a policy by name, or a new policy as ``NAME=WHAT``; None for an empty text.

    Raises:
        UserError: as for policies, or a new policy whose name is in use.
    """
    if not text:
        return None
    named = {policy.name: policy for policy in policies}
    if text in named:
        return named[text]
    if "=" not in text:
        raise UserError(f"--verifier {text!r}: name one of {', '.join(named)}, or write NAME=WHAT")
    verifier = find_policy(*_name_and_what("--verifier", text))
    if verifier.name in named:
        raise UserError(
            f"--verifier: {verifier.name} is a policy already; leave out ={verifier.model}"
        )
    return verifier


def _name_and_what(flag: str, text: str) -> tuple[str, str]:
    name, equals, what = text.partition("=")
    if not equals or not what or not NAME.fullmatch(name) or name in _RESERVED:
        raise UserError(
            f"{flag} {text}: expected NAME=WHAT. NAME may have letters, digits, dots and dashes, "
            f"and must not be {join_or(_RESERVED)}"
        )
    return name, what


# What decides about the answers of a model, and where it computes.
_DECIDING = ("system", "chat", "dtype", "context", "revision")
_READING = (*_DECIDING, "device", "trust_remote_code")


def models_of(run: Path) -> dict[str, AgentSettings]:
    """Role -> its model before training, and how the run reads it; empty without a readable
    run."""
    try:
        agents = json.loads((run / "config.json").read_text(encoding="utf-8"))["agents"]
        return {
            role: AgentSettings(
                str(agent.get("model", "")),
                trained=bool(agent["trained"]),
                **{name: agent[name] for name in _READING if name in agent},
            )
            for role, agent in agents.items()
        }
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _deciding(settings: AgentSettings) -> dict[str, Any]:
    """The settings that decide about answers and are not the default, by name."""
    usual = AgentSettings(settings.model)
    return {
        name: value
        for name in _DECIDING
        if (value := getattr(settings, name)) != getattr(usual, name)
    }


def _in_words(names: Collection[str]) -> str:
    """Settings of a role in a message."""
    words = {"system": "a system message"}
    return ", ".join(words.get(name, f"a {name} of its own") for name in sorted(names))


def _frozen(what: str, role: str) -> AgentSettings | None:
    """The model of ``role`` in the run ``what`` if it was frozen there."""
    model = None if is_player(what) else models_of(user_path(what)).get(role)
    return None if model is None or model.trained else model


def _before_training(what: str, role: str) -> tuple[AgentSettings, Path]:
    """(the model from which the run ``what`` trained ``role``, the run)."""
    run = user_path(what.removeprefix(UNTRAINED))
    models = models_of(run)
    if not models:
        raise UserError(f"{what}: {run} is not a run; name the directory of --run-dir")
    trained = [name for name, model in models.items() if model.trained]
    known = role if role in models else trained[0] if len(trained) == 1 else ""
    if not known:
        raise UserError(f"{what}: the run has no role {role}; its roles are {', '.join(models)}")
    return models[known], run


def _trained(what: str, role: str) -> tuple[AgentSettings | None, Path | None]:
    """(the model that the run ``what`` trained, the run); (None, None) for a model."""
    run = user_path(what)
    trained = sorted(path.name for path in run.glob("final/*") if path.is_dir())
    if trained:
        if role not in trained and len(trained) > 1:
            raise UserError(
                f"{what} trained {', '.join(trained)}: name one, such as {what}/final/{trained[0]}"
            )
        known = role if role in trained else trained[0]
        folder = run / "final" / known
        if before := models_of(run).get(known):
            return after_training(before, folder), run
        # A distillation has no settings of roles.
        return AgentSettings(str(folder), trained=False), run
    if (run / "checkpoints").is_dir():
        raise UserError(
            f"{what} is a run that has not ended: {command('train.py')} --resume {what}"
        )
    return None, None


def _identity(settings: AgentSettings) -> str:
    spec = model_spec(settings)
    base = local_folder(ModelSpec(spec.model))
    parts = [_fingerprint(base) if base else spec.model]
    if spec.lora is not None and spec.lora.adapter:
        parts.append(_fingerprint(user_path(spec.lora.adapter)))
    return "+".join(parts)


def _fingerprint(folder: Path) -> str:
    """SHA-256 of a model's weights, cached because files are large."""
    paths = sorted(folder.glob("*.safetensors"))
    return _digest(tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths))


@lru_cache
def _digest(files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, _, _ in files:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            while part := file.read(1 << 24):
                digest.update(part)
    return digest.hexdigest()


Prices = Mapping[str, tuple[float, float]]
"""Policy -> (price per million prompt tokens, price per million sampled tokens)."""


def team_of(policy: str) -> str:
    """The team of a policy called TEAM.ROLE; empty for a policy of no team.

    >>> team_of("qwen2.5.solver")
    'qwen2.5'
    """
    return policy.rpartition(".")[0]


def read_prices(texts: Sequence[str], policies: Sequence[str]) -> Prices:
    """Parse ``NAME=IN,OUT`` or a JSON file ``{"NAME": [IN, OUT]}``.

    Raises:
        UserError: another form, an unknown name, or prices for only some of the policies.
    """
    prices: dict[str, tuple[float, float]] = {}
    for text in texts:
        for named, pair in _priced(text):
            # A team's name stands for all its policies.
            of_team = [policy for policy in policies if team_of(policy) == named]
            if named not in policies and not of_team:
                raise UserError(f"--prices names {named}; the policies are {', '.join(policies)}")
            try:
                prompt, sampled = (float(price) for price in pair)
            except (ValueError, TypeError, OverflowError):
                raise UserError(f"--prices {text!r}: write NAME=IN,OUT, two numbers") from None
            if not (0 <= prompt < math.inf and 0 <= sampled < math.inf):
                raise UserError(f"--prices {text!r}: a price is a number from 0 on")
            prices |= dict.fromkeys([named] if named in policies else of_team, (prompt, sampled))
    if prices and (missing := [name for name in policies if name not in prices]):
        raise UserError(f"--prices lacks {', '.join(missing)}; what costs nothing has 0,0")
    return prices


def _priced(text: str) -> list[tuple[str, Any]]:
    name, equals, pair = text.partition("=")
    if equals:
        return [(name, pair.split(","))]
    try:
        content = json.loads(user_path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise UserError(
            f'--prices {text!r}: write NAME=IN,OUT, or name a JSON file {{"NAME": [IN, OUT]}}'
        )
    return list(content.items())

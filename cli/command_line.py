"""The command line of ``train.py``, parsed twice: first the choice, then its settings.

The types of ``--env.*``, ``--algo.*`` and ``--agents.ROLE.*`` depend on the choice, so the class
that tyro parses into is made here.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import tyro
from annotated_types import Ge

from coterie import algorithms, envs
from coterie.agents.team.settings import AgentSettings
from coterie.cli.arguments import Arguments, command, flag_of, flags_in, program, value_of
from coterie.cli.config_file import as_toml, read_config
from coterie.cli.extras import ENVIRONMENT_KINDS
from coterie.cli.flags import parse_flags
from coterie.cli.help_text import ALL, show_help, wants_help
from coterie.datatypes import UserError, unvalidated, user_path
from coterie.envs import presets
from coterie.envs.preset import Preset
from coterie.training.config.model_defaults import (
    Values,
    as_flag,
    defaults_notice,
    fitted,
    role_rates,
    with_penalty_at_limit,
    with_short_evaluation,
)
from coterie.training.config.presets import lay_over, settings_of
from coterie.training.config.role_learning import split, with_role_learning
from coterie.training.config.run_settings import RunSettings
from coterie.training.config.serialize import flat, to_plain
from coterie.training.config.train_settings import (
    Choice,
    TrainSettings,
    defaults,
    restore,
    with_limit_as_length,
)
from coterie.training.hosts import load_host
from coterie.training.run.checkpoint_paths import latest, position_of

DEFAULT_ENV = envs.registered()[0].name
DEFAULT_ALGO = "gspo"
_OF_ONE_ROLE = ("algo.", "learner.")
"""Sections of which each role may have its own."""


def parse(argv: Sequence[str]) -> TrainSettings:
    """Settings from a command line.

    Exits with 0 after ``--help``, ``--help-all`` and ``--print-config``, and if the run to resume
    has ended.

    Raises:
        UserError: an unknown environment, algorithm, preset, role or flag; a flag that is given
            twice, or a value of the wrong type; a run that cannot be resumed.
    """
    choices, rest = choose(argv)
    if not choices and {"-h", "--help"} & set(rest):
        print(overview(envs.names(), algorithms.names(), sorted(presets.known())))
        sys.exit(0)
    if "resume" in choices:
        return _stored_settings(choices, rest)
    prints_config = bool(choices.pop("print_config", False))
    file = read_config(user_path(choices.pop("config"))) if "config" in choices else None
    choice, preset = _chosen({**file.choice, **choices} if file else choices)
    rest, role_flags = split(rest, choice.roles)

    def with_preset_and_file(default: TrainSettings) -> TrainSettings:
        default = lay_over(preset, default) if preset else default
        return file.lay_over(default) if file else default

    default = defaults(choice)
    # The models decide the defaults, so preset, file and flags are searched for models first.
    models = _with_model_flags(with_preset_and_file(default).agents, rest)
    default = fitted(default, models)
    before_flags = with_preset_and_file(default)
    settings = _from_flags(before_flags, rest)

    def is_set(name: str) -> bool:
        """Whether a flag, the preset or the file sets ``name``."""
        section, _, key = name.partition(".")
        return (
            as_flag(name) in flags_in(rest)
            or bool(preset and name in settings_of(preset, choice.algo))
            or bool(file and key in file.parts.get(section, {}))
        )

    if not (is_set("algo.overlong_limit") or is_set("algo.overlong_buffer")):
        settings = with_penalty_at_limit(settings)
    settings = with_role_learning(
        settings,
        rates={} if is_set("learner.lr") else role_rates(settings),
        stored=file.role_learning() if file else {},
        flags=role_flags,
        prog=_prog(choice),
    )
    settings = with_short_evaluation(with_limit_as_length(settings))
    if prints_config:
        _print_config(settings, default, rest)
        sys.exit(0)
    return settings


def _chosen(choices: Mapping[str, Any]) -> tuple[Choice, Preset | None]:
    """What flags and a file choose, with the defaults for the rest, and the preset."""
    env = choices.get("env", "")
    preset = presets.preset_called(choices["preset"], env) if "preset" in choices else None
    env = choices.get("env", preset.env if preset else DEFAULT_ENV)
    algo = choices.get("algo", preset.algo if preset else DEFAULT_ALGO)
    if preset and preset.env != env:
        raise UserError(
            f"preset {choices['preset']} is for --env {preset.env}, not for {env}; leave out one "
            "of the two, or name another"
        )
    roles = tuple(choices.get("roles") or envs.spec(env).roles)
    learners = tuple(choices.get("train_role", preset.train_role if preset else ()))
    return Choice(env, algo, roles, learners, choices.get("preset")), preset


def _print_config(settings: TrainSettings, default: TrainSettings, args: list[str]) -> None:
    """Print ``settings`` as a file, with a remark on the defaults for its models."""
    if others := [f"--{name}" for name in ("plan", "doctor") if getattr(settings.run, name)]:
        raise UserError(
            f"--print-config cannot be combined with {others[0]}; leave out one of the two"
        )
    if line := defaults_notice(settings, args):
        print(f"# {line}")
    print(as_toml(settings, default), end="")


def _with_model_flags(
    agents: Mapping[str, AgentSettings], args: list[str]
) -> dict[str, AgentSettings]:
    """``agents`` with the flags about their models; the full parser later refuses wrong flags."""
    given = flags_in(args)
    changed: dict[str, AgentSettings] = {}
    for role, agent in agents.items():
        at = flag_of(f"--agents.{role}.")
        values: dict[str, Any] = {
            name: value
            for name in ("model", "tuning", "revision")
            if (value := value_of(f"{at}{name}", args))
        }
        if {f"{at}trained", f"{at}no-trained"} & given:
            values["trained"] = f"{at}trained" in given
        if values.get("model", agent.model).strip():
            with suppress(UserError):
                changed[role] = dataclasses.replace(agent, **values)
    return changed


def _stored_settings(choices: dict[str, Any], rest: list[str]) -> TrainSettings:
    """The settings of the run to resume, with the flags that ``--resume`` allows."""
    if "--doctor" in rest:
        raise UserError(
            "--doctor checks a configuration, --resume continues a run; leave out one of the two"
        )
    directory = user_path(choices["resume"])
    others = [f"--{name.replace('_', '-')}" for name in choices if name != "resume"]
    if others:
        raise UserError(f"--resume continues a run as it was; leave out {' '.join(others)}")
    settings = read_run(directory)

    host = load_host(settings.run.engine)
    steps = Annotated[int, Ge(1), tyro.conf.arg(help="Training steps in all.")]
    flags = [("steps", steps, settings.run.steps), *host.resume_flags(settings)]
    kind = dataclasses.make_dataclass("Resume", flags)
    _check_may_change(rest, settings, to_plain(kind()), directory)
    more = parse_flags(
        kind,
        rest,
        prog=f"{command('train.py')} --resume {directory}",
        description="Continue a run exactly where its last checkpoint stands.",
    )
    _leave_if_ended(directory, more.steps)
    _check_ahead(directory, more.steps, settings.run.checkpoint_every)
    settings = host.with_flags(settings, more)
    return dataclasses.replace(
        settings,
        choice=dataclasses.replace(settings.choice, resume=directory),
        run=dataclasses.replace(settings.run, steps=more.steps, run_dir=directory),
    )


def _check_may_change(
    args: Sequence[str], settings: TrainSettings, changeable: Values, directory: Path
) -> None:
    """Refuse a flag of the stored settings that is not ``changeable`` when a run is resumed."""
    stored = list(flat(settings.plain()))
    for role in settings.agents:
        stored += [f"agents.{role}.{name}" for name in stored if name.startswith(_OF_ONE_ROLE)]
    known = {as_flag(name, on) for name in stored for on in (True, False)}
    known -= {as_flag(name, on) for name in flat(changeable) for on in (True, False)}
    if changed := [flag for flag in map(flag_of, args) if flag in known]:
        file = directory / "config.json"
        raise UserError(f"--resume cannot change {changed[0]}; edit {file}")


def read_run(directory: Path) -> TrainSettings:
    """The stored settings of the run in ``directory``.

    Raises:
        UserError: there is no run, or its settings cannot be read.
    """
    path = directory / "config.json"
    try:
        return restore(json.loads(path.read_text(encoding="utf-8")))
    except OSError:
        from coterie.training.run.directory import RunDirectory

        RunDirectory.reopen(directory)
        raise UserError(f"{path} cannot be read") from None
    except (UserError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} is damaged or of another version ({error})") from None


def _check_ahead(directory: Path, steps: int, checkpoint_every: int) -> None:
    """Refuse fewer steps than the run has done, and a restart that would overwrite results."""
    newest = latest(directory / "checkpoints")
    if newest is None:
        _check_unfinished(directory, checkpoint_every)
        return
    after_warmup, step = position_of(newest)
    if after_warmup and step > steps:
        raise UserError(f"{directory} is at step {step}; --steps must be at least that")


def _check_unfinished(directory: Path, checkpoint_every: int) -> None:
    """Refuse to restart a run that has trained models, a summary, or lost its checkpoints."""
    if any(map(os.path.lexists, (directory / "summary.json", directory / "final"))):
        models = ", ".join(sorted(map(str, (directory / "final").glob("*")))) or "they are gone"
        raise UserError(
            f"{directory} has ended and has no checkpoint left to continue from; its results stay "
            f"as they are: start a new run from its trained models ({models}) with "
            "--agents.ROLE.model and another --run-dir"
        )
    with suppress(OSError):
        steps = (directory / "metrics.jsonl").read_bytes().count(b"\n")
        # So many steps cannot have been before the first checkpoint.
        if steps > checkpoint_every:
            raise UserError(
                f"{directory} has logged {steps} steps and has no checkpoint left to continue "
                "from; restore its folder checkpoints, or start a new run with another --run-dir"
            )


def _leave_if_ended(directory: Path, steps: int) -> None:
    """Exit with 0 if a run has done all of its steps."""
    try:
        summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
        ended = summary["config"]["run"]["steps"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return
    if steps == ended:
        print(f"{directory} has ended; --steps above {steps} continues it")
        sys.exit(0)


def _from_flags(default: TrainSettings, args: list[str]) -> TrainSettings:
    """``default`` overridden by flags."""
    roles = default.choice.roles
    agents = {role: _with_required_model(default.agents[role]) for role in roles}
    agents_type = dataclasses.make_dataclass(
        "Agents", [(role, AgentSettings, agent) for role, agent in agents.items()], frozen=True
    )
    # An environment may have no settings.
    parts = {
        name: value
        for name, value in {**vars(default), "agents": agents_type()}.items()
        if name not in ("choice", "run") and value is not None
    }
    fields: list[Any] = [(name, type(value), value) for name, value in parts.items()]
    fields.append(("run", Annotated[RunSettings, tyro.conf.arg(name="")], default.run))
    prog = _prog(default.choice)
    if wants_help(args):
        show_help(
            fields,
            args,
            prog=prog,
            description=(
                f"Train {', '.join(roles)} in {default.choice.env} with {default.choice.algo}. "
                "Also: --roles A B ..., --train-role A ..., --preset NAME, --config FILE, "
                "--print-config, --resume RUN_DIR."
            ),
        )
    settings_type = dataclasses.make_dataclass("Settings", fields, frozen=True)
    parsed = parse_flags(settings_type, args, prog=prog, help_flag=ALL)
    values = {name: getattr(parsed, name) for name in (*parts, "run")}
    if parsed.run.run_dir is not None:
        values["run"] = dataclasses.replace(parsed.run, run_dir=user_path(parsed.run.run_dir))
    values["agents"] = {role: getattr(parsed.agents, role) for role in roles}
    return dataclasses.replace(default, **values)


def _prog(choice: Choice) -> str:
    return f"{command('train.py')} --env {choice.env} --algo {choice.algo}"


def _with_required_model(agent: AgentSettings) -> AgentSettings:
    """``agent``, whose flag for the model is required if it has no default."""
    with unvalidated():
        return agent if agent.model else dataclasses.replace(agent, model=tyro.MISSING)


def choose(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Split ``argv`` into the choices, such as ``--env``, and the words that are left to parse.

    Raises:
        UserError: a choice without a value, or one that is made twice.
    """
    parser = Arguments(prog=command("train.py"), add_help=False, allow_abbrev=False)
    parser.add_argument("--env")
    parser.add_argument("--algo")
    parser.add_argument("--roles", nargs="+")
    parser.add_argument("--train-role", nargs="+")
    parser.add_argument("--preset")
    parser.add_argument("--config")
    parser.add_argument("--print-config", action="store_true", default=None)
    parser.add_argument("--resume", type=Path)
    parser.add_argument("--evaluate", type=Path)
    choices, rest = parser.split(argv)
    return {key: value for key, value in vars(choices).items() if value is not None}, rest


def overview(envs: Sequence[str], algorithms: Sequence[str], presets: Sequence[str]) -> str:
    """The help text without a choice."""
    name = program("train.py")
    return f"""\
usage: {name} [--env ENV] [--algo ALGO] [--roles A B ...] [--train-role A ...]
       {" " * len(name)} [--preset NAME] [--config FILE] [settings]
       {name} --resume RUN_DIR [--steps N]
       {name} --evaluate RUN_DIR [--samples N] [--env ENV] [settings]

Train a team of language models. Without settings, the tiny team that ships
with the repository trains on this machine in a few minutes.

  --env ENV        the environment (default {DEFAULT_ENV}):
                   {_wrap(envs)},
                   pkg.module:Class, or KIND:NAME of these kinds:
                   {_wrap(list(ENVIRONMENT_KINDS))}
  --algo ALGO      the algorithm (default {DEFAULT_ALGO})
                   {_wrap(algorithms)}
  --roles A B ...  the roles (default: those of the environment)
  --train-role A   the roles that learn; all others are frozen
  --preset NAME    the settings of a paper
                   {_wrap(presets)}
  --config FILE    settings from a TOML or YAML file; flags win
  --print-config   print all settings as such a file, and do nothing else
  --resume DIR     continue a run exactly where its last checkpoint stands
  --evaluate DIR   evaluate the trained models of a run again, on other
                   problems or in another environment

The settings of one choice (--help-all shows all of them):
                   {command("train.py")} --env {DEFAULT_ENV} --algo {DEFAULT_ALGO} --help"""


def _wrap(names: Sequence[str]) -> str:
    lines = wrap(" ".join(names), 61, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * 19).join(lines)

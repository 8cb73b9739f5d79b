"""Settings that a comparison inherits from runs or a preset: prompts, token limits, sampling."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from coterie import envs
from coterie.cli.arguments import flags_in, positive
from coterie.cli.flags import parse_flags
from coterie.datatypes import UserError, join_or, unmet
from coterie.envs.presets import preset_called
from coterie.training.config.benchmark_defaults import are_tiny, defaults_notice
from coterie.training.config.presets import lay_over
from coterie.training.config.role_sampling import role_sampling
from coterie.training.config.serialize import flat, nested, override
from coterie.training.config.train_settings import Choice, TrainSettings, defaults, restore
from coterie.training.run.directory import RunDirectory

_LIMIT = "max_new_tokens"
# Prompt settings stay in their environment; token limits follow a model into any environment.
_PROMPTING = (
    "prompt_style",
    "stop",
    "prefill_confidence",
    "expert_max_new_tokens",
    "reply_tokens",
    "reply_thinking_tokens",
)


@dataclass(frozen=True)
class Inherited:
    """Evaluation settings of one run or of one paper's preset."""

    source: str
    """The run's directory or the preset's name."""
    env: str
    roles: tuple[str, ...]
    settings: Mapping[str, Any]
    """Environment settings by name."""
    limit: int | None
    """Token limit of an answer in evaluation."""
    temperature: float | None
    """Used in evaluation, like ``top_p``; None: its roles have different ones."""
    top_p: float | None
    checker: str
    """Checker of answers (``--scoring.checker``)."""


def inherited_settings(runs: Sequence[Path | None], preset_name: str) -> list[Inherited]:
    """The settings of these runs; a preset replaces them all.

    Raises:
        UserError: an unknown preset, or a run whose settings cannot be read.
    """
    if preset_name:
        return [_from_settings(f"preset {preset_name}", preset_settings(preset_name))]
    settings_of_runs = {run: run_settings(run) for run in runs if run is not None}
    # A trained folder without recorded settings adds nothing.
    return [
        _from_settings(str(run), settings) for run, settings in settings_of_runs.items() if settings
    ]


def preset_settings(name: str, env: str = "") -> TrainSettings:
    """The settings that ``train.py --preset`` starts with.

    Raises:
        UserError: an unknown preset, or one of no environment or of another than ``env``.
    """
    chosen = preset_called(name)
    if not chosen.env:
        raise UserError(f"preset {name} sets no environment, so it names nothing to compare")
    if env and chosen.env != env:
        raise UserError(f"preset {name} is for {chosen.env}, not for {env}")
    roles = tuple(envs.spec(chosen.env).roles)
    return lay_over(chosen, defaults(Choice(chosen.env, chosen.algo, roles, chosen.train_role)))


def preset_questions(name: str, typed_flags: Collection[str] = ()) -> dict[str, int]:
    """Numbers of questions and responses of a paper; nothing for the tiny team's presets.

    A test set is used whole, and a training set as far as it is held out.

    Args:
        name: name of the preset.
        typed_flags: flags of the command line; ``--questions`` overrides the numbers of all sets.
    """
    if preset_called(name).own:
        return {}
    paper = preset_settings(name)
    env = vars(paper.env) if paper.env else {}
    samples = env.get("eval_traces") or env.get("eval_samples")
    values = {"samples": samples} if samples else {}
    if "--questions" not in typed_flags:
        values |= {"questions": 0, "held_out": paper.problems.held_out or 0}
    return values


def preset_comparison(name: str) -> dict[str, Any]:
    """Settings of ``benchmark.py`` for the paper's comparison, by name."""
    return {path: setting.value for path, setting in preset_called(name).comparison.items()}


def preset_problems(name: str) -> tuple[str, ...]:
    """The sets of problems that a paper measures on."""
    paper = preset_settings(name)
    return preset_comparison(name).get("problems", paper.problems.evaluated)


def sampling(sources: Sequence[Inherited], typed_flags: Collection[str] = ()) -> dict[str, float]:
    """The ``temperature`` and ``top_p`` on which all sources agree.

    Args:
        sources: settings of runs or of a preset.
        typed_flags: flags of the command line; the sources may differ in these.

    Raises:
        UserError: the sources differ, or the roles of one source differ.
    """
    flags = {"temperature": "--temperature", "top_p": "--top-p"}
    for name, flag in flags.items():
        if mixed := [
            each for each in sources if getattr(each, name) is None and flag not in typed_flags
        ]:
            raise UserError(
                f"{mixed[0].source} samples its roles at different {name}; say which with {flag}"
            )
    return {
        name: getattr(sources[0], name)
        for name, flag in flags.items()
        if sources and _agreed(sources, name, attrgetter(name), typed_flags, flag)
    }


def checking(sources: Sequence[Inherited], typed_flags: Collection[str] = ()) -> dict[str, Any]:
    """The checker on which all sources agree, as the setting ``scoring``; nothing if a flag in
    ``typed_flags`` decides.

    Raises:
        UserError: the sources differ.
    """
    flag = "--scoring.checker"
    if not sources or not _agreed(sources, "checkers", attrgetter("checker"), typed_flags, flag):
        return {}
    return {"scoring": {"checker": sources[0].checker}}


def prompting(
    sources: Sequence[Inherited],
    env: str,
    typed_flags: Collection[str] = (),
    flag: Callable[[str], str] = lambda name: f"--{name.replace('_', '-')}",
    *,
    whole: bool = False,
) -> dict[str, Any]:
    """Settings of environment ``env`` that the sources determine.

    Prompt settings come only from sources of that environment; token limits come from the others
    if there is none.

    Args:
        sources: settings of runs or of a preset.
        env: name of the environment.
        typed_flags: flags of the command line; the sources may differ in these.
        flag: maps a setting's name to the flag that decides it.
        whole: take all settings of sources of that environment, not only the prompt settings.

    Raises:
        UserError: the sources differ.
    """
    same_env = [source for source in sources if source.env == env]
    limits = [source for source in same_env or sources if source.limit]
    values: dict[str, Any] = {}
    if limits and _agreed(limits, _LIMIT, lambda source: source.limit, typed_flags, flag(_LIMIT)):
        values |= {_LIMIT: limits[0].limit, "eval_max_new_tokens": limits[0].limit}
    known = dict.fromkeys(name for source in same_env for name in source.settings)
    for name in known if whole else [name for name in _PROMPTING if name in known]:
        if name not in values and _agreed(
            same_env,
            name,
            lambda source, name=name: source.settings.get(name),
            typed_flags,
            flag(name),
        ):
            values[name] = same_env[0].settings[name]
    return values


def roles_of_runs(sources: Sequence[Inherited], env: str) -> tuple[str, ...]:
    """The custom roles of the runs in ``env``; () if no run has any or runs differ in them."""
    roles = {source.roles for source in sources if source.env == env} - {envs.spec(env).roles}
    return roles.pop() if len(roles) == 1 else ()


def parse(kind: Any, argv: Sequence[str], prog: str) -> Any:
    """Parse flags into settings of class ``kind``.

    A flag overrides what ``kind.inherited`` takes from runs and presets, which overrides the
    defaults. ``kind.fitting`` gives the defaults for models that are not tiny, without a preset; a
    printed line names them.
    """
    parsed = parse_flags(kind, argv, prog=prog)
    typed_flags = {*map(positive, flags_in(argv))}
    values = parsed.inherited(typed_flags) if hasattr(parsed, "inherited") else {}
    if values:
        parsed = parse_flags(kind, argv, prog=prog, default=override(kind(), values))
    refuse_idle(parsed, typed_flags)
    by_size = hasattr(parsed, "fitting") and not getattr(parsed, "preset", "")
    if not by_size or are_tiny(parsed.models()):
        return parsed
    named = flat(values)
    fit = {
        name: value
        for name, value in parsed.fitting().items()
        if name not in named and f"--{name.replace('_', '-')}" not in typed_flags
    }
    if fit:
        print(defaults_notice(fit, parsed.models()), flush=True)
    return override(parsed, nested(fit))


def refuse_idle(settings: Any, typed_flags: Collection[str]) -> None:
    """Refuse typed flags that change nothing beside the other settings.

    Raises:
        UserError: one sentence that names both flags.
    """
    for name, needs in unmet(settings):
        section = f"--{name.replace('_', '-')}"
        idle = [flag for flag in typed_flags if flag == section or flag.startswith(f"{section}.")]
        if idle and getattr(settings, name) is not False:
            values = f" {join_or([*map(str, needs.values)])}" if needs.values else ""
            wanted = f"--{needs.other.replace('_', '-')}{values}"
            raise UserError(f"{min(idle)} changes nothing without {wanted}; leave it out")


def _agreed(
    sources: Sequence[Inherited],
    name: str,
    read: Callable[[Inherited], Any],
    typed_flags: Collection[str],
    flag: str,
) -> bool:
    """Check that all sources agree; False if a flag decides instead."""
    if flag in typed_flags:
        return False
    first, *others = sources
    for other in others:
        if read(other) != read(first):
            raise UserError(
                f"{first.source} and {other.source} were made for different {name}, "
                f"{read(first)!r} and {read(other)!r}; say which with {flag}"
            )
    return True


def run_settings(run: Path) -> TrainSettings | None:
    """The settings of a ``train.py`` run; None if ``run`` is not such a run."""
    if not (run / "config.json").is_file():
        return None
    config = RunDirectory.reopen(run).config()
    if "choice" not in config:
        return None
    try:
        return restore(config)
    except (UserError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{run / 'config.json'} does not say how {run} was asked ({error}); name "
            f"{run}/final/ROLE to ask it with the defaults"
        ) from None


def _from_settings(source: str, settings: TrainSettings) -> Inherited:
    env = settings.env
    roles = role_sampling(settings.rollout, settings.agents, settings.eval).values()
    temperatures, top_ps = {s.temperature for s in roles}, {s.top_p for s in roles}
    limit = getattr(env, "eval_max_new_tokens", 0) or getattr(env, _LIMIT, None)
    return Inherited(
        source,
        settings.choice.env,
        settings.choice.roles,
        {} if env is None else vars(env),
        limit,
        temperatures.pop() if len(temperatures) == 1 else None,
        top_ps.pop() if len(top_ps) == 1 else None,
        settings.scoring.checker,
    )

"""The tables of settings in the pages, written from the code: ``python docs/hooks/tables.py``.

A page says where a table stands, and what it shows::

    <!-- table: env core-teaching -->
    (written by this script)
    <!-- end of table -->

``tests/docs/test_tables.py`` holds the pages to the code.
"""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from coterie import algorithms, envs
from coterie.agents.models.papers import CONFIGS
from coterie.algorithms import Algorithm, LearnerSettings
from coterie.cli.command_line import DEFAULT_ALGO, DEFAULT_ENV, parse
from coterie.envs.core_teaching import presets as core
from coterie.envs.corea_deferral import presets as corea
from coterie.envs.eapo_consultation import presets as eapo
from coterie.envs.preset import Preset, Setting
from coterie.envs.presets import known, published
from coterie.envs.sd_e2 import presets as sd_e2
from coterie.experts.naming import is_player
from coterie.extras.ops.plan import GIB, Plan, plan
from coterie.extras.ops.plan_report import describe, tuning_of, why_not
from coterie.extras.papers.leap import LeapSettings
from coterie.training.config.presets import settings_of
from coterie.training.config.role_learning import FIELDS
from coterie.training.config.train_settings import Choice, defaults, with_limit_as_length
from coterie.training.run import directory

PAGES = Path(__file__).parents[1]
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.DOTALL)
# What makes an algorithm; its other settings are shown where they are not off.
_CORE = ("baseline", "scale", "ddof", "epsilon", "surrogate", "reduction")
_OF_SCALE = ("ddof", "epsilon")


def filled(page: str) -> str:
    """Return ``page`` with its tables written again from the code."""
    return TABLE.sub(lambda match: f"{match[1]}\n{table(*match[2].split())}\n\n{match[3]}", page)


def table(kind: str, *names: str) -> str:
    """Return a table as Markdown.

    Args:
        kind: what the table shows.
        names: words after the kind, such as a paper.
    """
    match kind, names:
        case "algorithm", (name,):
            run = defaults(Choice(DEFAULT_ENV, name, envs.spec(DEFAULT_ENV).roles))
            # As it is in any environment.
            own = dataclasses.replace(run, algo=algorithms.get(name))
            return _markdown(_HEAD, _flags("algo", _shown(with_limit_as_length(own).algo)))
        case "algorithms", ():
            return _comparison()
        case "algo-flags", ():
            return _markdown(_HEAD, _flags("algo", _fields(Algorithm())))
        case "learner", ():
            return _markdown(_HEAD, _flags("learner", _fields(LearnerSettings())))
        case "env", (name,):
            settings = defaults(Choice(name, "grpo", envs.spec(name).roles)).env
            return _markdown(_OF_A_RUN, _flags("env", _fields(settings)))
        case "settings", (section,):
            return _markdown(_OF_A_RUN, _settings_of(section))
        case "run-files", ():
            return _markdown(("file", ""), _files_of_run())
        case "leap", ():
            rows = [(f"`{name}`", *more) for name, *more in _fields(LeapSettings())]
            return _markdown(("setting", "default", ""), rows)
        case "plan", flags:
            return _plan(flags)
        case "compute", (card,):
            return _compute(float(card))
        case "presets", (paper,):
            return _presets(paper)
        case "preset-defaults", (paper,):
            return _markdown(("flag", "preset", "default", "stands in", "why"), _over(paper))
        case "preset-miniature", (name,):
            return _markdown(("flag", "paper", "here", "why"), _shrunk(name))
        case "preset-comparison", (paper,):
            rows = [
                (f"`--{path.replace('_', '-')}`", _in_full(setting.value), setting.source)
                for path, setting in _compared(paper).items()
            ]
            return _markdown(("flag of `benchmark.py`", "preset", "stands in"), rows)
        case "preset-departures", (paper,):
            return _markdown(("", "paper", "here", "why"), _departures(paper))
        case _:
            raise ValueError(f"no table is called {kind} {' '.join(names)}")


_HEAD = ("flag", "value", "")
_OF_A_RUN = ("flag", "with the tiny team", "")
_Row = tuple[str, str, str]


def _settings_of(section: str) -> list[_Row]:
    """Return the flags of a section of the settings."""
    run = defaults(Choice(DEFAULT_ENV, DEFAULT_ALGO, envs.spec(DEFAULT_ENV).roles))
    if section == "agents":
        agent = next(iter(run.agents.values()))
        names = [name for name in _all(type(agent)) if name not in FIELDS]
        return _flags("agents.ROLE", _fields(agent, names))
    settings = getattr(run, section)
    rows = _fields(settings)
    if section == "run":
        return [(f"`--{name}`", value, text) for name, value, text in rows]
    return _flags(section, rows)


def _files_of_run() -> list[tuple[str, str]]:
    """Return (file, what it holds) of a run's folder."""
    listed = re.findall(r"^ {8}(\S.*?) {2,}(.+)$", directory.__doc__ or "", re.MULTILINE)
    return [(f"`{name}`", text) for name, text in listed]


def _flags(part: str, rows: Iterable[_Row]) -> list[_Row]:
    return [(f"`--{part}.{name}`", value, text) for name, value, text in rows]


def _all(settings: type) -> list[str]:
    return [field.name for field in dataclasses.fields(settings)]


def _shown(algorithm: Algorithm) -> list[_Row]:
    default = Algorithm()
    core = [name for name in _CORE if algorithm.scale != "none" or name not in _OF_SCALE]
    further = [
        name
        for name in _all(Algorithm)
        if name not in _CORE and getattr(algorithm, name) != getattr(default, name)
    ]
    return _fields(algorithm, [*core, *further])


def _fields(settings: Any, names: Sequence[str] = ()) -> list[_Row]:
    """Return (name on the command line, value, help text) of these fields, by default of all, and
    of nested ones."""
    help_texts = field_docs(type(settings))
    rows = []
    for name in names or _all(type(settings)):
        value, flag = getattr(settings, name), name.replace("_", "-")
        if dataclasses.is_dataclass(value):
            rows += [(f"{flag}.{leaf}", shown, text) for leaf, shown, text in _fields(value)]
        else:
            rows.append((flag, _value(value), help_texts.get(name, "")))
    return rows


def field_docs(settings: type) -> dict[str, str]:
    """Return field -> the text under it in the class, on one line; ``--help`` shows it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts = {}
    for field, below in zip(body.body, body.body[1:]):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                texts[name] = " ".join(text.split())
    return texts


def _value(value: Any) -> str:
    """Format a value as it is typed on the command line."""
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:g}"
        case tuple():
            shown = [str(entry) if isinstance(entry, str) else f"{entry:g}" for entry in value]
            return " ".join(shown if len(shown) < 5 else [shown[0], "...", shown[-1]]) or "none"
        case None:
            return "none"
        case _:
            return str(value)


def _comparison() -> str:
    """Return the table of algorithms, one row each, with their parts."""
    rows = []
    for name in algorithms.names():
        a = algorithms.get(name)
        inside = ", ".join(
            f"{key.replace('_', '-')} {_value(v)}"
            for key, v in dataclasses.asdict(a.surrogate).items()
            if v is not None
        )
        # A paper's own wording is a section of its algorithm's page.
        parent = name.removesuffix("-paper").replace("+", "-plus")
        section = f"#{name}" if name.endswith("-paper") else ""
        rows.append(
            (
                f"[{name}](algorithms/{parent}.md{section})",
                f"{a.baseline}",
                a.scale,
                f"{type(a.surrogate).__name__}: {inside}",
                a.reduction,
            )
        )
    return _markdown(("", "baseline", "scale", "surrogate", "reduction"), rows)


PAPERS = {"core": core, "corea": corea, "eapo": eapo, "sd-e2": sd_e2}


def _of(paper: str) -> dict[str, Preset]:
    """Return name -> preset, of those with a paper's own settings and models."""
    return {name: preset for name, preset in PAPERS[paper].PRESETS.items() if not preset.own}


def _settings(paper: str) -> dict[str, list[Setting]]:
    """Return dotted name -> the setting in each preset of a paper, under the paper's algorithm."""
    settings_of_paper: dict[str, list[Setting]] = {}
    for preset in _of(paper).values():
        for path, setting in settings_of(preset, preset.algo).items():
            settings_of_paper.setdefault(path, []).append(setting)
    return settings_of_paper


def _default(preset: Preset, path: str) -> Any:
    """Return the value that a run has without the preset."""
    roles = envs.spec(preset.env).roles
    value: Any = defaults(Choice(preset.env, preset.algo, roles, preset.train_role))
    part, *names = path.split(".")
    value = next(iter(value.agents.values())) if part == "agents" else getattr(value, part)
    for name in names:
        value = getattr(value, name)
    return value


def _flag(path: str) -> str:
    part, name = path.replace("_", "-").split(".", 1)
    prefix = {"run": "", "agents": "agents.ROLE."}.get(part, f"{part}.")
    return f"`--{prefix}{name}`"


def _plan(flags: Sequence[str]) -> str:
    """Return what ``--plan`` prints for these flags."""
    settings = parse(["--plan", *flags])
    run_plan = plan(settings, settings.run.card)
    described = describe(settings, run_plan)
    if not run_plan.fits:
        described += f"\n\n{textwrap.fill(why_not(settings, run_plan, settings.run.card), 80)}"
    command = f"python train.py --plan {' '.join(flags)}"
    lines = textwrap.wrap(command, 78, break_on_hyphens=False, break_long_words=False)
    shown = " \\\n    ".join(lines)
    return f"```console\n{shown}\n```\n\n```text\n{described}\n```"


def _compute(card: float) -> str:
    """Return the table of memory and hours; presets of the same size share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(published()):
        models = published()[name].models.values()
        if not all(model in CONFIGS or is_player(model) for model in models):
            continue  # Phi-3-small's code comes with its checkpoint.
        settings = parse(["--preset", name])
        run_plan = plan(settings, card)
        [device] = run_plan.devices
        fits = "yes" if device.fits else "no"
        took = (f"{device.most / GIB:.0f} GiB", fits, f"{run_plan.hours:,.0f} h")
        rows.setdefault((_sizes(run_plan), *took), []).append(f"`{name}`")
    head = ("presets", "models", "planned memory", f"on {card:g} GiB", "planned hours, at most")
    return _markdown(head, [(", ".join(names), *row) for row, names in rows.items()])


def _sizes(run_plan: Plan) -> str:
    return ", ".join(
        f"{role} {model.memory.parameters / 1e9:.1f}B {tuning_of(model)}"
        for role, model in run_plan.roles.items()
    )


def _varies(settings: Sequence[Setting]) -> bool:
    return any(setting.value != settings[0].value for setting in settings)


def _presets(paper: str) -> str:
    """Return the table of a paper's presets: models, and settings in which they differ."""
    presets, settings = _of(paper), _settings(paper)
    varying = [path for path, values_of_presets in settings.items() if _varies(values_of_presets)]
    first = next(iter(presets.values()))
    rows = [("without one", "", *(_value(_default(first, path)) for path in varying))]
    for place, (name, preset) in enumerate(presets.items()):
        models = [f"{role}: `{model}`" for role, model in preset.models.items()]
        learns = f" ({', '.join(preset.train_role)} learns)" if preset.train_role else ""
        values = (_value(settings[path][place].value) for path in varying)
        rows.append((f"`{name}`", ", ".join(models) + learns, *values))
    return _markdown(("preset", "models", *map(_flag, varying)), rows)


def _over(paper: str) -> list[tuple[str, ...]]:
    """Return rows of settings that all presets of a paper share and that differ from ours."""
    first = next(iter(_of(paper).values()))
    return [
        (
            _flag(path),
            _value(setting.value),
            _value(_default(first, path)),
            setting.source,
            setting.why,
        )
        for path, (setting, *others) in _settings(paper).items()
        if not _varies([setting, *others]) and setting.value != _default(first, path)
    ]


def _departures(paper: str) -> list[tuple[str, ...]]:
    """Return rows of the differences between a paper and its presets."""
    rows = []
    for path, settings in _settings(paper).items():
        if settings[0].paper:
            values = dict.fromkeys(_value(setting.value) for setting in settings)
            rows.append((_flag(path), settings[0].paper, ", ".join(values), settings[0].departs))
    rows += [
        (_flag_of_comparison(path), setting.paper, _value(setting.value), setting.departs)
        for path, setting in _compared(paper).items()
        if setting.paper
    ]
    return rows + [
        (departure.what, departure.paper, departure.here, departure.why)
        for departure in PAPERS[paper].DEPARTURES
    ]


def _compared(paper: str) -> dict[str, Setting]:
    """Return what a paper compares on and how."""
    return {
        path: setting
        for preset in PAPERS[paper].PRESETS.values()
        for path, setting in preset.comparison.items()
    }


def _in_full(value: Any) -> str:
    """A value of a comparison; several words are quoted."""
    if isinstance(value, tuple):
        return " ".join(f'"{word}"' if " " in word else word for word in value)
    return _value(value)


def _flag_of_comparison(name: str) -> str:
    return f"`benchmark.py --{name.replace('_', '-')}`"


def _shrunk(name: str) -> list[tuple[str, ...]]:
    """Return rows of what a miniature changes of its paper's preset."""
    small, full = known()[name], known()[known()[name].of]
    paper, ours = settings_of(full, full.algo), settings_of(small, small.algo)
    rows = [
        (_flag(path), _value(paper[path].value), _value(_default(small, path)), why)
        for path, why in small.at_default.items()
        if path in paper
    ]
    return rows + [
        (_flag(path), setting.paper, _value(setting.value), setting.departs)
        for path, setting in ours.items()
        if setting != paper.get(path)
    ]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    # A line break would end the row.
    return "\n".join(
        "| " + " | ".join(cell.replace("|", r"\|").replace("\n", "<br>") for cell in line) + " |"
        for line in lines
    )


def main() -> None:
    for path in sorted(PAGES.glob("**/*.md")):
        page = path.read_text(encoding="utf-8")
        if (new := filled(page)) != page:
            path.write_text(new, encoding="utf-8")
            print(path.relative_to(PAGES.parent))


if __name__ == "__main__":
    main()

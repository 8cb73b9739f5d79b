"""The page: a run as one HTML file that loads nothing else."""

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from coterie.datatypes import UserError
from coterie.datatypes.visible import visible
from coterie.evaluation.evaluation import Bars, Evaluation, Picture
from coterie.evaluation.report.chart import HEIGHT, WIDTH, Chart, chart
from coterie.evaluation.report.curves import Curves, Panel, curves, held_out, tag_panel
from coterie.evaluation.report.decode import RoleTokenizers
from coterie.evaluation.report.episode import (
    Shown,
    all_visible,
    script_json,
    shown_episode,
)
from coterie.evaluation.report.rundata import EPISODES, RunData, evaluation_for, result
from coterie.evaluation.report.scan import (
    FAILED,
    LogEntry,
    Scan,
    Which,
    choose,
    records,
    scan,
    space_evenly,
)
from coterie.evaluation.report_labels import ReportLabels

_HERE = Path(__file__).parent


def page(
    run: RunData,
    *,
    episodes: int = 60,
    which: Which = "spaced",
    only: str | None = None,
    megabytes: float = 16.0,
) -> str:
    """The whole file as text, with at most ``episodes`` that have the tag ``only``; fewer, if they
    are longer than ``megabytes`` together."""
    notes = list(run.missing)
    roles = [str(role) for role in run.setting("choice", "roles", default=[])]
    evaluation = evaluation_for(run)
    labels = evaluation.labels if evaluation else ReportLabels()
    tagged = (*labels.tags, FAILED)
    tags = [tag.name for tag in tagged]
    log = scan(run.path / EPISODES, tagged)
    entries = log.entries if log else []
    if only is not None and only not in tags:
        raise UserError(f"--only {only}: episodes of this run can be {', '.join(tags)}")
    chosen = choose(entries, episodes, which, only)
    shown = _episodes(run, log, chosen, megabytes, notes, labels)
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    headline = evaluation.headline(roles) if evaluation else []
    first = {*headline, *(f"learner/{role}/entropy" for role in roles)}
    learning = curves(run.metrics, roles, first)
    charts = _charts(
        learning, tag_panel(entries, tags), held_out(run.evaluations, roles), roles, tags
    )
    drawn = [panel.data for _, panels in charts for panel in panels]
    table = result(run, evaluation, roles)
    return _template().render(
        run=run,
        title=run.path.resolve().name,
        written=time.strftime("%Y-%m-%d %H:%M"),
        headline=_headline(run, roles),
        notes=notes,
        lines=table,
        warmed=any(line.warmed_up for line in table),
        pictures=_pictures(run, evaluation),
        charts=charts,
        steps=len(run.metrics),
        stretch=max([panel.stretch for panel in learning.main], default=1),
        constant=learning.constant,
        settings=_flat(run.config),
        places=_places(run),
        counts=[
            (
                tag.name,
                tag.meaning,
                sum(tag.name in episode["tags"] for episode in shown),
                sum(tag.name in entry.tags for entry in entries),
            )
            for tag in tagged
        ],
        total=len(entries),
        here=len(shown),
        selection=_choice_in_words(which, only),
        data=Markup(
            script_json(all_visible({"roles": roles, "charts": drawn}) | {"episodes": shown})
        ),
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        size=(WIDTH, HEIGHT),
        is_bars=lambda picture: isinstance(picture, Bars),
    )


def _episodes(
    run: RunData,
    log: Scan | None,
    chosen: list[LogEntry],
    megabytes: float,
    notes: list[str],
    labels: ReportLabels,
) -> list[Shown]:
    """The chosen episodes, as many as fit; adds to ``notes`` what is left out."""
    if log is None or not log.entries:
        what = "is not there" if log is None else "is empty"
        notes.append(f"No episode can be read here: {EPISODES} {what}.")
        return []
    if log.unreadable:
        notes.append(f"{log.unreadable} lines of {EPISODES} hold no episode that can be read.")
    decoder = RoleTokenizers(run.path, run.setting("agents", default={}))
    lines = records(run.path / EPISODES, chosen)
    shown = [
        shown_episode(record, decoder, labels, entry.tags)
        for record, entry in zip(lines, chosen, strict=True)
    ]
    room = int(megabytes * 2**20)
    size = sum(len(script_json(episode).encode()) for episode in shown)
    if size > room:
        count = len(shown)
        shown = _fitting(shown, room)
        notes.append(
            f"Episodes are long: only {len(shown)} of {count} fit into {megabytes:g} MiB "
            "(--megabytes)."
        )
    if decoder.missing:
        notes.append(
            f"The tokenizer of {', '.join(sorted(decoder.missing))} is not on this machine: its "
            "traces are shown as text, without the probabilities of tokens."
        )
    return shown


def _fitting(shown: list[Shown], room: int) -> list[Shown]:
    """The largest number of evenly spaced episodes that fit into ``room`` bytes."""
    count = len(shown)
    while count:
        kept = space_evenly(shown, count)
        size = sum(len(script_json(episode).encode()) for episode in kept)
        if size <= room:
            return kept
        count = min(count - 1, int(count * room / size))
    return []


def _charts(
    learning: Curves,
    tagged: Panel | None,
    held_out_panels: list[Panel],
    roles: list[str],
    tags: Sequence[str],
) -> list[tuple[str, list[Chart]]]:
    """(heading, charts); the first heading is empty and its charts are always open."""
    main = [chart(panel, roles) for panel in (*held_out_panels[:1], *learning.main)]
    if tagged is not None:
        main.append(chart(tagged, tags))
    more = [
        (name, [chart(panel, roles) for panel in panels]) for name, panels in learning.more.items()
    ]
    return [("", main), ("held out", [chart(panel, roles) for panel in held_out_panels[1:]]), *more]


def _pictures(run: RunData, evaluation: Evaluation | None) -> list[Picture]:
    if evaluation is None or not run.outcomes:
        return []
    try:
        return evaluation.pictures(run.outcomes)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, StopIteration):
        # The outcomes are from another version of the evaluation.
        return []


def _player(run: RunData, role: str) -> str:
    """A role's model, with its algorithm and learning rate where they are not the team's."""
    facts = [str(run.setting("agents", role, "model", default="?"))]
    if name := run.setting("agents", role, "algorithm"):
        facts.append(str(name))
    rate = run.setting("agents", role, "learner", "lr")
    if rate not in (None, run.setting("learner", "lr")):
        facts.append(f"learning rate {rate}")
    return ", ".join(facts)


def _headline(run: RunData, roles: list[str]) -> list[tuple[str, str]]:
    summary = run.summary or {}
    done = run.metrics[-1]["step"] if run.metrics else 0
    facts = {
        "environment": run.setting("choice", "env", default="unknown"),
        "algorithm": run.setting("choice", "algo", default="unknown"),
        "roles": ", ".join(f"{role} ({_player(run, role)})" for role in roles),
        "steps": f"{done} of {run.setting('run', 'steps', default='?')}",
        "seed": str(run.setting("run", "seed", default="?")),
        "begun": str(run.begun.get("at", "")),
        "commit": str(run.begun.get("commit", "")),
    }
    if isinstance(tokens := summary.get("sampled_tokens"), int):
        facts["sampled tokens"] = f"{tokens:,}"
    if isinstance(dropped := summary.get("dropped_prompts"), int) and dropped:
        facts["prompts left out"] = f"{dropped:,} longer than the limit"
    if isinstance(seconds := summary.get("wall_s"), int | float):
        facts["time"] = f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"
    return [(name, value) for name, value in facts.items() if value]


def _places(run: RunData) -> list[list[str]]:
    """The processes of a cluster: a heading, and a row for each process."""
    rows = (run.summary or {}).get("places")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return []
    return [[str(cell) for cell in row] for row in (*rows[:1], *map(dict.values, rows))]


def _choice_in_words(which: Which, only: str | None) -> str:
    words = {"spaced": "evenly spaced over the run", "first": "the first", "last": "the last"}
    return words[which] + (f" among those with the tag {only}" if only else "")


def _flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Settings by the names of the command line."""
    pairs: list[tuple[str, str]] = []
    for name, value in config.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            pairs += _flat(value, f"{path}.")
        else:
            text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            pairs.append((path, text))
    return pairs


def _policy(style: str, script: str) -> str:
    """A content security policy for our own style and script only, in case escaping fails."""
    style_hash, script_hash = (
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for text in (style, script)
    )
    return f"default-src 'none'; style-src {style_hash}; script-src {script_hash}; img-src data:"


def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Escaping is automatic; hidden characters are written out here.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    return environment.get_template("page.html.jinja")

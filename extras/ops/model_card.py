"""The model card of trained models on the hub: what they are, their results, their training."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coterie.agents.models.checksums import NAME as SUMS
from coterie.datatypes import user_path
from coterie.evaluation.evaluation import Evaluation
from coterie.evaluation.report.rundata import RunData, evaluation_for, result
from coterie.evaluation.run_table import HEADINGS

_SHIPPED = "apache-2.0"
"""Licence of the tiny models that ship with the repository."""
_TINY = "tiny:"


def model_card(
    run: RunData,
    repo: str,
    folders: Mapping[str, str],
    *,
    adapters: Mapping[str, str],
    environment: Mapping[str, Any],
    licence: str | None,
) -> str:
    """The text of a README.md with the hub's front matter.

    Args:
        run: data of a finished run.
        repo: ``ORG/NAME``.
        folders: role -> its folder in the repository; empty for the root.
        adapters: role whose model is a LoRA adapter -> the model that it belongs to.
        environment: the run's record of its packages and problems.
        licence: the hub's licence identifier. Default: tiny models have the licence of this
            repository, others that of their base models.
    """
    choice = run.config["choice"]
    trained_from = {role: str(run.config["agents"][role]["model"]) for role in folders}
    origins = {**trained_from, **adapters}
    bases = {role: name_of(origin) for role, origin in origins.items()}
    on_hub = [base for role, base in bases.items() if is_on_hub(origins[role])]
    if licence is None and all(base.startswith(_TINY) for base in bases.values()):
        licence = _SHIPPED
    facts = {
        "library_name": "peft" if adapters.keys() == folders.keys() else "transformers",
        "license": licence,
        "base_model": list(dict.fromkeys(on_hub)),
        "tags": ["coterie", "reinforcement-learning", "multi-agent", choice["env"]],
    }
    front = "\n".join(f"{name}: {json.dumps(fact)}" for name, fact in facts.items() if fact)
    models = [
        (
            f"`{role}`",
            f"`{folder or '.'}`",
            _kind(run.config["agents"][role], adapter=role in adapters),
            f"`{bases[role]}`",
        )
        for role, folder in folders.items()
    ]
    taught = {role: own for role in folders if (own := _teacher(run, role))}
    return f"""\
---
{front}
---

# {repo.partition("/")[2]}

Trained with Coterie, in the environment `{choice["env"]}` with `{choice["algo"]}`.

{_table(("role", "folder", "what it is", "trained from"), models)}

{_lessons(taught)}## Result

Before training, after it, and the change, on held-out problems with 95 % intervals.

{_table(HEADINGS, _result(run, evaluation_for(run)))}

## Use

```python
{_use(repo, folders, adapters)}
```

{_systems(run, folders)}`{SUMS}` beside the weights has their checksums.

## How they were trained

{_table(("", ""), _origin(run, environment))}

All settings are in `run/config.json`, all results in `run/summary.json`.

## Licence

{_licence(licence, bases)}{_terms(taught)}
The problems that they learned from, `{", ".join(_sets(run, "train"))}`, have their own terms.
"""


def _kind(agent: Mapping[str, Any], *, adapter: bool) -> str:
    if not adapter:
        return "whole model"
    bits = {"int8": " in 8 bits (int8)", "nf4": " in 4 bits (nf4)"}.get(str(agent.get("dtype")))
    return f"LoRA adapter, trained on a base{bits}" if bits else "LoRA adapter"


def _teacher(run: RunData, role: str) -> Mapping[str, Any]:
    """How ``role`` learned from a teacher; empty if it had none."""
    algorithm = run.config["agents"][role].get("algo") or run.config["algo"]
    distillation = algorithm.get("distillation", {})
    taught = distillation.get("teacher") and distillation.get("beta")
    return distillation if taught else {}


def _lessons(taught: Mapping[str, Mapping[str, Any]]) -> str:
    """A paragraph with the teacher of each role that had one."""
    lines = []
    for role, how in taught.items():
        commit = how.get("teacher_revision")
        named = f"`{name_of(how['teacher'])}`" + (f" at `{commit}`" if commit else "")
        besides = "" if how.get("rewards", True) else ", and from nothing else"
        lines.append(f"- `{role}` learned from the probabilities of {named}{besides}")
    begin = "Teachers (on-policy distillation, arXiv:2306.13649):\n\n"
    return f"{begin}{chr(10).join(lines)}\n\n" if lines else ""


def _terms(taught: Mapping[str, Mapping[str, Any]]) -> str:
    teachers = ", ".join(dict.fromkeys(f"`{name_of(how['teacher'])}`" for how in taught.values()))
    return f"\nTeachers have their own terms: {teachers}." if teachers else ""


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    shown = [list(headings), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    return "\n".join([lines[0], "|" + " --- |" * len(shown[0]), *lines[1:]])


def _result(run: RunData, evaluation: Evaluation | None) -> list[tuple[str, ...]]:
    roles = list(run.config["choice"]["roles"])
    return [
        (line.label, line.before, line.after, line.change)
        for line in result(run, evaluation, roles)
    ]


def _use(repo: str, folders: Mapping[str, str], adapters: Mapping[str, str]) -> str:
    """Python that loads every role's model and tokenizer."""
    imports = ["from transformers import AutoModelForCausalLM, AutoTokenizer"]
    if adapters:
        imports.insert(0, "from peft import PeftModel")
    if any(base.startswith(_TINY) for base in adapters.values()):
        imports.insert(0, "from coterie.agents.models.locate import TINY")
    lines: list[str] = []
    for role, folder in folders.items():
        where = f'"{repo}"' + (f', subfolder="{folder}"' if folder else "")
        lines += ["", f"{role}_tokenizer = AutoTokenizer.from_pretrained({where})"]
        if role in adapters:
            base, remark = _base(adapters[role])
            lines.append(f"{role}_base = AutoModelForCausalLM.from_pretrained({base}){remark}")
            lines.append(f"{role} = PeftModel.from_pretrained({role}_base, {where})")
        else:
            lines.append(f"{role} = AutoModelForCausalLM.from_pretrained({where})")
    return "\n".join([*imports, *lines])


def _systems(run: RunData, roles: Iterable[str]) -> str:
    """A paragraph with the system message of each role that had one in training."""
    agents = run.config["agents"]
    messages = {role: text for role in roles if (text := agents[role].get("system"))}
    lines = [
        f"- `{role}`: {json.dumps(text, ensure_ascii=False)}" for role, text in messages.items()
    ]
    begin = "Begin each conversation with the system message of training (a JSON string):\n\n"
    return f"{begin}{chr(10).join(lines)}\n\n" if lines else ""


def _base(model: str) -> tuple[str, str]:
    """(the argument that loads ``model``, a comment for the end of the line)."""
    if model.startswith(_TINY):
        return f'TINY / "{model.removeprefix(_TINY)}"', "  # ships with Coterie"
    if is_on_hub(model):
        return f'"{model}"', ""
    return (
        f'"PATH/{name_of(model)}"',
        "  # not on the hub: your copy of what it was trained from",
    )


def _origin(run: RunData, environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    packages = environment.get("packages") or {}
    prints = environment.get("problems") or {}
    summary = run.summary or {}
    rows = {
        "command": f"`{run.begun['command']}`" if run.begun.get("command") else "",
        "commit": run.begun.get("commit", ""),
        "began": run.begun.get("at", ""),
        "took": f"{summary.get('steps', 0)} steps, {summary.get('sampled_tokens', 0):,} sampled "
        f"tokens, {summary.get('wall_s', 0):,.0f} s",
        "seed": str(run.setting("run", "seed", default="")),
        "training problems": _problems("train", _sets(run, "train"), prints),
        "held-out problems": _problems("eval", _sets(run, "eval"), prints),
        "packages": ", ".join(f"{name} {version}" for name, version in packages.items()),
    }
    return [(name, text) for name, text in rows.items() if text]


def _sets(run: RunData, purpose: str) -> list[str]:
    """The sources of ``--problems.train`` or ``--problems.eval``."""
    named = run.setting("problems", purpose, default=[])
    return [named] if isinstance(named, str) else named


def _problems(purpose: str, sets: Sequence[str], prints: Mapping[str, str]) -> str:
    """The sets of a purpose with their checksums; several sets have one each."""
    start = f"{purpose} "
    own = {key.removeprefix(start): value for key, value in prints.items() if key.startswith(start)}
    if own:
        return "; ".join(_named(name, fingerprint) for name, fingerprint in own.items())
    return _named(", ".join(sets), prints.get(purpose))


def _named(name: str, fingerprint: str | None) -> str:
    named = f"`{name}`" if name else "of the same source"
    return f"{named}, SHA-256 `{fingerprint}`" if fingerprint else named


def _licence(licence: str | None, bases: Mapping[str, str]) -> str:
    if licence:
        return f"`{licence}`."
    come_from = ", ".join(dict.fromkeys(f"`{base}`" for base in bases.values()))
    return f"That of what the models were trained from ({come_from}); see there."


def is_on_hub(model: str) -> bool:
    """Whether ``model`` is a hub id, rather than a tiny model or something on this disk."""
    here = model.startswith((_TINY, ".", "/", "~")) or model.count("/") > 1
    return not here and not user_path(model).exists()


def name_of(model: str) -> str:
    """A model's name; for a file or folder, the last part of its path."""
    if model.startswith(_TINY) or is_on_hub(model):
        return model
    return model.rstrip("/").rpartition("/")[2]

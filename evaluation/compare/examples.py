"""Questions on which policies differ, with what each answered (table 7 of arXiv:2601.21600)."""

from collections.abc import Iterator, Sequence

from coterie.envs.contract import as_unicode
from coterie.evaluation.compare.responses import Responses
from coterie.evaluation.compare.suite_scores import Answered

_EACH = 3
"""Most questions of each group."""
_LONGEST = 160


def examples(answered: Sequence[Answered]) -> str:
    """Markdown with questions of every set, by their first answers: those that one policy alone
    answers rightly, and those that nobody does; empty with fewer than two policies."""
    return "\n".join(line for answers in answered for line in _of_set(answers))


def _of_set(answers: Answered) -> Iterator[str]:
    policies = {name: r for name, r in answers.alone.items() if r.has_answers and r.records}
    if len(policies) < 2:
        return
    yield from (f"# {answers.suite}, {_cell(answers.questions.name)}", "")
    right = {name: responses.correct_QN[:, 0] == 1 for name, responses in policies.items()}
    groups = {f"{name} alone is right": {name} for name in policies} | {"nobody is right": set()}
    for title, wanted in groups.items():
        chosen = [
            index
            for index in range(len(answers.questions.problems))
            if {name for name in policies if right[name][index]} == wanted
        ]
        if not chosen:
            continue
        yield from (f"## {_cell(title)}: {len(chosen)} questions", "")
        yield f"| question | right answer | {' | '.join(map(_cell, policies))} |"
        yield f"|{'---|' * (2 + len(policies))}"
        for index in chosen[:_EACH]:
            problem = answers.questions.problems[index]
            first_answers = [_first_answer(responses, index) for responses in policies.values()]
            cells = [problem.question, problem.gold, *first_answers]
            yield f"| {' | '.join(map(_cell, cells))} |"
        yield ""


def _first_answer(responses: Responses, question: int) -> str:
    record = responses.records[question][0]
    return "–" if record is None else str(record.get("answer") or "–")


def _cell(text: str) -> str:
    """Shorten text of a model or a data set to one line, with all Markdown escaped."""
    line = " ".join(as_unicode(text).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#!" else c for c in line)

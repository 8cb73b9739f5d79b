"""Reports the overlap of two sets: ``python -m coterie.problems.decontaminate TRAIN EVAL``.

It prints how many training problems share an id, a canonical form or consecutive words with
evaluation problems, and how many of them a run drops.
"""

import argparse
import sys
from collections.abc import Sequence

from coterie.datatypes import Problem, UserError
from coterie.problems.hub import known_overlap
from coterie.problems.opening import open_source
from coterie.problems.source import ProblemSource
from coterie.problems.split import WORDS_IN_A_ROW, Pair, same_form, same_id, shared_words

_SHOWN = 100


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit code: 0 done, 2 the user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m coterie.problems.decontaminate",
        description="What training problems share with evaluation problems.",
    )
    parser.add_argument("train", help="problems to train on, named as for --problems.train")
    parser.add_argument("eval", help="problems to measure with, named as for --problems.eval")
    parser.add_argument(
        "--examples", type=int, default=3, help="pairs shown of each kind (default %(default)s)"
    )
    arguments = parser.parse_args(argv)
    try:
        if arguments.examples < 0:
            raise UserError("--examples must not be negative")
        print(report(arguments.train, arguments.eval, examples=arguments.examples))
    except UserError as mistake:
        print(f"coterie.problems.decontaminate: {mistake}", file=sys.stderr)
        return 2
    return 0


def report(train: str, evaluation: str, *, examples: int) -> str:
    """Return the overlap of two sets as text.

    Args:
        train: training problems, named as for --problems.train.
        evaluation: evaluation problems, named as for --problems.eval.
        examples: number of example pairs of each kind.

    Raises:
        UserError: a set cannot be opened, or is an endless generator.
    """
    training = _problems(open_source(train, purpose="train"))
    measured = _problems(open_source(evaluation, purpose="eval"))
    shared = {
        "same id": same_id(training, measured),
        "same canonical form": same_form(training, measured),
        f"{WORDS_IN_A_ROW} words in a row": shared_words(training, measured),
    }
    lines = [f"{train} ({len(training)} problems) against {evaluation} ({len(measured)})", ""]
    for name, pairs in shared.items():
        lines.append(f"{name:<22}{len(pairs):>7} training problems")
        for pair in pairs[:examples]:
            lines += _example(pair, training, measured)
    known = known_overlap(train, evaluation)
    always = {i for i, _ in shared["same canonical form"]}
    every = {i for pairs in shared.values() for i, _ in pairs}
    verdict = f"drops {len(every)} from training."
    if not known:
        verdict = (
            f"drops {len(always)} from training; with --problems.decontaminate it drops "
            f"{len(every)}."
        )
    lines += ["", f"known: {known or 'nothing of these two'}", f"A run with both {verdict}"]
    return "\n".join(lines)


def _problems(source: ProblemSource) -> list[Problem]:
    if source.size is None:
        raise UserError(
            f"{source.name} is generated without end; name a file or a data set, or rely on its "
            "held-out problems, which training never meets"
        )
    return [source[i] for i in range(source.size)]


def _example(pair: Pair, training: Sequence[Problem], measured: Sequence[Problem]) -> list[str]:
    return [
        f"    {problem.id}: {' '.join(problem.question.split())[:_SHOWN]!r}"
        for problem in (training[pair[0]], measured[pair[1]])
    ]


if __name__ == "__main__":
    sys.exit(main())

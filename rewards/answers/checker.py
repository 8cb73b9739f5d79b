"""The chain that decides whether a response is right.

string -> exact rational -> choice or list -> math-verify in a process of its own -> False
(CoRe arXiv:2601.21600; math-verify 0.9 for what needs algebra).
"""

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from rewards.answers.caps import MAX_LENGTH, refuses
from rewards.answers.choice import choose, letter_of
from rewards.answers.equality import AtomRule, by_value, is_arithmetic, notation, same, same_words
from rewards.answers.extract import extract
from rewards.answers.normalise import key, plain, words
from rewards.answers.pool import Outcome, Pair, WorkerPool
from rewards.answers.rational import drop_units
from rewards.answers.structure import Shape, readings, shape
from rewards.overlap import exact_match
from vocabulary import Problem, UserError, Verdict

MAX_RAW = 16 * MAX_LENGTH
"""Characters of an answer as written, spaces and typesetting included; a longer one is refused."""
MAX_PAIRS = 1024
"""Pairs of parts that one answer may send to math-verify; more are refused."""
REMEMBERED = 1 << 16
"""Comparisons by math-verify that are kept."""

UNGRADED = {
    "code": "programs that models write are run only where --scoring.programs allows it",
    "judged": "a model has to grade its answers; name one with --scoring.judge, such as "
    "server:http://127.0.0.1:8000/v1?model=NAME",
}
"""Kind -> why it cannot be compared here, and the way out."""


@dataclass(frozen=True)
class _Open:
    """An answer that the short-cuts leave open."""

    answer: str
    problem: Problem
    gold_shapes: tuple[Shape, ...]
    answer_shapes: tuple[Shape, ...]
    pairs: tuple[Pair, ...]
    """What math-verify has to say before it is decided."""


class Checker:
    r"""Checks responses against gold answers; never raises for what a model wrote.

    Args:
        shortcuts: decide by string and exact rational where that is conclusive. Without them every
            comparison of kinds ``math``, ``number`` and ``list`` goes to math-verify.
        workers: processes for math-verify, started when one is needed.
        deadline_s: seconds for one comparison; then its process is killed and it counts as wrong.

    Example: ``Checker().check(r"... \boxed{0.5}", problem).correct``
    """

    def __init__(
        self, *, shortcuts: bool = True, workers: int = 1, deadline_s: float = 5.0
    ) -> None:
        self.shortcuts = shortcuts
        self.pool = WorkerPool(workers, deadline_s)
        self.methods: Counter[str] = Counter()
        """Verdicts by the rule that decided."""
        self._known: OrderedDict[Pair, Outcome] = OrderedDict()

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer."""
        return self.check_many([(response, problem)])[0]

    def check_many(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """As :meth:`check`, with every comparison for math-verify in one batch."""
        drafts = [self._draft(response, problem) for response, problem in requests]
        self._resolve([pair for d in drafts if isinstance(d, _Open) for pair in d.pairs])
        verdicts = [self._close(d) if isinstance(d, _Open) else d for d in drafts]
        self.methods.update(verdict.method for verdict in verdicts)
        return verdicts

    def close(self) -> None:
        """End the worker processes; they start again when they are needed."""
        self.pool.close()

    def _draft(self, response: str, problem: Problem) -> Verdict | _Open:
        """The verdict of every rule but math-verify's."""
        if problem.kind in ("code", "judged"):
            raise UserError(f"{problem.id}: {UNGRADED[problem.kind]}")
        if problem.kind == "choice":
            return _check_choice(response, problem)
        answer = extract(response)
        if answer is None:
            return Verdict(False, None, "none")
        if len(answer) > MAX_RAW:
            return Verdict(False, answer, "refused")
        if problem.kind == "qa":
            return Verdict(exact_match(answer, problem.gold), answer, "exact-match")
        if problem.kind == "text":
            equal = words(answer) == words(problem.gold)
            return Verdict(equal and bool(words(answer)), answer, "string")
        if not plain(answer):
            return Verdict(False, answer, "none")
        named = same_words(problem.gold, answer)
        if named is not None:
            return Verdict(named, answer, "string")
        if self.shortcuts:
            if key(answer, fold=False) == key(problem.gold, fold=False):
                return Verdict(True, answer, "string")
            if problem.kind == "number" and (verdict := _check_number(answer, problem)):
                return verdict
        return self._compare(answer, problem)

    def _compare(self, answer: str, problem: Problem) -> Verdict | _Open:
        """Take both sides apart; list what only math-verify can tell."""
        gold_shapes, answer_shapes = (
            (readings(problem.gold)[:1], readings(answer))
            if problem.kind == "list"
            else ((shape(problem.gold),), (shape(answer),))
        )
        pairs: dict[Pair, None] = {}

        def atom(gold: str, written: str) -> bool | None:
            verdict = self._atom(gold, written, problem)
            if verdict is None:
                pairs.update(dict.fromkeys(_spellings(gold, written, problem)))
            return verdict

        verdict = _any_equal(gold_shapes, answer_shapes, atom, problem)
        if verdict is not None:
            return Verdict(verdict, answer, _settled(gold_shapes[0], answer_shapes[0]))
        open_pairs = tuple(pair for pair in pairs if not any(map(refuses, pair)))
        if len(open_pairs) > MAX_PAIRS:
            return Verdict(False, answer, "refused")
        return _Open(answer, problem, gold_shapes, answer_shapes, open_pairs)

    def _atom(self, gold: str, answer: str, problem: Problem) -> bool | None:
        """One value against another, as far as it can be told without algebra."""
        verdict = notation(gold, answer)
        # math-verify knows no tolerance.
        if verdict is None and (self.shortcuts or problem.tolerance):
            verdict = by_value(gold, answer, percent=problem.percent, tolerance=problem.tolerance)
        return verdict

    def _resolve(self, pairs: Sequence[Pair]) -> None:
        """Ask math-verify about every pair that it has not been asked about."""
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        fresh = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        for pair, outcome in zip(fresh, self.pool.run(fresh), strict=True):
            self._known[pair] = outcome

    def _outcome(self, pair: Pair) -> Outcome:
        if pair not in self._known:
            # Parts were paired off otherwise than the short-cuts alone suggested.
            self._resolve([pair])
        return self._known[pair]

    def _close(self, draft: _Open) -> Verdict:
        """The verdict once math-verify has spoken."""
        seen: Counter[str] = Counter()

        def atom(gold: str, written: str) -> bool | None:
            verdict = self._atom(gold, written, draft.problem)
            if verdict is not None:
                return verdict
            pairs = _spellings(gold, written, draft.problem)
            outcomes = {
                "refused" if any(map(refuses, pair)) else self._outcome(pair) for pair in pairs
            }
            if "equal" in outcomes:
                return True
            # A gold answer that nothing can parse is compared as a string.
            if outcomes & {"unparsed", "refused"} and (
                key(gold, fold=False) == key(written, fold=False)
            ):
                seen["string"] += 1
                return True
            seen.update(outcomes - {"different"})
            return False

        correct = bool(_any_equal(draft.gold_shapes, draft.answer_shapes, atom, draft.problem))
        method = "math-verify"
        if not correct:
            method = next((m for m in ("timeout", "error", "refused") if seen[m]), method)
        if seen["string"] or (not correct and method == "math-verify" and seen["unparsed"]):
            method = "string"
        return Verdict(correct, draft.answer, method)


def _any_equal(
    golds: Sequence[Shape],
    answers: Sequence[Shape],
    atom: AtomRule,
    problem: Problem,
) -> bool | None:
    unordered = problem.kind == "list"
    verdicts = [
        same(gold, answer, atom, unordered=unordered) for gold in golds for answer in answers
    ]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _settled(gold: Shape, answer: Shape) -> str:
    """The name of the rule that settled a comparison without math-verify."""
    if not gold.is_value or not answer.is_value:
        return "list"
    alike = key(gold.text, fold=False) == key(answer.text, fold=False)
    return "string" if alike or notation(gold.text, answer.text) is not None else "rational"


def _spellings(gold: str, answer: str, problem: Problem) -> tuple[Pair, ...]:
    """The comparisons of which one must succeed; units and percent signs are dropped."""
    bare_gold, bare_answer = (drop_units(text).rstrip("% ") for text in (gold, answer))
    pairs = [(bare_gold, bare_answer)]
    if problem.percent and gold.endswith("%") != answer.endswith("%"):
        pairs.append(
            (rf"\frac{{{bare_gold}}}{{100}}", bare_answer)
            if gold.endswith("%")
            else (bare_gold, rf"\frac{{{bare_answer}}}{{100}}")
        )
    return tuple(pairs)


def _check_number(answer: str, problem: Problem) -> Verdict | None:
    """Exact values decide both ways, and prose is no number; None for what has to be worked out."""
    gold, answered = plain(problem.gold), plain(answer)
    equal = by_value(gold, answered, percent=problem.percent, tolerance=problem.tolerance)
    # "3 + 4" is no answer to "3 + 4 =".
    asked = key(answer, fold=False) in key(problem.question, fold=False)
    if equal is None and is_arithmetic(gold, answered) and not asked:
        return None
    return Verdict(equal is True, answer, "rational")


def _check_choice(response: str, problem: Problem) -> Verdict:
    written, letter = choose(response, problem.choices)
    if written is None:
        return Verdict(False, None, "none")
    gold = letter_of(problem.gold, problem.choices)
    return Verdict(letter is not None and letter == gold, written, "choice")

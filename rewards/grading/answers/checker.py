"""The chain that decides whether a response is right.

string -> exact value -> choice or list -> algebra in a process of its own -> False
(CoRe, arXiv:2601.21600, appendix A).
"""

import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from coterie.datatypes import Problem, UserError, Verdict
from coterie.rewards.grading.answers.bold import name_in_statement
from coterie.rewards.grading.answers.caps import MAX_LENGTH, MAX_QUESTION, refuses
from coterie.rewards.grading.answers.choice import LETTERS, choose, letter_of, listed_options
from coterie.rewards.grading.answers.dates import same_date
from coterie.rewards.grading.answers.equality import (
    AtomRule,
    Pair,
    compare,
    in_question_order,
    order_counts,
    same,
    same_text,
    same_words,
)
from coterie.rewards.grading.answers.extract import Candidate, last_stated, visible
from coterie.rewards.grading.answers.normalise import (
    may_be_name,
    one_number,
    plain,
    without_emphasis,
    without_letter,
    words,
)
from coterie.rewards.grading.answers.pool import Outcome, WorkerPool
from coterie.rewards.grading.answers.sentences import (
    changes_value,
    said_of_subject,
    value_in_sentence,
    without_left_side,
)
from coterie.rewards.grading.answers.statements import denies
from coterie.rewards.grading.answers.structure import Shape, readings, shape
from coterie.rewards.grading.answers.unmarked import name_unmarked, named_in, value_unmarked
from coterie.rewards.grading.answers.values import exact, in_digits, value_of
from coterie.rewards.grading.answers.verbs import asking_sentence, words_of
from coterie.rewards.grading.answers.worked import (
    in_one_unit,
    stated_forms,
    with_constant,
    without_rounding,
    without_scope,
    without_working,
)
from coterie.rewards.overlap import exact_match

MAX_RAW = 16 * MAX_LENGTH
"""Characters of an answer as written, spaces and typesetting included; a longer one is refused."""
MAX_PAIRS = 1024
"""Pairs of parts that one answer may send to algebra; more are refused."""
REMEMBERED = 1 << 16
"""Size of the cache of comparisons by algebra."""

UNGRADED = {
    "code": "programs that models write are run only where --scoring.programs allows it",
    "judged": "a model has to grade its answers; name one with --scoring.judge, such as "
    "server:http://127.0.0.1:8000/v1?model=NAME",
}
"""Kind -> why it cannot be compared here, and the way out."""


_LARGE = re.compile(r"hundred|thousand", re.IGNORECASE)


class Checker:
    r"""Checks responses against gold answers; never raises for what a model wrote.

    Args:
        workers: processes for algebra, started when one is needed.
        deadline_s: seconds for one comparison; then its process is killed and it counts as wrong.

    Example: ``Checker().check(r"... \boxed{0.5}", problem).correct``
    """

    def __init__(self, *, workers: int = 1, deadline_s: float = 5.0) -> None:
        self.pool = WorkerPool(workers, deadline_s)
        self.methods: Counter[str] = Counter()
        """Verdicts by the rule that decided."""
        self._known: OrderedDict[Pair, Outcome] = OrderedDict()

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer."""
        return self.check_many([(response, problem)])[0]

    def check_many(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """Verdicts on many responses, in their order; algebra compares all pairs in one batch.

        Of several gold answers any is right.
        """
        drafts_of = [
            [
                (one, self._draft(response, one))
                for one in (replace(problem, gold=gold) for gold in problem.golds)
            ]
            for response, problem in requests
        ]
        verdicts: dict[int, Verdict] = {}
        while waiting := [index for index in range(len(requests)) if index not in verdicts]:
            wanted: dict[Pair, None] = {}
            for index in waiting:
                verdict = self._verdict(drafts_of[index], wanted)
                if verdict is not None:
                    verdicts[index] = verdict
            self._resolve(wanted)
        self.methods.update(verdict.method for verdict in verdicts.values())
        return [verdicts[index] for index in range(len(requests))]

    def close(self) -> None:
        """End the worker processes; they start again when they are needed."""
        self.pool.close()

    def _verdict(
        self, drafts: Sequence[tuple[Problem, Verdict | str]], wanted: dict[Pair, None]
    ) -> Verdict | None:
        """The verdict of the first reading that is right, or else of the first one; None where
        algebra has to compare more pairs first, which are then ``wanted``."""
        readings: list[Verdict | None] = []
        for problem, draft in drafts:
            if isinstance(draft, Verdict):
                readings.append(draft)
                continue
            # Every form of a value has to be right.
            ways = [] if "=" in problem.gold else stated_forms(draft, problem.question)
            readings += [
                _all_right([self._compare(form, problem, wanted) for form in forms])
                for forms in [[draft], *ways]
            ]
        for reading in readings:
            if reading is None or reading.correct:
                return reading
        return readings[0]

    def _draft(self, response: str, problem: Problem) -> Verdict | str:
        """The verdict of the rules for words and strings, or the answer that has to be compared."""
        if problem.kind in ("code", "judged"):
            raise UserError(f"{problem.id}: {UNGRADED[problem.kind]}")
        response = visible(response)
        choices = _choices(problem)
        if choices or problem.kind == "choice":
            return _check_choice(response, replace(problem, choices=choices))
        stated = last_stated(response, problem.question)
        if problem.kind in ("qa", "text") or may_be_name(problem.gold):
            found = (
                name_in_statement(stated.text, problem.question)
                if stated
                else name_unmarked(response, problem.question)
            )
        else:
            found = None if stated else value_unmarked(response, problem.question)
        if found:
            stated = Candidate(0, found)
        answer = (stated.value or None) if stated else None
        if stated is None or answer is None:
            # So a response that breaks off before its answer is wrong.
            return Verdict(False, None, "none")
        if len(answer) > MAX_RAW:
            return Verdict(False, answer, "refused")
        whole = stated.text
        if denies(whole, asking_sentence(problem.question)):
            answer = whole
        if problem.kind == "qa":
            equal = any(exact_match(text, problem.gold) for text in (whole, plain(whole)))
            return Verdict(equal, whole, "exact-match")
        if same_date(plain(problem.gold), plain(answer), problem.question[:MAX_QUESTION]):
            return Verdict(True, answer, "date")
        if problem.kind == "text":
            said = said_of_subject(whole, problem.question)
            equal = words(problem.gold) in (words(whole), words(answer), words(said))
            return Verdict(equal and bool(words(problem.gold)), answer, "string")
        if not plain(answer):
            return Verdict(False, answer, "none")
        if len(whole) <= MAX_RAW and same_text(problem.gold, whole):
            # The gold answer may have a remark as well: "f(x) = x + c, where c > 0".
            return Verdict(True, whole, "string")
        answer = _without_frame(answer, problem)
        named = same_words(problem.gold, answer, problem.question)
        if named is not None:
            return Verdict(named, answer, "string")
        if same_text(problem.gold, answer):
            return Verdict(True, answer, "string")
        return answer

    def _compare(self, answer: str, problem: Problem, wanted: dict[Pair, None]) -> Verdict | None:
        """Compare both sides part by part; None where algebra has not decided on a pair."""
        bare = without_emphasis(without_letter(answer)).strip(" *")
        # Read large numbers before lists are split at "and": "one hundred and twenty" is no list.
        written = in_digits(bare, words=_LARGE.search(bare) is not None)
        if problem.kind == "number":
            written = one_number(written)
        written = without_scope(written, problem.gold)
        written = with_constant(written, problem.gold, problem.question)
        written = in_one_unit(written, problem.question)
        if "=" not in problem.gold:
            written = without_working(written, problem.question)
        written = without_rounding(written, problem.gold)
        if problem.kind == "list":
            gold_shape, answer_shapes = readings(problem.gold)[0], readings(written)
        else:
            gold_shape, answer_shapes = shape(problem.gold), (shape(written),)
        pairs: dict[Pair, Outcome | None] = {}
        refused = False

        def atom(gold: Shape, part: Shape) -> bool | None:
            nonlocal refused
            verdict = compare(gold, part, problem)
            if isinstance(verdict, bool):
                refused |= not verdict and refuses(part.text)
                return verdict
            outcome = pairs.setdefault(verdict)
            return None if outcome is None else outcome == "equal"

        verdict = _any_equal(gold_shape, answer_shapes, atom, problem)
        if len(pairs) > MAX_PAIRS:
            return Verdict(False, answer, "refused")
        if verdict is not None:
            method = _settled(gold_shape, answer_shapes[0], problem)
            if refused and not verdict and problem.kind != "number":
                method = "refused"
            return Verdict(verdict, answer, method)
        while verdict is None:
            pairs |= {pair: self._known.get(pair) for pair in pairs}
            if None in pairs.values():
                wanted.update((pair, None) for pair, outcome in pairs.items() if outcome is None)
                return None
            verdict = _any_equal(gold_shape, answer_shapes, atom, problem)
        failed = next((each for each in ("timeout", "error") if each in pairs.values()), "algebra")
        return Verdict(verdict, answer, "algebra" if verdict else failed)

    def _resolve(self, wanted: Iterable[Pair]) -> None:
        """Let algebra compare pairs."""
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        fresh = list(wanted)
        self._known.update(zip(fresh, self.pool.run(fresh), strict=True))


def _all_right(verdicts: Sequence[Verdict | None]) -> Verdict | None:
    """The first verdict that is wrong, or else the first one; None while one is missing."""
    if None in verdicts:
        return None
    return next((each for each in verdicts if each and not each.correct), verdicts[0])


def _without_frame(answer: str, problem: Problem) -> str:
    """Strip the sentence or equation around an answer if the question asks for just that."""
    if may_be_name(problem.gold):
        said = said_of_subject(answer, problem.question) or named_in(answer, problem.question)
        return said or _without_kind(answer, problem)
    answer = _without_repeated_remark(answer, problem.question)
    value = value_of(plain(answer), problem.question)
    if value is None or value.literal is None:
        spoken = re.sub(r"\s*\\text\{([^{}]*)\}\s*", r" \1 ", answer)
        answer = value_in_sentence(" ".join(spoken.split()), problem.question) or answer
    if "=" in answer and "=" not in problem.gold:
        return without_left_side(answer, problem.question)
    return answer


def _without_kind(answer: str, problem: Problem) -> str:
    """``Amazon`` of ``Amazon River`` to "Which river?", where the gold answer is that."""
    name, _, kind = answer.strip(" .").rpartition(" ")
    repeated = kind.casefold() in words_of(problem.question)
    return name if name and repeated and words(name) == words(problem.gold) else answer


def _without_repeated_remark(answer: str, question: str) -> str:
    """An answer without a remark in parentheses that repeats the question: ``(in base ten)``."""
    value, opened, remark = answer.rstrip(" .").removesuffix(")").rpartition(" (")
    spoken = {*words_of(remark)}
    # "1 (two)", "3 (twice)" and "5 (or more)" may be other values, whatever the question says.
    other = changes_value({*words_of(re.sub(r"\bbase \w+", "", remark))})
    repeats = opened and spoken and not other and not re.search(r"[^A-Za-z -]", remark)
    known = {*words_of(question), "in", "of", "the", "a"}
    return value if repeats and spoken <= known else answer


def _any_equal(
    gold: Shape, answers: Sequence[Shape], atom: AtomRule, problem: Problem
) -> bool | None:
    listed = gold.ends == "," and not any(part.name for part in (gold, *gold.items))
    arranged = order_counts(gold, problem.question)
    verdicts: list[bool | None] = []
    for answer in answers:
        ordered = in_question_order(answer, problem.question) if listed else None
        verdicts.append(
            same(
                gold,
                ordered or answer,
                atom,
                unordered=problem.kind == "list",
                arranged=arranged or ordered is not None,
            )
        )
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _settled(gold: Shape, answer: Shape, problem: Problem) -> str:
    """The name of the rule that settled a comparison without algebra."""
    if problem.kind == "number":
        return "rational"
    if not gold.is_value or not answer.is_value:
        return "list"
    return "string" if exact(gold.text) is None else "rational"


def _choices(problem: Problem) -> tuple[str, ...]:
    """The problem's options, or those its question lists if the gold answer is a letter of them."""
    if problem.choices or problem.kind not in ("choice", "math"):
        return problem.choices
    letter = plain(problem.gold).strip("()")
    listed = listed_options(problem.question)
    return listed if letter in [*LETTERS[: len(listed)]] else ()


def _check_choice(response: str, problem: Problem) -> Verdict:
    written, letter = choose(response, problem.choices, problem.question)
    if written is None:
        return Verdict(False, None, "none")
    gold = letter_of(problem.gold, problem.choices)
    return Verdict(letter is not None and letter == gold, written, "choice")

"""The scorer that is injected into environments: memoised, batched, pure as seen from outside."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from coterie.datatypes import AnswerKind, Problem, ScoreRequests, Verdict
from coterie.rewards.grading.answers import Checker
from coterie.rewards.grading.embeddings import Encoder, make_encoder

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Grader(Protocol):
    """Judges responses to problems of one kind."""

    def __call__(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """One verdict per (response, problem), in their order."""
        ...


class _Memory(Generic[Key, Value]):
    """The most recently used values, at most ``limit`` of them."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        while len(self._values) > self.limit:
            self._values.popitem(last=False)


class AnswerScorer:
    """Implements :class:`coterie.datatypes.Scorer` with answer checking and an encoder.

    Args:
        encoder: how texts are embedded; a name (``hashed`` or ``minilm``) or an encoder.
        workers: processes for algebra; none is started before one is needed.
        deadline_s: seconds for one comparison by algebra.
        graders: kind -> the grader that replaces the comparison; kinds ``code`` and ``judged`` need
            one.
        remember_verdicts: size of the cache of verdicts.
        remember_vectors: size of the cache of vectors (1.5 KB each with MiniLM).

    Nothing heavy is imported and no process is started before a request needs it. Safe to call
    from several threads, which take turns. ``close()`` ends the processes; the interpreter's exit
    does so too.
    """

    def __init__(
        self,
        *,
        encoder: Encoder | str = "hashed",
        workers: int = 1,
        deadline_s: float = 5.0,
        graders: Mapping[AnswerKind, Grader] = MappingProxyType({}),
        remember_verdicts: int = 1 << 15,
        remember_vectors: int = 1 << 13,
    ) -> None:
        self.encoder = make_encoder(encoder) if isinstance(encoder, str) else encoder
        self._checker = Checker(workers=workers, deadline_s=deadline_s)
        self._graders = dict(graders)
        self._graded: Counter[str] = Counter()
        self._verdicts: _Memory[Hashable, Verdict] = _Memory(remember_verdicts)
        self._vectors: _Memory[str, npt.NDArray[np.float32]] = _Memory(remember_vectors)
        self._lock = threading.RLock()

    def check(self, response: str, problem: Problem) -> Verdict:
        """Extract the answer of ``response`` and compare it with the gold answer.

        A response that breaks off before it states an answer is wrong; ``Checker._draft`` decides.
        """
        return self._check([(response, problem)])[0]

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(n, D) unit vectors, one for each text."""
        with self._lock:
            vectors = {text: self._vectors.get(text) for text in texts}
            missing = [text for text, vector in vectors.items() if vector is None]
            if missing:
                for text, vector in zip(missing, self.encoder.encode(missing), strict=True):
                    vectors[text] = vector
                    self._vectors.put(text, vector)
        if not texts:
            return np.zeros((0, self.encoder.dimensions), dtype=np.float32)
        return np.stack([vector for text in texts if (vector := vectors[text]) is not None])

    def prefetch(self, requests: Sequence[ScoreRequests]) -> None:
        """Check every answer in one batch and embed every text in one batch. A judge that failed
        is asked again."""
        self._check([check for request in requests for check in request.checks], again=True)
        self.embed([text for request in requests for text in request.embeddings])

    def stats(self) -> dict[str, int]:
        """Counts since the start: ``checks/<method>`` by the rule that decided (each question
        once), and ``timeouts``, the processes killed at the deadline."""
        with self._lock:
            methods = self._checker.methods + self._graded
            counts = {f"checks/{name}": n for name, n in sorted(methods.items())}
            return counts | {"timeouts": self._checker.pool.timeouts}

    def close(self) -> None:
        """End the worker processes, which start again when they are needed, and the graders."""
        self._checker.close()
        for grader in self._graders.values():
            if (close := getattr(grader, "close", None)) is not None:
                close()

    def _check(
        self, requests: Sequence[tuple[str, Problem]], *, again: bool = False
    ) -> list[Verdict]:
        """``again``: do not take stored verdicts of a judge that failed."""
        with self._lock:
            keys = [_key(response, problem) for response, problem in requests]
            verdicts = {key: self._verdicts.get(key) for key in keys}
            missing = {
                key: request
                for key, request in zip(keys, requests, strict=True)
                if (known := verdicts[key]) is None or (again and known.method == "not-graded")
            }
            fresh = self._grade(list(missing.values()))
            for key, verdict in zip(missing, fresh, strict=True):
                verdicts[key] = verdict
                self._verdicts.put(key, verdict)
        return [verdict for key in keys if (verdict := verdicts[key]) is not None]

    def _grade(self, requests: Sequence[tuple[str, Problem]]) -> list[Verdict]:
        """Verdicts by the grader of each kind."""
        indices_of: dict[Grader | None, list[int]] = {}
        for index, (_, problem) in enumerate(requests):
            indices_of.setdefault(self._graders.get(problem.kind), []).append(index)
        verdicts: dict[int, Verdict] = {}
        for grader, indices in indices_of.items():
            batch = [requests[index] for index in indices]
            fresh = self._checker.check_many(batch) if grader is None else grader(batch)
            if grader is not None:
                self._graded.update(verdict.method for verdict in fresh)
            verdicts |= dict(zip(indices, fresh, strict=True))
        return [verdicts[index] for index in range(len(requests))]


def _key(response: str, problem: Problem) -> Hashable:
    """Everything that a verdict depends on."""
    # ``meta`` cannot be hashed: the id stands for it, except for the tests of programs.
    key = (response, *(value for name, value in vars(problem).items() if name != "meta"))
    return (*key, str(problem.meta.get("test", ""))) if problem.kind == "code" else key

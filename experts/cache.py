"""A cache of replies on disk, by exact request."""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datatypes import Completion, Policy, Prompt, Sampling, UserError
from coterie.experts.pool import close_all, counters_of

_FINISH = ("eos", "stop", "length")


@dataclass
class CacheCounters:
    """Counts since the start of the process."""

    hits: int = 0
    misses: int = 0
    corrupt: int = 0
    """Unusable entries, which are also misses and are written again."""
    not_written: int = 0
    """Replies that could not be written."""


class CachedPolicy:
    """Answers repeated requests from disk, and other requests by a policy.

    The policy must be frozen: keys contain request, settings and seed, but no weights. Failures are
    not stored. Entries are JSON with a digest, which reveals damaged entries. Several processes can
    share a folder.
    """

    def __init__(self, policy: Policy, folder: str | Path, *, identity: Mapping[str, Any]) -> None:
        """
        Args:
            policy: answers on a miss.
            folder: the folder of entries, created if missing.
            identity: everything that determines the policy's answers (model, address, codec, ...),
                as JSON values; entries of another identity are not used.

        Raises:
            UserError: the folder cannot be created.
        """
        self.policy = policy
        self.counters = CacheCounters()
        self._folder = Path(folder)
        self._identity = dict(identity)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"cannot use {self._folder} as a cache ({error.strerror}): name another cache_dir"
            ) from None

    async def __call__(self, prompt: Prompt, sampling: Sampling) -> Completion:
        """Return the stored reply, or the policy's reply, which is then stored."""
        request = cache_request(self._identity, prompt, sampling)
        path = self._path(request)
        completion = self._load(path, request)
        if completion is not None:
            self.counters.hits += 1
            return completion
        self.counters.misses += 1
        completion = await self.policy(prompt, sampling)
        self._store(path, request, completion)
        return completion

    def as_dict(self) -> dict[str, float]:
        """Return the policy's counters, and the cache's as ``cache/<counter>``, for a log."""
        own = {f"cache/{name}": float(value) for name, value in asdict(self.counters).items()}
        return counters_of(self.policy) | own

    async def aclose(self) -> None:
        """Close the policy, if it can be closed."""
        await close_all([self.policy])

    def _path(self, request: Mapping[str, Any]) -> Path:
        key = _digest(request)
        return self._folder / key[:2] / f"{key}.json"

    def _load(self, path: Path, request: Mapping[str, Any]) -> Completion | None:
        try:
            entry = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError):
            entry = None
        completion = _completion(entry, request)
        self.counters.corrupt += completion is None
        return completion

    def _store(self, path: Path, request: Mapping[str, Any], completion: Completion) -> None:
        stored = _as_json(completion)
        entry = {"request": request, "completion": stored, "sha256": _digest(stored)}
        data = json.dumps(entry, allow_nan=False).encode()
        temporary = ""
        try:
            path.parent.mkdir(exist_ok=True)
            # Renaming is atomic, so readers never see a partial entry.
            descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            self.counters.not_written += 1
            if temporary:
                Path(temporary).unlink(missing_ok=True)


def cache_request(
    identity: Mapping[str, Any], prompt: Prompt, sampling: Sampling
) -> dict[str, Any]:
    """Return everything that determines a reply, as JSON values."""
    tokens = np.asarray(prompt.tokens, dtype="<i8")
    return {
        "version": 2,
        "identity": dict(identity),
        "text": prompt.text,
        "tokens_sha256": hashlib.sha256(tokens.tobytes()).hexdigest(),
        "sampling": asdict(sampling) | {"stop": list(sampling.stop)},
        "seed": prompt.seed,
        "problem": prompt.problem.id if prompt.problem is not None else None,
    }


def _digest(value: Any) -> str:
    """SHA-256 of the canonical JSON of ``value``."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _as_json(completion: Completion) -> dict[str, Any]:
    # JSON has no NaN; a float32 survives the way through a double.
    logprobs = [x if math.isfinite(x) else None for x in completion.logprobs.tolist()]
    return {
        "tokens": completion.tokens.tolist(),
        "logprobs": logprobs,
        "finish_reason": completion.finish_reason,
        "weight_version": completion.weight_version,
        "usage": list(completion.usage),
    }


def _completion(entry: Any, request: Mapping[str, Any]) -> Completion | None:
    """The stored completion, or None if the entry is damaged or for another request."""
    try:
        stored = entry["completion"]
        if entry["sha256"] != _digest(stored) or _digest(entry["request"]) != _digest(request):
            return None
        if stored["finish_reason"] not in _FINISH:
            return None
        prompt, sampled = stored["usage"]
        logprobs = [math.nan if x is None else float(x) for x in stored["logprobs"]]
        completion = Completion(
            tokens=np.asarray([int(x) for x in stored["tokens"]], dtype=np.int64),
            logprobs=np.asarray(logprobs, dtype=np.float32),
            finish_reason=stored["finish_reason"],
            weight_version=int(stored["weight_version"]),
            usage=(int(prompt), int(sampled)),
        )
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    return completion if completion.tokens.shape == completion.logprobs.shape else None

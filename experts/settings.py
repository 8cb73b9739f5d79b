"""Settings of experts: where a server is, how long to wait, how a script behaves."""

import ipaddress
import json
import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from annotated_types import Ge, Gt, Le, Lt

from coterie.datatypes import UserError, Validated
from coterie.datatypes.validation import Share

# Names in other scripts are written in their ASCII form (xn--...).
_HOST = re.compile(r"(?!.{254})[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?", re.ASCII)


_Seconds = Annotated[float, Gt(0), Le(math.inf)]


@dataclass(frozen=True)
class ServerSettings(Validated):
    """A role that is played by a model behind an OpenAI-compatible server (vLLM, llama.cpp, ...).

    Example: ``ServerSettings(base_url="http://127.0.0.1:8000/v1", model="expert")``
    """

    base_url: str
    """Address of the server, http or https; ``/v1`` is added where the address has no path."""
    model: str
    """The name under which the server serves the model."""
    api: Literal["chat", "completions"] = "chat"
    """``chat``: the context is one user message and the server applies its template;
    ``completions``: the context is continued as it stands."""
    system_prompt: str = ""
    """Sent ahead of the context (``chat`` only); empty sends none."""
    api_key_env: str = ""
    """Name of the environment variable that holds the API key; empty sends no key."""
    max_tokens: Annotated[int | None, Ge(1)] = None
    """Most tokens of a reply in the server's vocabulary, thinking included; None: as many as are
    kept."""
    max_reply_tokens: Annotated[int | None, Ge(1)] = None
    """Tokens of a reply that are kept, in the role's vocabulary, where four bytes count as one;
    None: as many as the turn allows."""
    strip_thinking: bool = True
    """Keep only what follows the closing think marker."""
    send_seed: bool = True
    """Send each prompt's seed, reduced to 31 bits; switch off for servers that refuse it."""
    extra_body: str = ""
    """A JSON object that is merged into each request, such as
    ``{"chat_template_kwargs": {"enable_thinking": false}}``; null leaves a field out."""
    concurrency: Annotated[int, Ge(1)] = 32
    """Calls at the same time; others wait, and waiting does not count in timeout_s."""
    connect_timeout_s: _Seconds = 5.0
    """Seconds for opening a connection."""
    read_timeout_s: _Seconds = 300.0
    """Seconds of silence after which an attempt fails. A server that does not stream is silent
    while it generates."""
    timeout_s: _Seconds = 600.0
    """Seconds for one call, its retries and pauses included."""
    retries: Annotated[int, Ge(0)] = 2
    """Attempts after the first one."""
    backoff_s: Annotated[float, Ge(0), Le(math.inf)] = 0.5
    """The longest first pause between attempts; it doubles with each retry."""
    max_backoff_s: Annotated[float, Ge(0), Le(math.inf)] = 30.0
    """The longest pause; a server's Retry-After may exceed it."""
    breaker_failures: Annotated[int, Ge(1)] = 8
    """Consecutive failures after which the server is not asked for a while."""
    breaker_cooldown_s: Annotated[float, Ge(0), Le(math.inf)] = 10.0
    """Seconds until one call tries again."""
    max_body_bytes: Annotated[int, Ge(1), Lt(2**63)] = 4 * 2**20
    """A reply longer than this is dropped unread."""
    cache_dir: str = ""
    """Folder in which replies are kept by exact request; empty keeps none."""

    def check(self) -> None:
        _check_url(self.base_url)
        if not self.model:
            raise UserError(f"the server at {self.base_url} needs a model name: set model")
        if self.api_key_env and not self.api_key_env.isidentifier():
            raise UserError(
                "api_key_env must name the environment variable that holds the key, such as "
                "MY_KEY: export the key under that name"
            )
        if self.system_prompt and self.api != "chat":
            raise UserError("system_prompt needs api 'chat'; put the text into the prompt instead")
        self.extra()

    @property
    def endpoint(self) -> str:
        """The address that requests are posted to."""
        path = "chat/completions" if self.api == "chat" else "completions"
        return f"{self.api_root}/{path}"

    @property
    def api_root(self) -> str:
        """``base_url`` with its ``/v1`` and without a slash at its end."""
        root = self.base_url.rstrip("/")
        return root if urlsplit(root).path else f"{root}/v1"

    def extra(self) -> dict[str, Any]:
        """``extra_body`` as a dictionary."""
        if not self.extra_body:
            return {}
        try:
            extra = json.loads(self.extra_body)
        except (ValueError, RecursionError):
            extra = None
        if not isinstance(extra, dict):
            raise UserError('extra_body must be a JSON object, such as {"min_p": 0.05}')
        taken = sorted({"stream", "n", "messages", "prompt", "model"} & extra.keys())
        if taken:
            raise UserError(f"extra_body cannot set {taken[0]!r}: it has a meaning of its own here")
        return extra


@dataclass(frozen=True)
class ScriptedSettings(Validated):
    """An expert without a model, for tests, controls and the noise settings of arXiv:2509.23730."""

    kind: Literal["oracle", "gold-hint", "useless", "silent", "random"] = "oracle"
    """``oracle``: right with probability ``p_right``, otherwise wrong; ``gold-hint``: always the
    gold answer, worded as a hint; ``useless``: always ``useless_text``; ``silent``: never
    answers; ``random``: any of the moves that a game lists after ``Moves:``, each as likely."""
    p_right: Share = 1.0
    """Probability that an oracle is right."""
    wrong: tuple[str, ...] = ()
    """Wrong answers of an oracle, one of which is drawn; default: a changed gold answer."""
    template: str = "Answer: {answer}"
    """An oracle's reply; ``{answer}`` stands for the answer, ``{solution}`` for the worked solution
    where the problem has one and the oracle is right, and for the answer alone where not."""
    hint_template: str = "Hint: the result should come out as {answer}."
    """A gold hint; ``{answer}`` stands for the gold answer."""
    useless_text: str = "I cannot offer you any assistance; please resolve the issue yourself."
    """Reply of a useless expert; the paper's sentence (appendix E)."""
    delay_s: Annotated[float, Ge(0), Le(math.inf)] = 0.0
    """Delay of every reply, in seconds."""

    def check(self) -> None:
        for name in ("template", "hint_template"):
            text = getattr(self, name)
            if "{answer}" not in text and (name != "template" or "{solution}" not in text):
                raise UserError(f"{name} must say where the answer goes: write {{answer}} in it")


@dataclass(frozen=True)
class HumanSettings(Validated):
    """A person who answers at the terminal."""

    system_prompt: str = ""
    """Shown above every question."""


def _check_url(url: str) -> None:
    """Raise UserError unless ``url`` is the plain address of a server."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        if host is not None and ":" in host:
            named = ipaddress.IPv6Address(host).scope_id is None
        else:
            named = _HOST.fullmatch(host or "") is not None
        valid = parts.scheme in ("http", "https") and named and url.isprintable()
    except ValueError:
        valid, parts = False, None
    if not valid or parts is None or any(character.isspace() for character in url):
        raise UserError("base_url must be an address like http://127.0.0.1:8000/v1")
    if parts.username is not None or parts.password is not None:
        raise UserError("base_url must not hold a password: name a variable with api_key_env")
    if parts.query or parts.fragment:
        raise UserError("base_url must end with its path: leave out what follows '?' or '#'")
    for path in ("/chat/completions", "/completions"):
        if parts.path.rstrip("/").endswith(path):
            raise UserError(f"base_url must end before {path}, which is added: leave it out")

"""Settings of a server with Tinker's API."""

import re
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Gt, Le

from coterie.datatypes import UserError, Validated

KEY = "TINKER_API_KEY"
"""Environment variable with the key."""
_URL = re.compile(r"https?://[^\s/]+(/\S*)?")


@dataclass(frozen=True)
class Prices:
    """Prices of a million tokens, in the user's currency."""

    prefill: float
    """Tokens of prompts, and tokens that are scored."""
    sample: float
    """Tokens of answers."""
    train: float
    """Tokens of rows that are learned."""


@dataclass(frozen=True)
class TinkerSettings(Validated):
    """A server with Tinker's API; these need --engine tinker."""

    url: str = ""
    """Address of the server, such as http://127.0.0.1:8420. Its key is read from the environment
    variable TINKER_API_KEY."""
    names: tuple[str, ...] = ()
    """MODEL=NAME: what the server calls a model, where that differs from --agents.ROLE.model. The
    tokenizer is still that of MODEL."""
    limit_s: Annotated[float, Gt(0), Le(86_400)] = 600.0
    """Seconds without any answer of the server, retries included, after which the run stops;
    --resume continues it."""
    prices: tuple[str, ...] = ()
    """PREFILL,SAMPLE,TRAIN: price of a million tokens, or MODEL=PREFILL,SAMPLE,TRAIN for one base
    model; the summary then has the costs of the run."""

    def check(self) -> None:
        if self.url and not _URL.fullmatch(self.url):
            raise UserError(
                f"--tinker.url {self.url[:80]} is not an address: use http://HOST:PORT or https://HOST"
            )
        named = [self.parse_name(entry)[0] for entry in self.names]
        if repeated := {model for model in named if named.count(model) > 1}:
            raise UserError(f"--tinker.names has two names for {sorted(repeated)[0]}")
        for entry in self.prices:
            self.parse_prices(entry)

    @staticmethod
    def parse_name(entry: str) -> tuple[str, str]:
        """(model, its name on the server)."""
        model, _, name = entry.partition("=")
        if not (model.strip() and name.strip()):
            raise UserError(f"--tinker.names {entry[:80]!r}: use MODEL=NAME")
        return model.strip(), name.strip()

    @staticmethod
    def parse_prices(entry: str) -> tuple[str, Prices]:
        """(model or "", prices)."""
        model, _, numbers = entry.rpartition("=")
        try:
            prefill, sample, train = (float(number) for number in numbers.split(","))
        except ValueError:
            prefill = sample = train = -1.0
        if not (min(prefill, sample, train) >= 0 and max(prefill, sample, train) < 1e9):
            raise UserError(
                f"--tinker.prices {entry[:80]!r}: use three prices for a million tokens, "
                "PREFILL,SAMPLE,TRAIN or MODEL=PREFILL,SAMPLE,TRAIN"
            )
        return model.strip(), Prices(prefill, sample, train)

    def name_of(self, model: str, folder: str | None = None) -> str:
        """The server's name of ``model``: from ``names``, else its local ``folder``, else its own
        name."""
        return dict(map(self.parse_name, self.names)).get(model) or folder or model

    def prices_of(self, model: str) -> Prices | None:
        """The prices of ``model``; None: they are not given."""
        prices = dict(map(self.parse_prices, self.prices))
        return prices.get(model) or prices.get("")

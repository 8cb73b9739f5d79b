r"""Formulas, read whole or not at all.

A recursive descent over the LaTeX (and plain text) in which answers are written. What the grammar
does not know, such as a word, an ellipsis or a second number after the first, makes the text
unreadable: nothing is guessed and nothing is dropped.
"""

import re
from functools import lru_cache

from coterie.rewards.grading.answers import formula as trees
from coterie.rewards.grading.answers.formula import (
    FUNCTIONS,
    Formula,
    joined,
    negative,
    numeral,
    quotient,
)

_GREEK = """
alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi rho
sigma tau upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega ell
"""
SYMBOLS = frozenset("\\" + name for name in _GREEK.split())
_CONSTANTS = {"\\pi": "pi", "e": "e", "i": "i", "\\infty": "oo"}
_CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|", "\\lfloor": "\\rfloor", "\\lceil": "\\rceil"}
_AROUND = {"|": "abs", "\\lfloor": "floor", "\\lceil": "ceiling"}
_TIMES = frozenset({"*", "\\cdot", "\\times"})
_OVER = frozenset({"/", "\\div"})
_NO_FACTOR = _TIMES | _OVER | {"\\rfloor", "\\rceil", "\\choose"}

_DECIMAL = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<repeating>[0-9]*\.[0-9]*"
    r"(?:\\(?:overline|bar|dot)\s?(?:\{[0-9]{1,40}\}|[0-9])|\([0-9]{1,40}\)))"
    r"|(?P<mixed>[0-9]+ [0-9]+\s?/\s?[0-9]+(?![0-9.]))"
    rf"|(?P<scientific>{_DECIMAL}[eE][+-]?[0-9]{{1,4}}(?![0-9.]))"
    rf"|(?P<number>{_DECIMAL})"
    r"|(?P<degrees>\^\s?\\circ(?![A-Za-z])|\\degree(?![A-Za-z]))"
    r"|(?P<accented>\\(?:vec|hat|bar|overline)\s?\{\s?[A-Za-z]{1,4}\s?\})"
    r"|(?P<word>(?:arc)?(?:sin|cos|tan)h?(?![A-Za-z])|(?:sqrt|pi|ln|log|exp)(?![A-Za-z]))"
    r"|(?P<sign>\\[A-Za-z]+|\*\*|[-+*/^!(){}\[\]|_,A-Za-z'])"
    r")"
)
_OF_LETTER = re.compile(r"\(\s?[A-Za-z]\s?\)")
_OF_N = re.compile(r"\(\s?n")
_DERIVATIVE = re.compile(
    r"\{\s?(?:d|\\partial)(?:\s?\^\s?(?:[2-9]|\{[2-9]\}))?\s?[A-Za-z]?\s?\}"
    r"\s?\{\s?(?:d|\\partial)\s?[A-Za-z](?:\s?\^\s?(?:[2-9]|\{[2-9]\}))?\s?\}"
)
_SUBSCRIPT = re.compile(r"_\s?(?:\{([^{}]{1,16})\}|([A-Za-z0-9]))")


class _UnreadableError(Exception):
    """The text is no formula of this grammar."""


@lru_cache(maxsize=8192)
def read(text: str) -> Formula | None:
    r"""The formula that all of ``text`` is, in the form of ``normalise.plain``; None for any other.

    Example: ``read("2x")`` is ``("product", ("number", Fraction(2), "plain"), ("symbol", "x"))``.
    """
    try:
        parser = _Parser(text)
        formula = parser.sum()
        return formula if parser.kind is None else None
    except (_UnreadableError, RecursionError):
        return None


class _Parser:
    """One pass over a text: the token at hand, and what it may become."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip()
        self.end = 0
        self.kind: str | None = None
        self.token = ""
        self.advance()

    def advance(self) -> None:
        """Step to the next token; the kind is None after the last one."""
        if self.end == len(self.text):
            self.kind, self.token = None, ""
            return
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            raise _UnreadableError
        self.kind, self.token, self.end = match.lastgroup, match[0].strip(), match.end()
        if self.kind == "word":
            self.kind, self.token = "sign", "\\" + self.token

    def take(self, *tokens: str) -> bool:
        """Whether the token at hand is one of ``tokens``; steps over it then."""
        if self.kind == "sign" and self.token in tokens:
            self.advance()
            return True
        return False

    def expect(self, token: str) -> None:
        """Step over ``token``, which has to come now."""
        if not self.take(token):
            raise _UnreadableError

    def sum(self) -> Formula:
        """Terms between signs; one sign may stand in front, and a minus after a plus."""
        minus = self.take("-")
        if not minus:
            self.take("+")
        total = negative(self.product()) if minus else self.product()
        while (minus := self.take("-")) or self.take("+"):
            # "2 + -3i", as programs print it; "2--3" may be a range.
            minus = minus or self.take("-")
            term = self.product()
            total = joined("sum", total, negative(term) if minus else term)
        return total

    def product(self) -> Formula:
        """Factors and divisors, with or without a sign between them."""
        result = last = self.power()
        divided = False
        while self.kind is not None:
            if self.take(*_TIMES):
                last = self.power()
                result, divided = trees.times(result, last), False
            elif self.take(*_OVER):
                last = self.power()
                result, divided = quotient(result, last), True
            elif self.begins_factor() or (self.begins_power() and last[0] != "number"):
                # In "a/2b" it is not clear what is divided; "1/2 n" is half of n.
                if divided and result[0] != "number":
                    raise _UnreadableError
                last = self.power()
                result, divided = joined("product", result, last), False
            else:
                break
        return trees.in_order(result)

    def begins_power(self) -> bool:
        """Whether a power of a numeral begins here: ``n 2^n``, and no ``x2``."""
        return self.kind == "number" and self.text[self.end :].lstrip()[:1] == "^"

    def begins_factor(self) -> bool:
        """Whether a factor begins here that needs no sign in front."""
        command = self.token[:1] == "\\" and self.token not in _NO_FACTOR
        begins = self.token in ("(", "[", "{") or self.token.isalpha() or command
        return self.kind == "accented" or (self.kind == "sign" and begins)

    def power(self) -> Formula:
        """A primary with what is attached to it: factorial, degrees, exponent."""
        base = self.primary()
        while True:
            if self.take("!"):
                base = ("factorial", base)
                if self.token == "!":
                    raise _UnreadableError
            elif self.kind == "degrees":
                self.advance()
                base = ("degrees", base)
            elif self.take("^", "**"):
                base = trees.power(base, self.exponent())
                if self.token in ("^", "**"):
                    raise _UnreadableError
            else:
                return base

    def exponent(self) -> Formula:
        """What stands after ``^``: one sign and a group, a numeral or a character."""
        minus = self.take("-")
        if self.kind == "number":
            exponent = numeral(self.token)
            self.advance()
        else:
            exponent = self.primary() if self.token == "(" else self.argument()
        return negative(exponent) if minus else exponent

    def argument(self) -> Formula:
        r"""What a command takes: a group, or one character, as in ``\frac12``."""
        if self.kind == "number" and len(self.token) > 1:
            if not self.token[0].isdigit():
                raise _UnreadableError
            digit, self.token = self.token[0], self.token[1:]
            return numeral(digit)
        if self.kind in ("number", "sign") and self.token not in ("(", "["):
            return self.primary()
        raise _UnreadableError

    def primary(self) -> Formula:
        """A literal, a symbol, a bracket or a command with its arguments."""
        kind, token = self.kind, self.token
        if kind is None or kind == "degrees":
            raise _UnreadableError
        self.advance()
        if kind == "number":
            return self.with_fraction(numeral(token))
        if kind != "sign" and kind != "accented":
            return _literal(kind, token)
        if kind == "accented" or token.isalpha() or token in SYMBOLS:
            constant = _CONSTANTS.get(token)
            return ("constant", constant) if constant else self.applied(token.replace(" ", ""))
        if token in _CONSTANTS:
            return ("constant", _CONSTANTS[token])
        return self.bracket(token) if token in _CLOSING else self.command(token)

    def with_fraction(self, whole: Formula) -> Formula:
        r"""``whole`` and the fraction after it: ``1\frac{4}{5}``."""
        if self.token != "\\frac" or whole[1].denominator > 1:
            return whole
        self.advance()
        fraction = quotient(self.argument(), self.argument())
        if fraction[0] != "number":
            return joined("product", whole, fraction)
        return _known(trees.mixed(whole, fraction))

    def applied(self, name: str) -> Formula:
        """A symbol, or a function of what stands in the bracket after it."""
        symbol = self.symbol(name)
        if self.token != "(" or not self.is_function(symbol[1]):
            return symbol
        return (f"{trees.OF}{symbol[1]}", self.primary())

    def is_function(self, name: str) -> bool:
        """Whether the bracket after ``name`` holds an argument: ``f(x+1)``, ``g'(2)``, ``P(A)``,
        ``T(n/2)``, and no ``h(a+b)``."""
        if name[0] == "f" or name.endswith("'"):
            return True
        return bool((_OF_N if name[0] == "T" else _OF_LETTER).match(self.text, self.end - 1))

    def symbol(self, name: str) -> Formula:
        """A symbol with its subscript and primes."""
        if self.token == "_":
            match = _SUBSCRIPT.match(self.text, self.end - 1)
            if match is None:
                raise _UnreadableError
            name += "_" + (match[1] or match[2]).replace(" ", "")
            self.end = match.end()
            self.advance()
        while self.take("'"):
            name += "'"
        return ("symbol", name)

    def bracket(self, opening: str) -> Formula:
        """What stands in brackets, bars or a group."""
        inside = self.sum()
        if opening == "{" and self.take("\\choose"):
            inside = ("binomial", inside, self.sum())
        self.expect(_CLOSING[opening])
        return (_AROUND[opening], inside) if opening in _AROUND else inside

    def command(self, token: str) -> Formula:
        """A command that takes arguments."""
        if token == "\\frac":
            if derivative := _DERIVATIVE.match(self.text, self.end - 1):
                self.end = derivative.end()
                self.advance()
                return ("symbol", derivative[0].replace(" ", ""))
            return quotient(self.argument(), self.argument())
        if token in ("\\binom", "\\dbinom", "\\tbinom"):
            return ("binomial", self.argument(), self.argument())
        if token == "\\sqrt":
            return self.root()
        if token.startswith("\\") and token[1:] in FUNCTIONS:
            return self.function(token[1:])
        raise _UnreadableError

    def root(self) -> Formula:
        r"""``\sqrt[3]{x}``, ``sqrt(x)``, ``\sqrt2``."""
        degree = numeral("2")
        if self.take("["):
            degree = self.sum()
            self.expect("]")
        if self.token in ("(", "{"):
            return ("root", self.primary(), degree)
        if self.kind == "number" and len(self.token) > 1:
            raise _UnreadableError  # \sqrt12 is typeset as the root of 1, and then 2
        return ("root", self.argument(), degree)

    def function(self, name: str) -> Formula:
        r"""``\sin^2 x``, ``\log_{10} 2``, ``\cos 60^\circ``."""
        base = self.argument() if name == "log" and self.take("_") else None
        exponent = self.exponent() if self.take("^") else None
        if self.token in ("(", "{", "["):
            inside = self.primary()
            if self.kind == "degrees":
                self.advance()
                inside = ("degrees", inside)
        else:
            inside = self.power()
            while self.begins_factor() and self.token not in ("(", "[", "{"):
                if self.token[1:] in FUNCTIONS:
                    break
                inside = joined("product", inside, self.power())
        if name == "exp":
            result: Formula = ("power", ("constant", "e"), inside)
        elif name in ("ln", "log"):
            natural = ("constant", "e")
            result = ("log", inside, natural if name == "ln" else base or numeral("10"))
        elif exponent == negative(numeral("1")):
            return ("arc" + name, inside)
        else:
            result = (name, inside)
        return result if exponent is None else ("power", result, exponent)


def _literal(kind: str, token: str) -> Formula:
    """A numeral in one of its longer forms."""
    if kind == "mixed":
        whole, top, bottom = map(numeral, re.findall("[0-9]+", token))
        return _known(trees.mixed(whole, quotient(top, bottom)))
    if kind == "scientific":
        return _known(trees.scientific(*re.split("[eE]", token)))
    return trees.repeating(*re.findall(r"^([0-9]*\.[0-9]*).*?([0-9]+)\D*$", token)[0])


def _known(formula: Formula | None) -> Formula:
    if formula is None:
        raise _UnreadableError
    return formula

"""How people write numbers."""

from fractions import Fraction


def integer_forms(value: int) -> list[str]:
    grouped = f"{value:,}"
    return [
        str(value),
        grouped,
        grouped.replace(",", "{,}"),
        grouped.replace(",", r",\!"),
        grouped.replace(",", r"\,"),
        f"{value}.00",
        f"{value}.",
        f"${value}$",
        rf"\text{{{value}}}",
        rf"\${value}" if value >= 0 else str(value),
        f"x = {value}",
        f"{value} apples",
        rf"{value} \text{{ cm}}^2",
        rf"{value}^\circ",
        rf"{value} \times 10^{{0}}",
        f"{value}0e-1",
        rf"\left({value}\right)",
    ]


def fraction_forms(value: Fraction) -> list[str]:
    top, bottom = value.numerator, value.denominator
    whole, rest = divmod(abs(top), bottom)
    sign = "-" if top < 0 else ""
    forms = [
        f"{top}/{bottom}",
        rf"\frac{{{top}}}{{{bottom}}}",
        rf"{sign}\dfrac{{{abs(top)}}}{{{bottom}}}",
        rf"\tfrac{{{6 * top}}}{{{6 * bottom}}}",
        rf"x = {sign}\frac{{{abs(top)}}}{{{bottom}}}",
        _decimal(value),
    ]
    if whole:
        forms += [rf"{sign}{whole}\frac{{{rest}}}{{{bottom}}}", f"{sign}{whole} {rest}/{bottom}"]
    return forms


def _decimal(value: Fraction) -> str:
    r"""By long division: the digits after which a remainder comes back stand under a bar."""
    whole, rest = divmod(abs(value.numerator), value.denominator)
    digits, seen = "", {}
    while rest and rest not in seen and len(digits) < 40:
        seen[rest] = len(digits)
        digit, rest = divmod(10 * rest, value.denominator)
        digits += str(digit)
    if rest and rest not in seen:
        return f"{value.numerator}/{value.denominator}"
    sign = "-" if value < 0 else ""
    if not rest:
        return f"{sign}{whole}.{digits}"
    return rf"{sign}{whole}.{digits[: seen[rest]]}\overline{{{digits[seen[rest] :]}}}"

"""Money as text: exact enough to reckon with, short enough to read."""

from decimal import ROUND_HALF_EVEN, Context, Decimal

_NANODOLLAR = Decimal("1e-9")
_UNIT_COST_DIGITS = Context(prec=9, rounding=ROUND_HALF_EVEN)
_READABLE_DIGITS = Context(prec=3, rounding=ROUND_HALF_EVEN)
_CENT = Decimal("0.01")
_WHOLE_CENTS_FROM = Decimal(10)


def exact_dollars(amount: Decimal) -> str:
    """A total for the API: plain decimal, rounded once, to a nanodollar."""
    return _plain(amount.quantize(_NANODOLLAR, rounding=ROUND_HALF_EVEN))


def unit_dollars(amount: Decimal) -> str:
    """A unit cost for the API: plain decimal of nine significant digits, as 0.0000125."""
    return _plain(_UNIT_COST_DIGITS.create_decimal(amount))


def readable_dollars(amount: Decimal) -> str:
    """For tables: whole cents from ten dollars, three significant digits below."""
    if abs(amount) >= _WHOLE_CENTS_FROM:
        return f"${amount.quantize(_CENT, rounding=ROUND_HALF_EVEN):,}"
    return f"${_plain(_READABLE_DIGITS.create_decimal(amount))}"


def _plain(amount: Decimal) -> str:
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

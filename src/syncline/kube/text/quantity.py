"""Resource quantities such as ``100m``, ``1.5Gi``, ``2e3``: :func:`parse_quantity`.

Used by defaulting, validation, the scheduler and quota arithmetic. Amounts are exact; they print in the canonical form
of Go's ``resource.Quantity``. No floating point anywhere.

Source of the rules: Kubernetes apimachinery ``pkg/api/resource`` (suffixes, rounding up to nano, the cap at 2^63-1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from syncline.base.remember import remember

NANO = 1_000_000_000
MAX_NANO = (2**63 - 1) * NANO
MAX_DIGITS = 400
"""Longer numerals than any capped value needs are errors, so that a hostile text cannot take quadratic time."""

FORMAT_WRONG = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"  # Kubernetes' words
)
SUFFIX_WRONG = "unable to parse quantity's suffix"
NUMBER_WRONG = "unable to parse numeric part of quantity"

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_NAMES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL_NAMES = {power: name for name, power in _DECIMAL.items()}
_EXPONENT_BOUND = 40
"""Beyond this power of ten every value is zero, one nano or the cap."""


class QuantityError(ValueError):
    """An invalid quantity; the message is Kubernetes' own."""


class Format(StrEnum):
    """How a quantity was written, which decides how it is printed."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True)
class Quantity:
    """An exact amount in billionths. Comparison is by amount, whatever the format."""

    nano: int
    format: Format = Format.DECIMAL

    def __str__(self) -> str:
        return _canonical(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        """Return the sum, in the format of the first operand that is not zero."""
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def value(self) -> int:
        """Return whole units, rounded away from zero (bytes, pods, whole cores)."""
        return _divide_up(self.nano, NANO)

    def milli(self) -> int:
        """Return thousandths, rounded away from zero (millicores)."""
        return _divide_up(self.nano, NANO // 1000)

    def is_whole(self) -> bool:
        return self.nano % NANO == 0

    def is_whole_milli(self) -> bool:
        return self.nano % (NANO // 1000) == 0


ZERO = Quantity(0)


def from_int(value: int, form: Format = Format.DECIMAL) -> Quantity:
    """Return whole units as a quantity."""
    return Quantity(value * NANO, form)


def from_milli(value: int) -> Quantity:
    """Return thousandths as a quantity."""
    return Quantity(value * (NANO // 1000))


def parse_quantity(text: str | int | float) -> Quantity:
    """Parse a quantity; JSON numbers by their text, as the API does. Raises :class:`QuantityError`."""
    if isinstance(text, bool):
        raise QuantityError(FORMAT_WRONG)
    return _parse(text if isinstance(text, str) else _number_text(text))


def text_as_read(text: str | int | float) -> str:
    """Return what Go prints for a parsed quantity: a short text that looks canonical is unchanged (``001``, ``+5k``,
    ``1.234``), any other is canonical. Raises :class:`QuantityError`."""
    quantity = parse_quantity(text)
    text = text if isinstance(text, str) else _number_text(text)
    match = _PARTS.fullmatch(text)
    assert match is not None, "it was read"
    number, fraction = match.group(2).lstrip("0") or "0", match.group(3) or ""
    digits = number + fraction
    _, power, form = _suffix(match.group(4))
    if form is Format.BINARY:
        kept = not fraction and len(number) + power * 3 // 10 < 15 and int(digits) & 7 != 0
    else:
        scale = power - len(fraction)
        kept = len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
    return text if kept else str(quantity)


def _number_text(number: int | float) -> str:
    return str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)


@remember(4096)
def _parse(text: str) -> Quantity:
    match = _PARTS.fullmatch(text)
    if match is None or not text:
        raise QuantityError(FORMAT_WRONG)
    sign, whole, fraction, suffix = match.group(1), match.group(2), match.group(3) or "", match.group(4)
    if not whole and match.group(3) is None and suffix:
        # Go reads a missing numeral before a suffix as zero, except with long numbers.
        _, power, form = _suffix(suffix)
        if power < -9 or (form is Format.BINARY and power > _BINARY["Ti"]):
            raise QuantityError(NUMBER_WRONG)
    if len(whole) + len(fraction) > MAX_DIGITS:
        raise QuantityError(NUMBER_WRONG)
    base, power, form = _suffix(suffix)
    nano = _scaled(int(whole + fraction or "0"), len(fraction), base, power)
    if form is Format.BINARY and 0 < nano < NANO:
        form = Format.DECIMAL
    return Quantity(-nano if sign == "-" else nano, form)


def _suffix(text: str) -> tuple[int, int, Format]:
    """Return (base, power, format) of a suffix; raises :class:`QuantityError`."""
    if text in _DECIMAL:
        return 10, _DECIMAL[text], Format.DECIMAL
    if text in _BINARY:
        return 2, _BINARY[text], Format.BINARY
    if len(text) > 1 and text[0] in "eE" and re.fullmatch(r"[+-]?[0-9]{1,18}", text[1:]):
        return 10, max(-_EXPONENT_BOUND, min(_EXPONENT_BOUND, int(text[1:]))), Format.EXPONENT
    raise QuantityError(SUFFIX_WRONG)


def _scaled(digits: int, decimals: int, base: int, power: int) -> int:
    """Return digits x base^power / 10^decimals in nano: rounded up to a nano, capped at 2^63-1 units."""
    up, down = (base**power, 1) if power >= 0 else (1, base**-power)
    return min(_divide_up(digits * NANO * up, 10**decimals * down), MAX_NANO)


def _divide_up(number: int, by: int) -> int:
    """Divide, rounded away from zero."""
    return -(-number // by) if number >= 0 else number // by


def _canonical(quantity: Quantity) -> str:
    nano, form = quantity.nano, quantity.format
    if nano == 0:
        return "0"
    if form is Format.BINARY and (abs(nano) < 1024 * NANO or nano % NANO):
        # Small and fractional amounts are clearer in decimal (CanonicalizeBytes).
        nano = nano if abs(nano) < 1024 * NANO else _divide_up(nano, NANO) * NANO
        form = Format.DECIMAL
    match form:
        case Format.BINARY:
            return _binary_text(nano // NANO)
        case Format.DECIMAL:
            number, power = _thousands(nano)
            return f"{number}{_DECIMAL_NAMES[power]}" if power in _DECIMAL_NAMES else f"{number}e{power}"
        case Format.EXPONENT:
            number, power = _thousands(nano)
            return f"{number}e{power}" if power else str(number)
        case _:
            assert_never(form)


def _binary_text(value: int) -> str:
    power = 0
    while value % 1024 == 0 and power < len(_BINARY_NAMES) - 1:
        value //= 1024
        power += 1
    return f"{value}{_BINARY_NAMES[power]}"


def _thousands(nano: int) -> tuple[int, int]:
    """Return the shortest whole number and its power of ten, a multiple of three."""
    power = -9
    while nano % 1000 == 0:
        nano //= 1000
        power += 3
    return nano, power

"""sprig's arithmetic: int64 that wraps, floats by way of exact decimals, ranges of integers.

Source of the rules: sprig's numeric.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_items, spend
from syncline.kube.gotemplate.sprig.casting import to_float64, to_int64, wrapped
from syncline.kube.gotemplate.values import Int64, Ints

ANY, INT, INT64, FLOAT64 = Kind.ANY, Kind.INT, Kind.INT64, Kind.FLOAT64

MAX_DECIMAL_BITS = 1 << 16
"""Bits of an exact intermediate result: a product of a dozen of the largest floats."""
DIVISION_DIGITS = 10**16
"""Go's decimals keep sixteen digits after the point of a quotient."""


def _add(*values: Any) -> Int64:
    return wrapped(sum(map(to_int64, values)))


def _sub(one: Any, other: Any) -> Int64:
    return wrapped(to_int64(one) - to_int64(other))


def _mul(first: Any, *values: Any) -> Int64:
    product = Int64(to_int64(first))
    for value in values:
        product = wrapped(product * to_int64(value))
    return product


def _quotient(one: int, other: int) -> int:
    """Divide towards zero."""
    if other == 0:
        raise FunctionError("runtime error: integer divide by zero")
    whole = abs(one) // abs(other)
    return whole if (one < 0) == (other < 0) else -whole


def _div(one: Any, other: Any) -> Int64:
    return wrapped(_quotient(to_int64(one), to_int64(other)))


def _mod(one: Any, other: Any) -> Int64:
    number, divisor = to_int64(one), to_int64(other)
    return wrapped(number - divisor * _quotient(number, divisor))


def _exact(value: Any) -> Fraction:
    number = to_float64(value)
    if not math.isfinite(number):
        raise FunctionError(f"Cannot create a Decimal from {sprintf('%v', number)}")
    return Fraction(repr(number))


def _decimals(first: Any, values: tuple[Any, ...], step: Callable[[Fraction, Fraction], Fraction]) -> float:
    total = _exact(first)
    for value in values:
        total = step(total, _exact(value))
        bits = total.numerator.bit_length() + total.denominator.bit_length()
        spend(10 + bits // 100)
        if bits > MAX_DECIMAL_BITS:
            raise FunctionError("the exact result has too many digits")
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _divided(one: Fraction, other: Fraction) -> Fraction:
    """Divide to sixteen digits after the point, halves away from zero."""
    if not other:
        raise FunctionError("decimal division by 0")
    scaled = abs(one / other) * DIVISION_DIGITS
    whole = math.floor(scaled + Fraction(1, 2))
    return Fraction(whole if (one < 0) == (other < 0) else -whole, DIVISION_DIGITS)


def _max_float(first: Any, *values: Any) -> float:
    return _extreme(max, math.inf, [to_float64(value) for value in (first, *values)])


def _min_float(first: Any, *values: Any) -> float:
    return _extreme(min, -math.inf, [to_float64(value) for value in (first, *values)])


def _extreme(choose: Callable[[list[float]], float], beyond: float, numbers: list[float]) -> float:
    """Return the largest or smallest: an infinity beats NaN, NaN the other numbers, as in Go."""
    if beyond in numbers:
        return beyond
    first = next((number for number in numbers if number != number), choose(numbers))
    zeros = [math.copysign(1.0, number) for number in numbers if not number]
    return first if first else math.copysign(0.0, choose(zeros))


def _round(value: Any, places: int, *on: float) -> float:
    """Round half up (or from ``on`` up), the fraction of a negative number being negative."""
    power = _power_of_ten(places)
    digits = power * to_float64(value)
    if not math.isfinite(digits):
        return _over(digits, power)
    fraction, _ = math.modf(digits)
    rounded = math.ceil(digits) if fraction >= (on[0] if on else 0.5) else math.floor(digits)
    return _over(float(rounded) if rounded else math.copysign(0.0, digits), power)


def _power_of_ten(exponent: int) -> float:
    """Return 10 to an exponent by squaring, with Go's errors in the last digit from 1e23 on."""
    result, twos = 1.0, 0
    factor, factor_twos = math.frexp(10.0)
    left = abs(exponent)
    while left:
        if factor_twos > 1 << 12:
            twos += factor_twos
            break
        if left & 1:
            result, twos = result * factor, twos + factor_twos
        factor, factor_twos = factor * factor, factor_twos * 2
        if factor < 0.5:
            factor, factor_twos = factor * 2, factor_twos - 1
        left >>= 1
    try:
        return math.ldexp(result, twos) if exponent >= 0 else math.ldexp(1 / result, -twos)
    except OverflowError:
        return math.inf


def _over(number: float, power: float) -> float:
    """Divide as the processor does."""
    if power:
        return number / power
    return math.nan if not number or number != number else math.copysign(math.inf, number)


def _floor(value: Any) -> float:
    number = to_float64(value)
    return float(math.floor(number)) if math.isfinite(number) and abs(number) < 2**53 and number else number


def _ceil(value: Any) -> float:
    number = to_float64(value)
    if not math.isfinite(number) or abs(number) >= 2**53:
        return number
    return math.copysign(float(math.ceil(number)), number)


def _until_step(start: int, stop: int, step: int) -> Ints:
    if step == 0 or (stop < start) != (step < 0):
        return Ints()
    numbers = range(start, stop, step)
    # len() of a range beyond 64 bits overflows.
    count = (numbers[-1] - start) // step + 1 if numbers else 0
    check_items(count)
    spend(count // 8)
    return Ints(numbers)


def _until(count: int) -> Ints:
    return _until_step(0, count, -1 if count < 0 else 1)


def _seq(*params: int) -> str:
    """Return a range with its end, as text: ``END``, ``START END``, ``START STEP END``."""
    if not 1 <= len(params) <= 3:
        return ""
    start, end = (params[0] if len(params) > 1 else 1), params[-1]
    beyond = -1 if end < start else 1
    step = params[1] if len(params) == 3 else beyond
    if len(params) == 3 and end < start and step > 0:
        return ""
    return " ".join(map(str, _until_step(start, wrapped(end + beyond), step)))


def _tens(step: Callable[[Fraction, Fraction], Fraction]) -> Function:
    return Function(lambda first, *values: _decimals(first, values, step), (ANY, ANY), variadic=True, result=FLOAT64)


ARITHMETIC: Mapping[str, Function] = {
    "add": Function(_add, (ANY,), variadic=True, result=INT64),
    "add1": Function(lambda value: wrapped(to_int64(value) + 1), (ANY,), result=INT64),
    "sub": Function(_sub, (ANY, ANY), result=INT64),
    "mul": Function(_mul, (ANY, ANY), variadic=True, result=INT64),
    "div": Function(_div, (ANY, ANY), result=INT64),
    "mod": Function(_mod, (ANY, ANY), result=INT64),
    "max": (largest := Function(lambda *values: Int64(max(map(to_int64, values))), (ANY, ANY), True, INT64)),
    "biggest": largest,
    "min": Function(lambda *values: Int64(min(map(to_int64, values))), (ANY, ANY), True, INT64),
    "addf": Function(lambda *values: _decimals(0.0, values, Fraction.__add__), (ANY,), True, FLOAT64),
    "add1f": Function(lambda value: _decimals(value, (1,), Fraction.__add__), (ANY,), result=FLOAT64),
    "subf": _tens(Fraction.__sub__),
    "mulf": _tens(Fraction.__mul__),
    "divf": _tens(_divided),
    "maxf": Function(_max_float, (ANY, ANY), variadic=True, result=FLOAT64),
    "minf": Function(_min_float, (ANY, ANY), variadic=True, result=FLOAT64),
    "floor": Function(_floor, (ANY,), result=FLOAT64),
    "ceil": Function(_ceil, (ANY,), result=FLOAT64),
    "round": Function(_round, (ANY, INT, FLOAT64), variadic=True, result=FLOAT64),
    "until": Function(_until, (INT,), result=Kind.INTS),
    "untilStep": Function(_until_step, (INT, INT, INT), result=Kind.INTS),
    "seq": Function(_seq, (INT,), variadic=True, result=Kind.STRING),
}

"""sprig's functions of chance, drawn from the caller's :class:`Entropy`: :func:`chance_functions`."""

from __future__ import annotations

import base64
import string
from collections.abc import Mapping

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, check_text, spend
from syncline.kube.gotemplate.sprig.text.runes import runes

INT, STRING = Kind.INT, Kind.STRING
LETTERS = string.ascii_letters
VISIBLE = "".join(map(chr, range(32, 127)))


def chance_functions(entropy: Entropy) -> Mapping[str, Function]:
    """Return the functions that draw; a seeded ``entropy`` gives the same values in the same order."""

    def drawn(alphabet: str, count: int) -> str:
        check_text(count)
        spend(count)
        return "".join(alphabet[entropy.randrange(len(alphabet))] for _ in range(count))

    def alphanumeric(count: int) -> str:
        """Has at least one digit, as upstream's."""
        text = drawn(LETTERS + string.digits, count)
        if count < 1 or any(char.isdigit() for char in text):
            return text
        at = entropy.randrange(count)
        return text[:at] + drawn(string.digits, 1) + text[at + 1 :]

    def between(low: int, high: int) -> int:
        if high <= low:
            raise FunctionError("invalid argument to Intn")
        return low + entropy.randrange(high - low)

    def shuffled(text: str) -> str:
        chars = list(runes(text))
        spend(len(chars))
        for at in range(len(chars) - 1, 0, -1):
            other = entropy.randrange(at + 1)
            chars[at], chars[other] = chars[other], chars[at]
        return "".join(chars)

    def octets(count: int) -> str:
        if count < 0:
            raise FunctionError("runtime error: makeslice: len out of range")
        check_text(count * 2)
        spend(count)
        return base64.b64encode(bytes(entropy.randrange(256) for _ in range(count))).decode()

    def text(alphabet: str) -> Function:
        return Function(lambda count: drawn(alphabet, count), (INT,), result=STRING)

    return {
        "randAlpha": text(LETTERS),
        "randNumeric": text(string.digits),
        "randAscii": text(VISIBLE),
        "randAlphaNum": Function(alphanumeric, (INT,), result=STRING),
        "randInt": Function(between, (INT, INT), result=INT),
        "randBytes": Function(octets, (INT,), result=STRING),
        "shuffle": Function(shuffled, (STRING,), result=STRING),
        "uuidv4": Function(entropy.uid, result=STRING),
    }

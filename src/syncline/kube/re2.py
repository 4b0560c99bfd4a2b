"""Go's regular expressions read as Python's.

Called for ``pattern`` in schemas and for validation rules. In comes RE2 syntax; out comes a compiled pattern that is to
be searched for. Differences that matter are translated: ``$`` and ``\\z`` mean the very end of the text, POSIX classes
are spelled out, ``(?<name>…)`` is a named group.
"""

from __future__ import annotations

import re
from functools import lru_cache

from syncline.kube.re2syntax import check_pattern

__all__ = ["compile_pattern"]

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(r"\\.|\[:\^?\w+:\]|\(\?<(?![=!])|[\[\]$]|[^\\\[\]$(]+|\(", re.DOTALL)


@lru_cache(maxsize=4096)
def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile RE2 syntax; raises ``re.error`` in Go's words for what is no pattern."""
    check_pattern(text)
    return re.compile(_translated(text), re.ASCII)


def _translated(text: str) -> str:
    out: list[str] = []
    in_class = False
    for token in _TOKEN.findall(text):
        if in_class:
            if token == "]" and out[-1] not in ("[", "[^"):
                in_class = False
            out.append(_in_class(token))
        elif token == "[":
            in_class = True
            out.append(token)
        else:
            out.append({"$": r"\Z", r"\z": r"\Z", "(?<": "(?P<"}.get(token, token))
    return "".join(out)


def _in_class(token: str) -> str:
    if token == "[":
        return r"\["
    return _POSIX.get(token[2:-2], token) if token.startswith("[:") else token

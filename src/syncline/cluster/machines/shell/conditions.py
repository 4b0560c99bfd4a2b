"""Evaluate ``test`` and ``[ … ]``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from syncline.cluster.machines.shell.expansion import pattern_matches
from syncline.cluster.machines.shell.syntax import ShellError

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}


def truth(words: list[str], files: Mapping[str, str], *, patterns: bool) -> bool:
    """Evaluate a test; ``patterns``: the right side of ``==`` is a pattern, as in ``[[ ]]``. Raises ShellError."""
    for joint, either in (("-o", True), ("||", True), ("-a", False), ("&&", False)):
        if joint in words[1:-1]:
            at = words.index(joint, 1)
            sides = [truth(side, files, patterns=patterns) for side in (words[:at], words[at + 1 :])]
            return any(sides) if either else all(sides)
    if words[:1] == ["!"] and len(words) > 1:
        return not truth(words[1:], files, patterns=patterns)
    match words:
        case []:
            return False
        case [text]:
            return bool(text)
        case ["-n", text]:
            return bool(text)
        case ["-z", text]:
            return not text
        case ["-e" | "-f" | "-r" | "-s" as flag, path]:
            return path in files and (flag != "-s" or bool(files[path]))
        case ["-d" | "-x" | "-w", _]:
            return False
        case [left, operator, right]:
            return _compared(left, operator, right, patterns)
        case _:
            raise ShellError(f"test {' '.join(words)} is not known to this shell")


def _compared(left: str, operator: str, right: str, patterns: bool) -> bool:
    if operator in _NUMBERS:
        try:
            return _NUMBERS[operator](int(left), int(right))
        except ValueError as error:
            raise ShellError(f"{left!r} {operator} {right!r}: whole numbers are expected") from error
    match operator:
        case "=" | "==":
            return pattern_matches(left, right) if patterns else left == right
        case "!=":
            return not pattern_matches(left, right) if patterns else left != right
        case "=~" if patterns:
            return re.search(right, left) is not None
        case _:
            raise ShellError(f"{operator} is not known to this shell")

"""Expand words: variables, operators such as ``${A:-b}``, patterns, arithmetic."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Callable

from syncline.cluster.machines.shell.syntax import ShellError

MAX_NUMBER = 2**63
_NAME = re.compile(r"\$?\{?([A-Za-z_][A-Za-z0-9_]*)\}?")


def pattern_matches(text: str, pattern: str) -> bool:
    """Match the whole text with a shell pattern."""
    return fnmatch.fnmatchcase(text, pattern.replace("[!", "[!"))


def operated(value: str | None, operator: str, operand: str) -> str:
    """Evaluate ``${NAME<operator><operand>}`` except assignment; ``?`` raises ShellError, since an unset variable ends
    a shell."""
    missing = value is None or (operator.startswith(":") and not value)
    text = value or ""
    match operator.lstrip(":"):
        case "":
            return text
        case "-" | "=":
            return operand if missing else text
        case "+":
            return "" if missing else operand
        case "?":
            if missing:
                raise ShellError(operand or "parameter null or not set")
            return text
        case "#len":
            return str(len(text))
        case "%" | "%%" | "#" | "##" as how:
            return _trimmed(text, how, operand)
        case _:
            raise ShellError(f"{operator!r} is not known to this shell")


def _trimmed(text: str, how: str, pattern: str) -> str:
    cuts = range(len(text) + 1)
    if how in ("%", "##"):
        cuts = cuts[::-1]
    for cut in cuts:
        part, rest = (text[cut:], text[:cut]) if how.startswith("%") else (text[:cut], text[cut:])
        if pattern_matches(part, pattern):
            return rest
    return text


def split_fields(text: str) -> list[str]:
    """Split an unquoted value at white space."""
    return text.split()


_CALCULATE: dict[type, Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: int(a / b),
    ast.Mod: lambda a, b: a - b * int(a / b),
}
_COMPARE: dict[type, Callable[[int, int], bool]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


def arithmetic(text: str, value: Callable[[str], str]) -> int:
    """Evaluate ``$((…))``: integers, ``+ - * / %``, comparisons and parentheses; raise ShellError."""
    written = _NAME.sub(lambda found: value(found.group(1)) or "0", text).replace("/", "//")
    written = written.replace("&&", " and ").replace("||", " or ").strip() or "0"
    try:
        result = _calculated(ast.parse(written, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise ShellError(f"$(({text})) is not arithmetic this shell knows") from error
    if abs(result) >= MAX_NUMBER:
        raise ShellError(f"$(({text})) is beyond 64 bits")
    return result


def _calculated(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return int(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_calculated(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _CALCULATE:
        return _CALCULATE[type(node.op)](_calculated(node.left), _calculated(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        return int(_COMPARE[type(node.ops[0])](_calculated(node.left), _calculated(node.comparators[0])))
    if isinstance(node, ast.BoolOp):
        values = [_calculated(each) != 0 for each in node.values]
        return int(all(values) if isinstance(node.op, ast.And) else any(values))
    raise ValueError("not arithmetic")

"""Go templates: :func:`parse` once, :meth:`Template.render` often. Pure; bounded in steps, output and depth.

They behave as those of text/template of Go 1.26, also in the texts of their errors: ``docs/gotemplate.md`` names the
differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from syncline.kube.gotemplate.builtins import BUILTINS
from syncline.kube.gotemplate.errors import TemplateError as TemplateError
from syncline.kube.gotemplate.evaluate import Evaluation
from syncline.kube.gotemplate.execute import Program
from syncline.kube.gotemplate.functions import SPENDING, Function
from syncline.kube.gotemplate.lexer import BRACES, Delimiters
from syncline.kube.gotemplate.nodes import Tree
from syncline.kube.gotemplate.parser import parse_tree
from syncline.kube.gotemplate.state import State
from syncline.kube.gotemplate.values import INVALID, characters, encode


class MissingKey(Enum):
    """What a key that a map does not have gives (``missingkey=`` in Go's options)."""

    DEFAULT = "default"
    """``<no value>``, and so each of its fields."""
    INVALID = "invalid"
    """The same as ``DEFAULT``."""
    ZERO = "zero"
    """Nil: prints ``<no value>``, its fields are an error."""
    ERROR = "error"
    """An error."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one template; what exceeds them is a :class:`TemplateError`."""

    text: int = 1 << 20
    """Bytes of its text."""
    tokens: int = 100_000
    """Words, signs and spaces within its actions, and texts between them."""
    steps: int = 1_000_000
    """Nodes that one rendering evaluates; a call counts more, by the size of its arguments and result."""
    output: int = 1 << 20
    """Characters of the output."""
    nesting: int = 100
    """Control structures and parentheses within one another."""
    depth: int = 200
    """Templates that call one another, each with the control structures within one another that it has."""


_LIMITS: Final = Limits()


class Template:
    """A parsed template: immutable, may be rendered at the same time by many."""

    __slots__ = ("_limits", "_program", "_tree")

    def __init__(self, tree: Tree, program: Program, limits: Limits) -> None:
        self._tree, self._program, self._limits = tree, program, limits

    def render(self, data: Any) -> str:
        """Render with ``data`` as dot and ``$``; bytes that are no characters become U+FFFD.

        ``data`` holds template values (``values.py``). The engine changes nothing in it; functions may (``set`` of
        sprig). Raises :class:`TemplateError`.
        """
        limits = self._limits
        data = INVALID if data is None else data
        state = State(self._tree, data, steps=limits.steps, output=limits.output)
        spending = SPENDING.set(state.take)
        try:
            self._program.run(state, data)
        except RecursionError:
            state.node = None  # its text could be as deep
            state.fail("too many values or templates within one another")
        finally:
            SPENDING.reset(spending)
        return characters("".join(state.out))


def parse(
    name: str,
    text: str,
    functions: Mapping[str, Function],
    *,
    missing_key: MissingKey = MissingKey.DEFAULT,
    limits: Limits = _LIMITS,
    delimiters: Delimiters = BRACES,
) -> Template:
    """Parse ``text``; ``functions`` add to the builtin ones and come before them. Raises :class:`TemplateError`."""
    if len(text) > limits.text or len(encode(text)) > limits.text:
        raise TemplateError(f"template: {name}:1: the template is larger than {limits.text} bytes")
    known = {**BUILTINS, **functions}
    try:
        tree = parse_tree(name, text, known.keys(), most=limits.tokens, nesting=limits.nesting, delimiters=delimiters)
        program = Program(tree, Evaluation(functions, BUILTINS, missing_key.value), limits.depth)
    except RecursionError:
        raise TemplateError(f"template: {name}:1: max expression depth exceeded") from None
    return Template(tree, program, limits)

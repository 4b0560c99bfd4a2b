"""What one rendering holds: output, variables, the place for errors, and what is left of its bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from syncline.kube.gotemplate.errors import TemplateError
from syncline.kube.gotemplate.nodes import Located, Tree
from syncline.kube.gotemplate.strconv import quote
from syncline.kube.gotemplate.values import encode

INTERFACE: Final = "interface {}"
"""The static type of what a list or map of any values holds: errors name it instead of the value's own type."""
_SIZED: Final = (str, list, dict)


class State:
    """One rendering."""

    __slots__ = ("declared", "depth", "dot_type", "left", "name", "node", "out", "room", "tree", "types", "variables")

    def __init__(self, tree: Tree, data: Any, *, steps: int, output: int) -> None:
        self.tree = tree
        self.name = tree.name
        """The template that runs."""
        self.node: Located | None = None
        """What is evaluated."""
        self.out: list[str] = []
        self.left = steps
        self.room = output
        self.depth = 0
        self.dot_type: str | None = None
        """The static type of dot where it is not the value's own."""
        self.variables: dict[str, list[Any]] = {"$": [data]}
        """The values of each name, the innermost last."""
        self.types: dict[str, list[str | None]] = {"$": [None]}
        """Their static types where they are not the values' own."""
        self.declared: list[str] = ["$"]

    def fail(self, message: str) -> NoReturn:
        """Refuse what is evaluated."""
        head = f"template: {self.tree.name}:"
        if self.node is None:
            raise TemplateError(f"{head} executing {quote(self.name)}: {message}")
        before = self.tree.text[: self.node.at]
        column = len(encode(before[before.rfind("\n") + 1 :]))
        place = f"{before.count(chr(10)) + 1}:{column}"
        raise TemplateError(f"{head}{place}: executing {quote(self.name)} at <{self.node}>: {message}")

    def take(self, steps: int) -> None:
        """Count steps."""
        self.left -= steps
        if self.left < 0:
            self.fail("too many steps: the template loops too often, or over too much")

    def take_for(self, values: Sequence[Any]) -> None:
        """Count the steps of a call by the sizes of its values."""
        cost = 4
        for value in values:
            if isinstance(value, _SIZED):
                cost += len(value) >> 5
        self.left -= cost
        if self.left < 0:
            self.take(0)

    def put(self, text: str) -> None:
        """Append to the output."""
        self.room -= len(text)
        if self.room < 0:
            self.fail("the output is too large")
        self.out.append(text)

    def declare(self, name: str, value: Any) -> None:
        """Add a variable; it hides others of the name."""
        self.variables.setdefault(name, []).append(value)
        self.types.setdefault(name, []).append(None)
        self.declared.append(name)

    def assign(self, name: str, value: Any, static: str | None = None) -> None:
        """Change the innermost variable of the name."""
        values = self.variables.get(name)
        if not values:
            self.fail(f"undefined variable: {name}")
        values[-1] = value
        self.types[name][-1] = static

    def forget(self, count: int) -> None:
        """Remove variables until ``count`` are left."""
        declared = self.declared
        while len(declared) > count:
            name = declared.pop()
            self.variables[name].pop()
            self.types[name].pop()

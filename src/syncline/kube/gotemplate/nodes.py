"""The syntax tree of a template. ``str`` of a node is its text in error messages; ``at`` is an index of characters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from syncline.kube.gotemplate.strconv import quote


@dataclass(frozen=True, slots=True, eq=False)
class Dot:
    """``.``"""

    at: int

    def __str__(self) -> str:
        return "."


@dataclass(frozen=True, slots=True, eq=False)
class Nil:
    """``nil``"""

    at: int

    def __str__(self) -> str:
        return "nil"


@dataclass(frozen=True, slots=True, eq=False)
class Bool:
    """``true`` or ``false``"""

    at: int
    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number or character: each field is None where the literal cannot be that."""

    at: int
    text: str
    integer: int | None = None
    unsigned: int | None = None
    real: float | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class String:
    """A string literal."""

    at: int
    literal: str
    value: str

    def __str__(self) -> str:
        return self.literal


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """``.a.b``; ``at`` is that of the second name where there is one."""

    at: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "." + ".".join(self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """``$x.a.b``; ``at`` is that of the first field where there is one."""

    at: int
    name: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.name, *self.fields))


@dataclass(frozen=True, slots=True, eq=False)
class Identifier:
    """The name of a function."""

    at: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """An operand, or a function with its arguments."""

    at: int
    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        return " ".join(f"({one})" if isinstance(one, Pipe) else str(one) for one in self.operands)


@dataclass(frozen=True, slots=True, eq=False)
class Pipe:
    """Commands, each of which gives its value to the next; the last is declared or assigned."""

    at: int
    variables: tuple[Variable, ...]
    assigns: bool
    commands: tuple[Command, ...]

    def __str__(self) -> str:
        names = ", ".join(map(str, self.variables))
        sign = (" = " if self.assigns else " := ") if names else ""
        return names + sign + " | ".join(map(str, self.commands))


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """``(...).a.b`` or ``function.a.b``"""

    at: int
    base: Operand
    fields: tuple[str, ...]

    def __str__(self) -> str:
        base = f"({self.base})" if isinstance(self.base, Pipe) else str(self.base)
        return ".".join((base, *self.fields))


Operand: TypeAlias = Dot | Nil | Bool | Number | String | Field | Variable | Identifier | Pipe | Chain


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Text between actions."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Action:
    """A pipeline whose value is printed, unless it goes to a variable."""

    at: int
    pipe: Pipe

    def __str__(self) -> str:
        return f"{{{{{self.pipe}}}}}"


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """``if`` or ``with``, and its chain of ``else if`` or ``else with``."""

    sets_dot: bool
    cases: tuple[tuple[Pipe, tuple[Node, ...]], ...]
    otherwise: tuple[Node, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """``range``"""

    at: int
    pipe: Pipe
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] | None

    def __str__(self) -> str:
        return f"{{{{range {self.pipe}}}}}"


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """``template``"""

    at: int
    name: str
    pipe: Pipe | None

    def __str__(self) -> str:
        return f"{{{{template {quote(self.name)}{f' {self.pipe}' if self.pipe else ''}}}}}"


@dataclass(frozen=True, slots=True, eq=False)
class Break:
    """``break``"""


@dataclass(frozen=True, slots=True, eq=False)
class Continue:
    """``continue``"""


Node: TypeAlias = Text | Action | Branch | Range | Call | Break | Continue
Located: TypeAlias = Operand | Command | Action | Range | Call
"""What an error of a rendering names."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed text: the bodies of its templates by name, its own among them."""

    name: str
    text: str = field(repr=False)
    bodies: Mapping[str, tuple[Node, ...]] = field(repr=False)

"""The syntax tree of a small shell script, from the parser to the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


class ShellError(Exception):
    """The text is not a script, or is unsupported; the message names the part."""


@dataclass(frozen=True, slots=True)
class Literal:
    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """``$NAME``, ``${NAME<operator><operand>}`` or ``${#NAME}`` (operator ``#len``)."""

    name: str
    quoted: bool
    operator: str = ""
    operand: Word | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """``$(…)``."""

    script: Script
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``$((…))``: the text, with unexpanded variables."""

    text: str


@dataclass(frozen=True, slots=True)
class HereDocument:
    """The text after ``<<``; its parts follow after the end of the line."""

    parts: list[Part]


Part: TypeAlias = Literal | Variable | Substitution | Arithmetic | HereDocument


@dataclass(frozen=True, slots=True)
class Word:
    parts: tuple[Part, ...]

    @property
    def constant(self) -> str | None:
        """The text of a word without expansions; else None."""
        if all(isinstance(part, Literal) for part in self.parts):
            return "".join(part.text for part in self.parts if isinstance(part, Literal))
        return None

    @property
    def bare(self) -> str | None:
        """The text of a word without expansions and quotes, possibly a reserved word; else None."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Literal) and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """``operator`` is one of ``<``, ``>``, ``>>``, ``2>``, ``2>>``, ``2>&1``, ``1>&2``, ``&>``, ``<<``, ``<<<``."""

    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    branches: tuple[tuple[Script, Script], ...]
    otherwise: Script | None
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """``while``, or ``until`` where ``ends_on`` is True."""

    condition: Script
    body: Script
    ends_on: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    name: str
    words: tuple[Word, ...]
    body: Script
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    subject: Word
    branches: tuple[tuple[tuple[Word, ...], Script], ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """``{ …; }``, or ``( … )`` with separate variables."""

    script: Script
    own_variables: bool
    redirects: tuple[Redirect, ...] = ()


Command: TypeAlias = Simple | If | Loop | For | Case | Group


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """``rest`` pairs ``&&`` or ``||`` with the following pipeline."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    lists: tuple[AndOr, ...] = field(default=())

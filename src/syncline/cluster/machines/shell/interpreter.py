"""Run a script as a generator that yields requests of ``oc``, output and sleeps.

The script runtime calls it with time and an API. One :class:`Shell` is one process: variables, files of its private
``/tmp``, options. Steps, output and nesting are bounded; it starts no process and opens no file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from syncline.cluster.machines.shell.expansion import arithmetic, operated, pattern_matches, split_fields
from syncline.cluster.machines.shell.syntax import (
    AndOr,
    Arithmetic,
    Case,
    Command,
    For,
    Group,
    HereDocument,
    If,
    Literal,
    Loop,
    Part,
    Pipeline,
    Redirect,
    Script,
    ShellError,
    Simple,
    Substitution,
    Variable,
    Word,
)
from syncline.cluster.machines.tools.steps import Output, Step

MAX_STEPS = 200_000
"""Commands per run: a loop that polls every second for a day needs fewer."""
MAX_CAPTURE = 4 * 1024 * 1024
"""Limit of characters in a pipe or substitution."""

Run: TypeAlias = Generator[Step, Any, int]


class ShellExit(Exception):
    """``exit``, or the end through ``set -e``."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LoopControl(Exception):
    """``break`` and ``continue``."""

    def __init__(self, go_on: bool, levels: int) -> None:
        super().__init__(go_on, levels)
        self.go_on = go_on
        self.levels = levels


@dataclass(slots=True)
class Io:
    """Streams of a command. ``out`` and ``err`` None: the log."""

    stdin: str = ""
    out: list[str] | None = None
    err: list[str] | None = None
    merged: bool = False
    """The standard error is redirected to the standard output."""
    swapped: bool = False
    """The standard output is redirected to the standard error."""


Program: TypeAlias = Callable[["Shell", list[str], Io], Run]
Programs: TypeAlias = Mapping[str, Program]


@dataclass(slots=True)
class Shell:
    """``now`` returns the time for ``date``; ``programs`` are all its commands."""

    programs: Programs
    variables: dict[str, str]
    now: Callable[[], datetime]
    arguments: list[str] = field(default_factory=list)
    exported: set[str] = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    last: int = 0
    steps: int = 0
    quiet: int = 0
    """Number of enclosing conditions, in which failures do not end a script under ``set -e``."""

    # -- output ------------------------------------------------------------------------------------------------------

    def say(self, io: Io, text: str, *, error: bool = False) -> Generator[Step, Any, None]:
        error = (error and not io.merged) or io.swapped
        sink = io.err if error else io.out
        if sink is None:
            if text:
                yield Output(text, error=error)
            return
        if sum(map(len, sink)) + len(text) > MAX_CAPTURE:
            raise ShellError(f"more than {MAX_CAPTURE} characters of output are held")
        sink.append(text)

    # -- scripts -----------------------------------------------------------------------------------------------------

    def main(self, script: Script) -> Run:
        """Run a whole script; return its exit code. Raises ShellError for unsupported syntax."""
        try:
            return (yield from self.script(script, Io()))
        except ShellExit as exit_:
            return exit_.code
        except LoopControl:
            return self.last

    def script(self, script: Script, io: Io) -> Run:
        code = 0
        for each in script.lists:
            code = yield from self._and_or(each, io)
        return code

    def _and_or(self, each: AndOr, io: Io) -> Run:
        pipelines = [("", each.first), *each.rest]
        code = 0
        for index, (operator, pipeline) in enumerate(pipelines):
            if operator and (code == 0) != (operator == "&&"):
                continue
            last = index == len(pipelines) - 1
            self.quiet += not last
            try:
                code = yield from self._pipeline(pipeline, io)
            finally:
                self.quiet -= not last
            if last and code != 0 and "e" in self.options and not self.quiet and not pipeline.negated:
                raise ShellExit(code)
        return code

    def _pipeline(self, pipeline: Pipeline, io: Io) -> Run:
        code, worst, held = 0, 0, io.stdin
        for index, command in enumerate(pipeline.commands):
            if index == len(pipeline.commands) - 1:
                code = yield from self._command(command, replace(io, stdin=held))
                break
            sink: list[str] = []
            code = yield from self._command(command, Io(held, sink, io.err, False))
            worst, held = code or worst, "".join(sink)
        if "pipefail" in self.options:
            code = code or worst
        self.last = int(code == 0) if pipeline.negated else code
        return self.last

    def _command(self, command: Command, io: Io) -> Run:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise ShellError(f"the script ran {MAX_STEPS} commands without coming to an end")
        io, finish = yield from self._redirected(command.redirects, io)
        code = yield from self._bare(command, io)
        finish()
        return code

    def _bare(self, command: Command, io: Io) -> Run:
        match command:
            case Simple():
                return (yield from self._simple(command, io))
            case If():
                return (yield from self._if(command, io))
            case Loop():
                return (yield from self._loop(command, io))
            case For():
                return (yield from self._for(command, io))
            case Case():
                return (yield from self._case(command, io))
            case Group(own_variables=False):
                return (yield from self.script(command.script, io))
            case Group():
                return (yield from self._subshell(command.script, io))
            case _ as never:
                assert_never(never)

    def _subshell(self, script: Script, io: Io) -> Run:
        """Run a group with copies of the variables; ``exit`` ends only the group."""
        kept = self.variables, self.options
        self.variables, self.options = dict(self.variables), set(self.options)
        try:
            return (yield from self.script(script, io))
        except ShellExit as exit_:
            return exit_.code
        finally:
            self.variables, self.options = kept

    # -- compound commands -------------------------------------------------------------------------------------------

    def _holds(self, script: Script, io: Io) -> Generator[Step, Any, bool]:
        self.quiet += 1
        try:
            return (yield from self.script(script, io)) == 0
        finally:
            self.quiet -= 1

    def _if(self, command: If, io: Io) -> Run:
        for condition, body in command.branches:
            if (yield from self._holds(condition, io)):
                return (yield from self.script(body, io))
        return (yield from self.script(command.otherwise, io)) if command.otherwise is not None else 0

    def _loop(self, command: Loop, io: Io) -> Run:
        code = 0
        while (yield from self._holds(command.condition, io)) != command.ends_on:
            self.steps += 1
            try:
                code = yield from self.script(command.body, io)
            except LoopControl as control:
                if self._leaves(control):
                    break
        return code

    def _for(self, command: For, io: Io) -> Run:
        code = 0
        for word in (yield from self.fields(command.words)):
            self.variables[command.name] = word
            try:
                code = yield from self.script(command.body, io)
            except LoopControl as control:
                if self._leaves(control):
                    break
        return code

    def _leaves(self, control: LoopControl) -> bool:
        """Return whether this loop ends; raise the remaining levels to outer loops."""
        if control.levels > 1:
            raise LoopControl(control.go_on, control.levels - 1)
        return not control.go_on

    def _case(self, command: Case, io: Io) -> Run:
        subject = yield from self.value(command.subject)
        for patterns, body in command.branches:
            for pattern in patterns:
                if pattern_matches(subject, (yield from self.value(pattern))):
                    return (yield from self.script(body, io))
        return 0

    # -- simple commands ---------------------------------------------------------------------------------------------

    def _simple(self, command: Simple, io: Io) -> Run:
        words = yield from self.fields(command.words)
        given: dict[str, str] = {}
        self.last = 0
        for name, word in command.assignments:
            given[name] = yield from self.value(word)
            if not words:
                self.variables[name] = given[name]
        if not words:
            return self.last
        if "x" in self.options:
            yield from self.say(io, "+ " + " ".join(words) + "\n", error=True)
        program = self.programs.get(words[0].rsplit("/", 1)[-1])
        if program is None:
            raise ShellError(f"{words[0]}: not a command of this shell")
        kept = {name: self.variables.get(name) for name in given}
        self.variables |= given
        try:
            return (yield from program(self, words, io))
        finally:
            for name, value in kept.items():
                if value is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = value

    def _redirected(
        self, redirects: tuple[Redirect, ...], io: Io
    ) -> Generator[Step, Any, tuple[Io, Callable[[], None]]]:
        """Return the command's streams, and a function that writes its files once it has ended."""
        mine = replace(io)
        writes: list[tuple[str, list[str], bool]] = []
        for redirect in redirects:
            target = yield from self.value(redirect.target)
            match redirect.operator:
                case "<":
                    if target not in self.files and target != "/dev/null":
                        raise ShellError(f"{target}: only files that the script wrote can be read")
                    mine.stdin = self.files.get(target, "")
                case "<<":
                    mine.stdin = target
                case "<<<":
                    mine.stdin = target + "\n"
                case "2>&1":
                    mine.merged = True
                case "1>&2":
                    mine.swapped = True
                case ">" | ">>" | "&>" | "2>" | "2>>" as operator:
                    sink: list[str] = []
                    writes.append((target, sink, operator.endswith(">>")))
                    _point(mine, operator, sink)
                case _ as operator:
                    raise ShellError(f"{operator} is not known to this shell")
        return mine, lambda: self._write_files(writes)

    def _write_files(self, writes: list[tuple[str, list[str], bool]]) -> None:
        for path, sink, append in writes:
            if path not in ("/dev/null", "/dev/stdout", "/dev/stderr"):
                self.files[path] = (self.files.get(path, "") if append else "") + "".join(sink)

    # -- words -------------------------------------------------------------------------------------------------------

    def fields(self, words: tuple[Word, ...]) -> Generator[Step, Any, list[str]]:
        """Expand words and split them into fields."""
        found: list[str] = []
        for word in words:
            found += yield from self._fields_of(word)
        return found

    def _fields_of(self, word: Word) -> Generator[Step, Any, list[str]]:
        fields: list[str] = []
        open_ = False
        for part in word.parts:
            if isinstance(part, Variable) and part.name == "@" and part.quoted:
                fields += self.arguments
                open_ = bool(self.arguments)
                continue
            text = yield from self._part(part)
            if not text and _is_all_arguments(word):
                continue
            if isinstance(part, Literal) or getattr(part, "quoted", False):
                pieces, glued = [text], True
            else:
                pieces, glued = split_fields(text), bool(text) and not text[0].isspace()
            if not pieces:
                continue
            if open_ and glued and fields:
                fields[-1] += pieces[0]
                pieces = pieces[1:]
            fields += pieces
            open_ = isinstance(part, Literal) or getattr(part, "quoted", False) or not text[-1:].isspace()
        return fields

    def value(self, word: Word) -> Generator[Step, Any, str]:
        """Expand a word without splitting."""
        text = ""
        for part in word.parts:
            text += yield from self._part(part)
        return text

    def _part(self, part: Part) -> Generator[Step, Any, str]:
        match part:
            case Literal(text=text):
                return text
            case Variable():
                return (yield from self._variable(part))
            case Arithmetic(text=text):
                return str(arithmetic(text, lambda name: self.lookup(name) or ""))
            case Substitution(script=script):
                sink: list[str] = []
                self.last = yield from self._subshell(script, Io(out=sink))
                return "".join(sink).rstrip("\n")
            case HereDocument(parts=parts):
                return (yield from self.value(Word(tuple(parts))))
            case _ as never:
                assert_never(never)

    def _variable(self, part: Variable) -> Generator[Step, Any, str]:
        value = self.lookup(part.name)
        operand = (yield from self.value(part.operand)) if part.operand is not None else ""
        if value is None and not part.operator and "u" in self.options:
            yield Output(f"{part.name}: unbound variable\n", error=True)
            raise ShellExit(1)
        found = operated(value, part.operator, operand)
        if part.operator.endswith("=") and not value:
            self.variables[part.name] = found
        return found

    def lookup(self, name: str) -> str | None:
        match name:
            case "?":
                return str(self.last)
            case "#":
                return str(len(self.arguments))
            case "@" | "*":
                return " ".join(self.arguments)
            case "$":
                return "1"
            case "0":
                return "sh"
            case "-":
                return "".join(sorted(option for option in self.options if len(option) == 1))
        if name.isdigit():
            index = int(name) - 1
            return self.arguments[index] if index < len(self.arguments) else None
        return self.variables.get(name)


def _is_all_arguments(word: Word) -> bool:
    """Return whether the word is ``"$@"``, which is no field without arguments."""
    return any(isinstance(part, Variable) and part.name == "@" and part.quoted for part in word.parts)


def _point(io: Io, operator: str, sink: list[str]) -> None:
    """Redirect one or both streams into ``sink``."""
    if operator in ("2>", "2>>"):
        io.err, io.merged = sink, False
        return
    io.out = sink
    if operator == "&>":
        io.merged = True

"""Check whether the small shell can run a script, before its first command runs."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import assert_never

from syncline.cluster.machines.shell.syntax import (
    AndOr,
    Case,
    Command,
    For,
    Group,
    If,
    Loop,
    Part,
    Script,
    Simple,
    Substitution,
    Variable,
    Word,
)


def unknown_in(script: Script, programs: Container[str]) -> str:
    """Return an error for the first unknown command, or "", as far as commands can be determined."""
    for simple in _simples(script):
        name = (simple.words[0].constant or "").rsplit("/", 1)[-1] if simple.words else ""
        if simple.words and simple.words[0].constant is not None and name not in programs:
            return f"{simple.words[0].constant}: not a command of this shell"
        if name == "[[" and simple.words[-1].constant != "]]":
            return "[[ with && or || inside is not known to this shell"
    return ""


def _simples(script: Script) -> Iterator[Simple]:
    for each in script.lists:
        for command in _commands(each):
            yield from _of_command(command)


def _commands(each: AndOr) -> Iterator[Command]:
    for pipeline in (each.first, *(pipeline for _, pipeline in each.rest)):
        yield from pipeline.commands


def _of_command(command: Command) -> Iterator[Simple]:
    match command:
        case Simple():
            yield command
            words = [*command.words, *(word for _, word in command.assignments)]
            yield from _in_words([*words, *(redirect.target for redirect in command.redirects)])
        case If(branches=branches, otherwise=otherwise):
            for condition, body in branches:
                yield from _simples(condition)
                yield from _simples(body)
            if otherwise is not None:
                yield from _simples(otherwise)
        case Loop(condition=condition, body=body):
            yield from _simples(condition)
            yield from _simples(body)
        case For(words=words, body=body):
            yield from _in_words(list(words))
            yield from _simples(body)
        case Case(subject=subject, branches=branches):
            yield from _in_words([subject])
            for _, body in branches:
                yield from _simples(body)
        case Group(script=script):
            yield from _simples(script)
        case _ as never:
            assert_never(never)


def _in_words(words: list[Word]) -> Iterator[Simple]:
    for word in words:
        for part in word.parts:
            yield from _in_part(part)


def _in_part(part: Part) -> Iterator[Simple]:
    if isinstance(part, Substitution):
        yield from _simples(part.script)
    elif isinstance(part, Variable) and part.operand is not None:
        yield from _in_words([part.operand])

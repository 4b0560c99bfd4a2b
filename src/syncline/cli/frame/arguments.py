"""Parsing beyond click: booleans as in Go programs, and suggestions of similar names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

import click

BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)
"""Values accepted by Go's ``strconv.ParseBool``."""
MAX_COMPARED = 2000
"""Limit of names that one word is compared with."""


def near(word: str, known: Iterable[str]) -> list[str]:
    """Return up to three of ``known`` that are similar to ``word``, the most similar first."""
    return difflib.get_close_matches(word[:256], list(islice(known, MAX_COMPARED)), n=3, cutoff=0.6)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the end of a sentence; empty if no name is similar."""
    found = near(word, known)
    return f" Did you mean {' or '.join(repr(name) for name in found)}?" if found else ""


def go_booleans(command: click.Command, arguments: list[str]) -> list[str]:
    """Convert ``--flag=true`` and ``--flag=false`` to click's form. The last one wins, as in Go."""
    options = {
        text: param
        for param in command.params
        if isinstance(param, click.Option)
        for text in (*param.opts, *param.secondary_opts)
    }
    made: list[tuple[str, click.Option | None]] = []
    rest = iter(arguments)
    for text in rest:
        flag, equals, value = text.partition("=")
        option = options.get(flag) if text.startswith("-") else None
        if text == "--" or (option is None and isinstance(command, click.Group) and not text.startswith("-")):
            made += [(text, None), *((one, None) for one in rest)]
        elif option is None:
            made.append((text, None))
        elif not option.is_flag:
            made.append((text, None))
            taken = 0 if equals else option.nargs
            made += [(one, None) for one in islice(rest, taken)]
        elif not equals or not option.is_bool_flag:
            made.append((text, option))
        else:
            made = _with_value(made, option, flag, value)
    return [text for text, _ in made]


def _with_value(
    made: list[tuple[str, click.Option | None]], option: click.Option, flag: str, value: str
) -> list[tuple[str, click.Option | None]]:
    wanted = BOOLEANS.get(value)
    if wanted is None:
        raise click.BadOptionUsage(flag, f"{flag}={value}: write {flag}=true or {flag}=false, as Go's flags take it")
    if wanted == (flag in option.opts):
        return [*made, (option.opts[0], option)]
    if option.secondary_opts:
        return [*made, (option.secondary_opts[0], option)]
    return [one for one in made if one[1] is not option]

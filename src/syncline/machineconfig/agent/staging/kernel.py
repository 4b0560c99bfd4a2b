"""Kernel arguments of a node; pure.

What a configuration asks for, what ``rpm-ostree kargs`` is reported, and whether the running kernel has it. Source:
Machine Config Operator ``pkg/daemon/update.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["absent_arguments", "change_arguments", "missing_arguments", "parsed_arguments", "running_of"]

_SPACE = frozenset(" \t\n\v\f\r")
"""White space to the kernel."""
_ANY_SPACE = "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F)))
_ANY_SPACE += "\u205f\u3000"
"""White space to Go (``strings.TrimSpace``)."""


def split_arguments(text: str) -> list[str]:
    """Split at white space outside double quotes; there is no escape, and an open quote runs to the end."""
    found: list[str] = []
    word, quoted = "", False
    for letter in text:
        quoted ^= letter == '"'
        if letter in _SPACE and not quoted:
            found += [word] if word else []
            word = ""
        else:
            word += letter
    return [*found, word] if word else found


def parsed_arguments(given: Iterable[str] | None) -> list[str]:
    """The arguments of ``kernelArguments``: an entry may hold several."""
    return [word.strip(_ANY_SPACE) for entry in given or () for word in split_arguments(entry)]


def change_arguments(old: Iterable[str] | None, new: Iterable[str] | None) -> list[str]:
    """Arguments of ``rpm-ostree kargs``: all old ones go, then all new ones are appended, in their order."""
    gone = [f"--delete-if-present={word}" for word in parsed_arguments(old)]
    return gone + [f"--append={word}" for word in parsed_arguments(new)]


def running_of(new: Sequence[str] | None, running: str) -> list[str]:
    """Arguments of the running command line that are entries of ``new``, as often as they run."""
    wanted = set(new or ())
    return [word for word in split_arguments(running.strip(_ANY_SPACE)) if word in wanted]


def missing_arguments(new: Iterable[str] | None, running: str) -> str | None:
    """Why the running kernel is not the wanted one; None: it is. The command line is split at single spaces, so a
    quoted argument with a space is always missing, as upstream."""
    missing = absent_arguments(new, running)
    return f"missing expected kernel arguments: [{' '.join(missing)}]" if missing else None


def absent_arguments(new: Iterable[str] | None, running: str) -> list[str]:
    """Wanted ones that do not run, in their order."""
    there = running.strip(_ANY_SPACE).split(" ")
    return [word for word in parsed_arguments(new) if word not in there]

"""Kernel arguments of a node; pure.

Parses requested arguments, computes those of ``rpm-ostree kargs``, and compares with the running kernel. Source:
Machine Config Operator ``pkg/daemon/update.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_SPACE = frozenset(" \t\n\v\f\r")
"""White space to the kernel."""
_ANY_SPACE = "".join(map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F)))
_ANY_SPACE += "\u205f\u3000"
"""White space to Go (``strings.TrimSpace``)."""


def split_arguments(text: str) -> list[str]:
    """Split at white space outside double quotes. There is no escape; an open quote extends to the end."""
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
    """Return the arguments of ``kernelArguments``; an entry may contain several."""
    return [word.strip(_ANY_SPACE) for entry in given or () for word in split_arguments(entry)]


def change_arguments(old: Iterable[str] | None, new: Iterable[str] | None) -> list[str]:
    """Return the arguments of ``rpm-ostree kargs`` that delete all old ones and append all new ones, in order."""
    gone = [f"--delete-if-present={word}" for word in parsed_arguments(old)]
    return gone + [f"--append={word}" for word in parsed_arguments(new)]


def running_of(new: Sequence[str] | None, running: str) -> list[str]:
    """Return the running arguments that are entries of ``new``, with repetitions."""
    wanted = set(new or ())
    return [word for word in split_arguments(running.strip(_ANY_SPACE)) if word in wanted]


def missing_arguments(new: Iterable[str] | None, running: str) -> str | None:
    """Return why the running kernel lacks arguments, or None. The command line is split at single spaces, so a quoted
    argument with a space is always missing, as upstream."""
    missing = absent_arguments(new, running)
    return f"missing expected kernel arguments: [{' '.join(missing)}]" if missing else None


def absent_arguments(new: Iterable[str] | None, running: str) -> list[str]:
    """Return requested arguments that the running kernel lacks, in order."""
    there = running.strip(_ANY_SPACE).split(" ")
    return [word for word in parsed_arguments(new) if word not in there]

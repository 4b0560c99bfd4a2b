"""Parse command lines with kubectl's flags: ``--name=value``, ``--name value``, ``-nvalue``, ``-n value``.

Flags may precede and follow the command. Unknown flags are errors: a hook that relies on an unsupported one must fail.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from syncline.cluster.machines.tools.steps import CommandError

MAX_ARGUMENTS = 1000
"""Words per command line."""

VALUES = {
    "as",
    "as-group",
    "cascade",
    "container",
    "context",
    "dry-run",
    "field-manager",
    "field-selector",
    "filename",
    "for",
    "from",
    "from-file",
    "from-literal",
    "grace-period",
    "image",
    "keys",
    "kubeconfig",
    "namespace",
    "output",
    "patch",
    "patch-file",
    "raw",
    "replicas",
    "request-timeout",
    "resource-version",
    "selector",
    "since",
    "sort-by",
    "subresource",
    "tail",
    "template",
    "timeout",
    "to",
    "type",
    "v",
    "validate",
}
SWITCHES = {
    "all",
    "all-namespaces",
    "force",
    "force-conflicts",
    "help",
    "ignore-not-found",
    "list",
    "local",
    "no-headers",
    "now",
    "overwrite",
    "previous",
    "quiet",
    "recursive",
    "save-config",
    "server-side",
    "show-labels",
    "wait",
    "watch",
}
OPTIONAL = {"dry-run": "unchanged", "validate": "true", "cascade": "background"}
"""Flags with an optional value, and their default; a value needs ``=``."""
SHORT = {
    "A": "all-namespaces",
    "c": "container",
    "f": "filename",
    "h": "help",
    "l": "selector",
    "n": "namespace",
    "o": "output",
    "p": "patch",
    "q": "quiet",
    "R": "recursive",
    "v": "v",
    "w": "watch",
}


@dataclass(slots=True)
class Arguments:
    """``words`` are the arguments that are not flags, in order."""

    words: list[str] = field(default_factory=list)
    flags: dict[str, list[str]] = field(default_factory=dict)

    def get(self, name: str, default: str = "") -> str:
        """Return the last value given."""
        return self.flags.get(name, [default])[-1]

    def all(self, name: str) -> list[str]:
        return self.flags.get(name, [])

    def on(self, name: str) -> bool:
        return self.get(name, "false") == "true"

    @property
    def dry_run(self) -> str:
        """Return ``none``, ``client`` or ``server``; raise CommandError."""
        value = self.get("dry-run", "none")
        if value == "unchanged":
            return "client"
        if value not in ("none", "client", "server", "true", "false"):
            raise CommandError(f'error: Invalid dry-run value ({value}). Must be "none", "server", or "client".')
        return {"true": "client", "false": "none"}.get(value, value)


def parse(argv: list[str]) -> Arguments:
    """Parse a command line; raise CommandError for an unknown flag or a missing value."""
    if len(argv) > MAX_ARGUMENTS:
        raise CommandError(f"error: {len(argv)} arguments; at most {MAX_ARGUMENTS} are read")
    arguments = Arguments()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            arguments.words += rest
            break
        if word.startswith("--"):
            _long(arguments, word[2:], rest)
        elif word.startswith("-") and len(word) > 1:
            _short(arguments, word[1:], rest)
        else:
            arguments.words.append(word)
    return arguments


def _long(arguments: Arguments, text: str, rest: list[str]) -> None:
    name, has_value, value = text.partition("=")
    if name not in VALUES and name not in SWITCHES:
        raise CommandError(f"error: unknown flag: --{name}")
    if not has_value:
        value = _value(name, f"--{name}", rest)
    arguments.flags.setdefault(name, []).append(value)


def _short(arguments: Arguments, text: str, rest: list[str]) -> None:
    name = SHORT.get(text[0])
    if name is None:
        raise CommandError(f"error: unknown shorthand flag: '{text[0]}' in -{text}")
    value = text[1:].removeprefix("=")
    if name in SWITCHES:
        arguments.flags.setdefault(name, []).append("true")
        if value:
            _short(arguments, value, rest)
        return
    arguments.flags.setdefault(name, []).append(value or _value(name, f"-{text[0]}", rest))


def _value(name: str, shown: str, rest: list[str]) -> str:
    if name in SWITCHES:
        return "true"
    if name in OPTIONAL:
        return OPTIONAL[name]
    if not rest:
        raise CommandError(f"error: flag needs an argument: {shown}")
    return rest.pop(0)

"""``syncline butane``: a drop-in for the ``butane`` program, version 0.29.

Flags, exit codes, output and reports are the original's, so that scripts need only another name. Reads the document
from a file or from standard input, and local files only below ``--files-dir``.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from syncline.cli.frame.terminal import plain_bytes, print_exact

MAX_LOCAL_BYTES: Final = 512 * 1024 * 1024
"""Limit of one local file in bytes, far above what a config can carry."""

_USAGE: Final = """\
Usage: syncline butane [options] [input-file]
Options:
  -c, --check                     check config without producing output
      --color string[="always"]   control color output: "auto", "always", or "never" (default "auto")
  -d, --files-dir string          allow embedding local files from this directory
  -h, --help                      show usage and exit
      --hints                     also tell what butane does not: contents and texts that will surprise
  -o, --output string             write to output file instead of stdout
  -p, --pretty                    output formatted json
  -r, --raw                       never wrap in a MachineConfig; force Ignition output
      --raw-errors                show raw errors, rather than pretty printing them
      --safe-yaml                 write MachineConfigs as kubectl does, which keeps every text and number
  -s, --strict                    fail on any warning
  -V, --version                   print the version and exit
"""

_SWITCHES: Final = {"check": "c", "help": "h", "pretty": "p", "raw": "r", "raw-errors": "", "strict": "s"} | {
    "version": "V",
    "hints": "",
    "safe-yaml": "",
}
_TEXTS: Final = {"color": "", "colour": "", "files-dir": "d", "input": "", "output": "o"}
_SHORT: Final = {short: name for name, short in {**_SWITCHES, **_TEXTS}.items() if short}
_TRUTHS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class DiskFiles:
    """Files below one directory of the disk, with links followed, as upstream; paths are already checked."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    @property
    def directory(self) -> str:
        return self._directory

    def absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(os.getcwd(), path)).replace("//", "/")

    def read(self, path: str) -> bytes:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if found.st_size > MAX_LOCAL_BYTES:
            raise OSError(errno.EFBIG, f"more than {MAX_LOCAL_BYTES} bytes", path)
        with open(path, "rb") as stream:
            return stream.read(MAX_LOCAL_BYTES)

    def stat(self, path: str) -> Any:
        return self._node(os.stat(path))

    def lstat(self, path: str) -> Any:
        return self._node(os.lstat(path))

    def names(self, path: str) -> list[str]:
        return os.listdir(path)

    def target(self, path: str) -> str:
        return os.readlink(path)

    def _node(self, found: os.stat_result) -> Any:
        from syncline.ignition.butane.files import Kind, Node

        mode = found.st_mode
        if stat.S_ISDIR(mode):
            return Node(Kind.DIRECTORY)
        if stat.S_ISLNK(mode):
            return Node(Kind.LINK)
        return Node(Kind.FILE, bool(mode & 0o111)) if stat.S_ISREG(mode) else Node(Kind.OTHER)


class UsageError(Exception):
    """The arguments are not a valid command line of this program."""


@dataclass(slots=True)
class _Words:
    """A command line, parsed as Go's pflag does: flags and files in any order, ``--`` ends the flags."""

    on: dict[str, bool] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    deprecated: list[str] = field(default_factory=list)

    def read(self, words: list[str]) -> None:
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--":
                self.files += left
                return
            if word.startswith("--"):
                self._long(word, left)
            elif word.startswith("-") and word != "-":
                self._short(word, left)
            else:
                self.files.append(word)

    def _long(self, word: str, left: list[str]) -> None:
        name, given, value = word[2:].partition("=")
        if not name or name.startswith("-"):
            raise UsageError(f"bad flag syntax: {word}")
        if name in _SWITCHES:
            self._switch(name, value if given else "true")
        elif name not in _TEXTS:
            raise UsageError(f"unknown flag: --{name}")
        elif given:
            self._text(name, value)
        elif name in ("color", "colour"):
            self._text(name, "always")
        elif left:
            self._text(name, left.pop(0))
        else:
            raise UsageError(f"flag needs an argument: --{name}")

    def _short(self, word: str, left: list[str]) -> None:
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            name = _SHORT.get(letter)
            if name is None:
                shown = chr(letter.encode("utf-8", "surrogateescape")[0])  # of a non-ASCII letter its first byte
                raise UsageError(f"unknown shorthand flag: {shown!r} in -{letter}{letters}")
            if name in _SWITCHES and len(letters) > 1 and letters[0] == "=":
                self._switch(name, letters[1:])
                return
            if name in _SWITCHES:
                self._switch(name, "true")
                continue
            if letters:
                self._text(name, letters[1:] if letters[0] == "=" and len(letters) > 1 else letters)
            elif left:
                self._text(name, left.pop(0))
            else:
                raise UsageError(f"flag needs an argument: {letter!r} in {word}")
            return

    def _switch(self, name: str, value: str) -> None:
        if value not in _TRUTHS:
            flag = f"-{_SWITCHES[name]}, --{name}" if _SWITCHES[name] else f"--{name}"
            raise UsageError(
                f'invalid argument "{value}" for "{flag}" flag: strconv.ParseBool: parsing "{value}": invalid syntax'
            )
        self.on[name] = _TRUTHS[value]

    def _text(self, name: str, value: str) -> None:
        if name == "input":
            self.deprecated.append("Flag --input has been deprecated, specify filename directly on command line")
        self.texts["color" if name == "colour" else name] = value


class _Verbatim(click.Command):
    """Passes all arguments to the command unparsed, so that flags mean the same as for the original."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.params["words"] = tuple(args)
        return []

    def get_help(self, ctx: click.Context) -> str:
        return _USAGE.rstrip("\n")


@click.command(cls=_Verbatim, add_help_option=False)
def butane(words: tuple[str, ...]) -> None:
    """Translate Butane into Ignition or MachineConfigs."""
    read = _Words()
    try:
        read.read(list(words))
        source = read.texts.get("input", "")
        if len(read.files) == 1 and not source:
            source = read.files[0]
        elif read.files:
            raise UsageError("")
    except UsageError as problem:
        _tell("".join(f"{line}\n" for line in read.deprecated) + _USAGE + (f"{problem}\n" if str(problem) else ""))
        sys.exit(2)
    _tell("".join(f"{line}\n" for line in read.deprecated))
    if read.on.get("help"):
        click.echo(_USAGE, nl=False)
    elif read.on.get("version"):
        from syncline import __version__

        click.echo(f"Butane v0.29.0 (syncline {__version__})")
    else:
        _run(read, source)


def _tell(text: str | bytes) -> None:
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    click.echo(plain_bytes(raw), nl=False, err=True)


def _fail(message: str) -> NoReturn:
    _tell(f"{message}\n")
    sys.exit(1)


def _input(source: str) -> bytes:
    """Return the whole document; if it exceeds the limit, one byte more than allowed."""
    from syncline.ignition.butane.reading import BUDGET

    if not source:
        content: bytes = sys.stdin.buffer.read(BUDGET.bytes + 1)
        return content
    try:
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        _fail(f"failed to open {source}: open {source}: {_reason(error)}")
    try:
        with open(handle, "rb", closefd=True) as stream:
            return stream.read(BUDGET.bytes + 1)
    except OSError as error:
        _fail(f"failed to read {source}: read {source}: {_reason(error)}")


def _reason(error: OSError | ValueError) -> str:
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()


def _colored(choice: str) -> bool:
    if choice in ("always", "yes"):
        return True
    if choice != "auto" or "NO_COLOR" in os.environ:
        return False
    try:
        return stat.S_ISCHR(os.fstat(sys.stderr.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def _run(read: _Words, source: str) -> None:
    from syncline.ignition.butane.transpile import Options, transpile

    document = _input(source)
    directory = read.texts.get("files-dir", "")
    files = DiskFiles(directory) if directory else None
    on = read.on
    options = Options(on.get("pretty", False), on.get("raw", False), files)
    done = transpile(document, options._replace(hints=on.get("hints", False), safe_yaml=on.get("safe-yaml", False)))
    report = done.report + done.hints
    if on.get("raw-errors"):
        _tell(str(report))
    elif report:
        from syncline.ignition.butane.report_text import boxed

        shown = boxed(report, source or "<stdin>", document)
        if _colored(read.texts.get("color", "auto")) and plain_bytes(shown) == shown:
            click.echo(boxed(report, source or "<stdin>", document, colored=True), nl=False, err=True)
        else:
            _tell(shown)
    if done.output is None:
        _fail(f"Error translating config: {done.error}")
    if on.get("strict") and done.report:
        _fail("Config produced warnings and --strict was specified")
    if not on.get("check"):
        _write(done.output + b"\n", read.texts.get("output", ""))


def _write(output: bytes, target: str) -> None:
    if not target:
        print_exact(output)
        return
    try:
        Path(target).write_bytes(output)
    except (OSError, ValueError) as error:
        _fail(f"failed to open {target}: open {target}: {_reason(error)}")

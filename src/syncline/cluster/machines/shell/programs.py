"""The commands of the small shell: POSIX built-ins, a few text tools, and ``oc``."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.machines.scripted.stages import duration_s
from syncline.cluster.machines.shell.conditions import truth
from syncline.cluster.machines.shell.interpreter import Io, LoopControl, Program, Run, Shell, ShellExit
from syncline.cluster.machines.shell.syntax import ShellError
from syncline.cluster.machines.tools.oc import run as run_oc
from syncline.cluster.machines.tools.steps import Output, Session, Sleep, Step

MAX_SEQUENCE = 100_000


def _sleep(shell: Shell, words: list[str], io: Io) -> Run:
    try:
        seconds = sum(duration_s(word) for word in words[1:])
    except (ValueError, KeyError):
        yield from shell.say(io, f"sleep: invalid time interval '{' '.join(words[1:])}'\n", error=True)
        return 1
    if len(words) < 2:
        yield from shell.say(io, "sleep: missing operand\n", error=True)
        return 1
    yield Sleep(seconds)
    return 0


def _echo(shell: Shell, words: list[str], io: Io) -> Run:
    rest, newline, escapes = words[1:], "\n", False
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        newline = "" if "n" in rest[0] else newline
        escapes = escapes or "e" in rest[0]
        rest = rest[1:]
    text = " ".join(rest)
    yield from shell.say(io, (_escaped(text) if escapes else text) + newline)
    return 0


def _escaped(text: str) -> str:
    named = {"n": "\n", "t": "\t", "\\": "\\", "r": "\r"}
    return re.sub(r"\\([nt\\r])", lambda found: named[found.group(1)], text)


def _printf(shell: Shell, words: list[str], io: Io) -> Run:
    if len(words) < 2:
        return 2
    form, values = _escaped(words[1]), words[2:]
    pieces = re.findall(r"%%|%[-0-9.]*[sdiq]|[^%]+|%", form)
    wanted = sum(piece.startswith("%") and piece not in ("%%", "%") for piece in pieces)
    text = ""
    while True:
        for piece in pieces:
            if piece == "%%" or not piece.startswith("%") or piece == "%":
                text += "%" if piece == "%%" else piece
                continue
            value = values.pop(0) if values else ""
            number = piece[-1] in "di"
            text += (piece[:-1] + ("d" if number else "s")) % (int(value or 0) if number else value)
        if not values or not wanted:
            break
    yield from shell.say(io, text)
    return 0


def _constant(code: int) -> Program:
    def run(shell: Shell, words: list[str], io: Io) -> Run:
        yield from ()
        return code

    return run


def _exit(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    raise ShellExit(int(words[1]) % 256 if len(words) > 1 and words[1].lstrip("-").isdigit() else shell.last)


def _loop_control(go_on: bool) -> Program:
    def run(shell: Shell, words: list[str], io: Io) -> Run:
        yield from ()
        raise LoopControl(go_on, int(words[1]) if len(words) > 1 and words[1].isdigit() else 1)

    return run


def _test(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    closing = {"[": "]", "[[": "]]"}.get(words[0])
    if closing is not None:
        if words[-1] != closing:
            raise ShellError(f"{words[0]} is not closed by {closing}")
        words = words[:-1]
    return 0 if truth(words[1:], shell.files, patterns=closing == "]]") else 1


def _set(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        if word == "--":
            shell.arguments = rest
            break
        if word[:1] not in "+-" or len(word) < 2:
            raise ShellError(f"set {word} is not known to this shell")
        change = shell.options.add if word[0] == "-" else shell.options.discard
        for letter in word[1:]:
            if letter == "o":
                name = rest.pop(0) if rest else ""
                change({"errexit": "e", "nounset": "u", "xtrace": "x"}.get(name, name))
            else:
                change(letter)
    return 0


def _export(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if equals:
            shell.variables[name] = value
        shell.exported.add(name)
    return 0


def _unset(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    for word in words[1:]:
        shell.variables.pop(word, None)
    return 0


def _shift(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    shell.arguments = shell.arguments[int(words[1]) if len(words) > 1 else 1 :]
    return 0


def _read(shell: Shell, words: list[str], io: Io) -> Run:
    """Read one line of the standard input, once: a reading loop needs a stream, which this shell lacks."""
    yield from ()
    names = [word for word in words[1:] if not word.startswith("-")] or ["REPLY"]
    line, newline, _ = io.stdin.partition("\n")
    fields = line.split(None, len(names) - 1)
    for index, name in enumerate(names):
        shell.variables[name] = fields[index] if index < len(fields) else ""
    return 0 if newline else 1


def _command(shell: Shell, words: list[str], io: Io) -> Run:
    """Run ``command -v NAME``, or a command after ``command``, ``exec``, ``env`` or ``timeout``."""
    rest = words[1:]
    if words[0] in ("command", "type", "which") and (rest[:1] == ["-v"] or words[0] != "command"):
        names = [word for word in rest if not word.startswith("-")]
        found = [name for name in names if name in shell.programs]
        yield from shell.say(io, "".join(f"/usr/bin/{name}\n" for name in found))
        return 0 if found == names else 1
    if words[0] == "timeout" and rest:
        rest = rest[1:]
    program = shell.programs.get(rest[0].rsplit("/", 1)[-1]) if rest else None
    if program is None:
        raise ShellError(f"{' '.join(words[:2])}: not a command of this shell")
    code = yield from program(shell, rest, io)
    if words[0] == "exec":
        raise ShellExit(code)
    return code


def _date(shell: Shell, words: list[str], io: Io) -> Run:
    """Run ``date`` or ``date +FORMAT``, in UTC and the shell's time."""
    form = next((word[1:] for word in words[1:] if word.startswith("+")), "")
    if any(word.startswith("-") and word not in ("-u", "--utc") for word in words[1:]):
        raise ShellError("date with options is not known to this shell")
    now = shell.now()
    if form:
        text = now.strftime(form.replace("%s", str(int(now.timestamp()))))
    else:
        text = format_time(now)
    yield from shell.say(io, text + "\n")
    return 0


# -- text tools ------------------------------------------------------------------------------------------------------


def _input(shell: Shell, names: list[str], io: Io) -> str:
    """Return the content of the named files, or the standard input."""
    if not names or names == ["-"]:
        return io.stdin
    text = ""
    for name in names:
        if name not in shell.files and name != "/dev/null":
            raise ShellError(f"{name}: only files that the script wrote can be read")
        text += shell.files.get(name, "")
    return text


def _filter(change: Callable[[list[str], list[str]], tuple[list[str], int]], operands: int = 0) -> Program:
    """Return a tool that maps lines to lines; ``operands`` is the number of arguments that are not files."""

    def run(shell: Shell, words: list[str], io: Io) -> Generator[Step, Any, int]:
        flags = [word for word in words[1:] if word.startswith("-") and word != "-"]
        plain = [word for word in words[1:] if not word.startswith("-") or word == "-"]
        lines = _input(shell, plain[operands:], io).splitlines()
        found, code = change(flags + plain[:operands], lines)
        yield from shell.say(io, "".join(line + "\n" for line in found))
        return code

    return run


def _cat(shell: Shell, words: list[str], io: Io) -> Run:
    yield from shell.say(io, _input(shell, words[1:], io))
    return 0


def _remove(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    for word in words[1:]:
        shell.files.pop(word, None)
    return 0


def _touch(shell: Shell, words: list[str], io: Io) -> Run:
    yield from ()
    for word in words[1:]:
        shell.files.setdefault(word, "")
    return 0


def _grep(arguments: list[str], lines: list[str]) -> tuple[list[str], int]:
    flags = "".join(argument[1:] for argument in arguments[:-1])
    if set(flags) - set("qvicEFwxe"):
        raise ShellError(f"grep {' '.join(arguments[:-1])} is not known to this shell")
    pattern = re.escape(arguments[-1]) if "F" in flags else _regular(arguments[-1], extended="E" in flags)
    pattern = rf"\b(?:{pattern})\b" if "w" in flags else pattern
    matcher = re.compile(f"^(?:{pattern})$" if "x" in flags else pattern, re.IGNORECASE if "i" in flags else 0)
    found = [line for line in lines if bool(matcher.search(line)) != ("v" in flags)]
    code = 0 if found else 1
    if "c" in flags:
        return [str(len(found))], code
    return ([] if "q" in flags else found), code


def _regular(pattern: str, *, extended: bool) -> str:
    """Return a pattern as an extended expression; a basic one has operators with a backslash."""
    if extended:
        return pattern
    return re.sub(r"\\?[(){}|+?]", lambda found: found.group()[1:] or "\\" + found.group(), pattern)


def _wc(arguments: list[str], lines: list[str]) -> tuple[list[str], int]:
    words, characters = sum(len(line.split()) for line in lines), sum(len(line) + 1 for line in lines)
    counts = {"-l": len(lines), "-w": words, "-c": characters}
    return [" ".join(str(counts[flag]) for flag in (arguments or list(counts)) if flag in counts)], 0


def _cut_lines(first: bool) -> Callable[[list[str], list[str]], tuple[list[str], int]]:
    def change(arguments: list[str], lines: list[str]) -> tuple[list[str], int]:
        numbers = [re.sub(r"\D", "", argument) for argument in arguments]
        count = int(next((number for number in numbers if number), "10"))
        return (lines[:count] if first else lines[-count:] if count else []), 0

    return change


def _sort(arguments: list[str], lines: list[str]) -> tuple[list[str], int]:
    kept = list(dict.fromkeys(lines)) if "-u" in arguments else lines
    return sorted(kept, reverse="-r" in arguments), 0


def _tr(shell: Shell, words: list[str], io: Io) -> Run:
    if len(words) == 3 and words[1] == "-d":
        text = "".join(char for char in io.stdin if char not in _escaped(words[2]))
    elif len(words) == 3 and len(_escaped(words[1])) == len(_escaped(words[2])):
        text = io.stdin.translate(str.maketrans(_escaped(words[1]), _escaped(words[2])))
    else:
        raise ShellError(f"{' '.join(words)} is not known to this shell")
    yield from shell.say(io, text)
    return 0


def _seq(shell: Shell, words: list[str], io: Io) -> Run:
    numbers = [int(word) for word in words[1:] if word.lstrip("-").isdigit()]
    if len(numbers) != len(words) - 1 or not 1 <= len(numbers) <= 3:
        raise ShellError(f"{' '.join(words)} is not known to this shell")
    first, step, last = (1, 1, numbers[0]) if len(numbers) == 1 else (numbers[0], 1, numbers[-1])
    step = numbers[1] if len(numbers) == 3 else step
    found = range(first, last + (1 if step > 0 else -1), step or 1)
    if len(found) > MAX_SEQUENCE:
        raise ShellError(f"{' '.join(words)}: more than {MAX_SEQUENCE} numbers")
    yield from shell.say(io, "".join(f"{number}\n" for number in found))
    return 0


def _shell(shell: Shell, words: list[str], io: Io) -> Run:
    """Run ``sh -c TEXT``."""
    from syncline.cluster.machines.shell.parser import parse

    if len(words) < 3 or "c" not in words[1]:
        raise ShellError(f"{words[0]} without -c is not known to this shell")
    inner = Shell(shell.programs, dict(shell.variables), shell.now, words[4:], set(shell.exported), shell.files)
    inner.steps = shell.steps
    try:
        return (yield from inner.script(parse(words[2]), io))
    except ShellExit as exit_:
        return exit_.code
    finally:
        shell.steps = inner.steps


BUILTIN: dict[str, Program] = {
    ":": _constant(0),
    "[": _test,
    "[[": _test,
    "bash": _shell,
    "break": _loop_control(False),
    "cat": _cat,
    "cd": _constant(0),
    "command": _command,
    "continue": _loop_control(True),
    "date": _date,
    "echo": _echo,
    "env": _command,
    "exec": _command,
    "exit": _exit,
    "export": _export,
    "false": _constant(1),
    "grep": _filter(_grep, operands=1),
    "egrep": _filter(lambda arguments, lines: _grep(["-E", *arguments], lines), operands=1),
    "head": _filter(_cut_lines(True)),
    "local": _export,
    "mkdir": _constant(0),
    "printf": _printf,
    "read": _read,
    "rm": _remove,
    "seq": _seq,
    "set": _set,
    "sh": _shell,
    "shift": _shift,
    "sleep": _sleep,
    "sort": _filter(_sort),
    "sync": _constant(0),
    "tail": _filter(_cut_lines(False)),
    "test": _test,
    "timeout": _command,
    "touch": _touch,
    "tr": _tr,
    "trap": _constant(0),
    "true": _constant(0),
    "type": _command,
    "unset": _unset,
    "wc": _filter(_wc),
    "which": _command,
}


def oc_program(session: Callable[[str], Session | str]) -> Program:
    """Return ``oc`` or ``kubectl``; ``session`` returns the connection to the cluster, or an error."""

    def run(shell: Shell, words: list[str], io: Io) -> Run:
        found = session(words[0].rsplit("/", 1)[-1])
        if isinstance(found, str):
            yield from shell.say(io, found + "\n", error=True)
            return 1

        def read(name: str) -> bytes:
            if name == "-":
                return io.stdin.encode()
            if name not in shell.files:
                raise FileNotFoundError(2, "No such file or directory", name)
            return shell.files[name].encode()

        found.read = read
        steps = run_oc(words[1:], found)
        answer: Any = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as stop:
                return int(stop.value)
            if isinstance(step, Output):
                answer = None
                yield from shell.say(io, step.text, error=step.error)
            else:
                answer = yield step

    return run

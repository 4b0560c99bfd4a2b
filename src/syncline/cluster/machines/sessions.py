"""A command in a container, run by ``exec``: threads carry its streams until it ends or the client leaves.

The process runtime creates it for ``pods/exec``; it implements :class:`syncline.kube.client.Session`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

READ_BYTES = 32 * 1024
STDOUT, STDERR = 1, 2


class _Process(Protocol):
    def wait(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Pipes:
    """Our ends of a command's streams; a terminal has one for all, and ``error`` is -1. ``input`` -1: none."""

    input: int
    output: int
    error: int = -1

    def every(self) -> set[int]:
        return {each for each in (self.input, self.output, self.error) if each >= 0}


class CommandSession:
    """``kill`` ends the command; ``left`` is called once, at the end."""

    def __init__(self, process: _Process, pipes: Pipes, kill: Callable[[], None], left: Callable[[], None]) -> None:
        self._process = process
        self._pipes = pipes
        self._kill = kill
        self._left = left
        self._open = pipes.every()
        self._steps = 0
        """Incremented when a piece of output is read, and when it is delivered."""
        self._lock = threading.Lock()

    def start(self, tell: Callable[[int, bytes], None], ended: Callable[[int], None]) -> None:
        """``tell`` gets a stream's number and its output, ``ended`` the exit code; both from other threads."""
        readers = [threading.Thread(target=self._read, args=(self._pipes.output, STDOUT, tell), daemon=True)]
        if self._pipes.error >= 0:
            readers.append(threading.Thread(target=self._read, args=(self._pipes.error, STDERR, tell), daemon=True))
        for reader in readers:
            reader.start()
        threading.Thread(target=self._finish, args=(readers, ended), name="exec", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Write input; block while the command does not read, drop what it can never read."""
        with contextlib.suppress(OSError):
            rest = memoryview(data)
            while rest and self._pipes.input in self._open:
                rest = rest[os.write(self._pipes.input, rest) :]

    def close_input(self) -> None:
        """Close the input, except a terminal's, whose end is a character."""
        if self._pipes.input != self._pipes.output:
            self._close(self._pipes.input)

    def resize(self, columns: int, rows: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._pipes.output, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        self._kill()

    def _read(self, number: int, stream: int, tell: Callable[[int, bytes], None]) -> None:
        with contextlib.suppress(OSError):  # a terminal whose other end is closed reports an error
            while data := os.read(number, READ_BYTES):
                self._steps += 1
                tell(stream, data)
                self._steps += 1

    def _finish(self, readers: list[threading.Thread], ended: Callable[[int], None]) -> None:
        code = self._process.wait()
        for reader in readers:
            before = -1
            while reader.is_alive() and self._steps != before:
                before = self._steps
                reader.join(LAST_OUTPUT_S)
        for number in sorted(self._open):
            self._close(number)
        self._left()
        ended(code if code >= 0 else 128 - code)

    def _close(self, number: int) -> None:
        with self._lock:
            if number not in self._open:
                return
            self._open.discard(number)
        os.close(number)


LAST_OUTPUT_S = 5.0
"""Seconds to wait for output after the command's end while a client reads; its children may keep the streams open."""

"""A layer below SQLite that sees every write, sync and truncation, and lets some of them fail: its VFS, wrapped.

:func:`installed` makes it the default for every connection that this process opens from then on. Opened files keep
SQLite's own methods but for three, which are told to a :class:`Faults` first. What it has seen can be played back as a
power cut would leave it (:class:`Platter`): what was synced is there, of what was not each sector may or may not be.
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import ctypes.util
import os
import random
import signal
from collections.abc import Iterator
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p, cast
from dataclasses import dataclass, field
from pathlib import Path

SECTOR = 512
"""What a disk writes whole: SQLite, like every database, counts on it for the 32 bytes of a log's header."""

_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))
"""The name is passed on as the pointer it is: SQLite keeps it."""
_Delete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Vfs(Structure):
    _fields_ = (
        ("version", c_int),
        ("file_size", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
        ("delete", c_void_p),
        ("others", c_void_p * 16),
    )


class _Methods(Structure):
    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("others", c_void_p * 13),
    )


class _File(Structure):
    _fields_ = (("methods", c_void_p),)


@dataclass(frozen=True)
class Step:
    """``what`` is write, truncate, sync, delete, or told (``at`` is then a revision that was acknowledged)."""

    what: str
    name: str = ""
    at: int = 0
    content: bytes = b""


@dataclass
class Faults:
    """``fails`` is asked before each step: 0, or the code of SQLite with which it fails instead."""

    fails: dict[tuple[str, int], int] = field(default_factory=dict)
    """(step, number of such steps so far) → code; the first has number 1. A failing write leaves its first half."""
    kill_at: int = 0
    """The process kills itself before this step: counted over all files, or in ``kill_in`` alone."""
    kill_in: str = ""
    keep: bool = False
    """Whether steps are kept for playing back."""
    steps: list[Step] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    here: int = 0
    """Steps that count for ``kill_at``."""
    failed: list[str] = field(default_factory=list)

    def before(self, what: str, name: str) -> int:
        self.counts[what] = self.counts.get(what, 0) + 1
        self.here += not self.kill_in or Path(name).name == self.kill_in
        if self.kill_at and self.here >= self.kill_at:
            os.write(2, f"killed before the {what} of {Path(name).name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        code = self.fails.get((what, self.counts[what]), 0)
        if code:
            self.failed.append(f"{what} of {name}")
        return code

    def note(self, step: Step) -> None:
        if self.keep:
            self.steps.append(step)


def available() -> bool:
    """Whether SQLite is a library of its own here, which can be reached."""
    return _library() is not None


def _library() -> ctypes.CDLL | None:
    for name in (_sqlite3.__file__, ctypes.util.find_library("sqlite3")):
        if name:
            with contextlib.suppress(OSError, AttributeError):
                library = ctypes.CDLL(name)
                library.sqlite3_vfs_find.restype = c_void_p
                return library
    return None


class _Layer:
    """The callbacks, which live as long as the process: SQLite keeps pointers to them."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        library = _library()
        assert library is not None, "SQLite cannot be reached: see available()"
        self._real = cast(library.sqlite3_vfs_find(None), POINTER(_Vfs)).contents
        self._files: dict[int, tuple[str, _Methods]] = {}
        self._tables: dict[int, _Methods] = {}
        self._originals: dict[int, _Methods] = {}
        self._callbacks = (
            _Open(self._open),
            _Delete(self._delete),
            _Write(self._write),
            _Truncate(self._truncate),
            _Sync(self._sync),
        )
        self.vfs = _Vfs.from_buffer_copy(self._real)
        self.vfs.name, self.vfs.next = b"faulty", None
        self.vfs.open, self.vfs.delete = (cast(each, c_void_p).value for each in self._callbacks[:2])
        self._library = library

    def register(self) -> None:
        assert self._library.sqlite3_vfs_register(byref(self.vfs), 1) == 0

    def unregister(self) -> None:
        assert self._library.sqlite3_vfs_register(byref(self._real), 1) == 0

    def _open(self, vfs: int, name: int | None, file: int, flags: int, out: object) -> int:
        code: int = _Open(self._real.open)(vfs, name, file, flags, out)
        opened = cast(file, POINTER(_File)).contents
        if code == 0 and opened.methods and name:
            original = opened.methods
            if original not in self._tables:
                self._originals[original] = cast(original, POINTER(_Methods)).contents
                table = _Methods.from_buffer_copy(self._originals[original])
                table.write, table.truncate, table.sync = (cast(c, c_void_p).value for c in self._callbacks[2:])
                self._tables[original] = table
            self._files[file] = Path(os.fsdecode(ctypes.string_at(name))).name, self._originals[original]
            opened.methods = ctypes.addressof(self._tables[original])
        return code

    def _delete(self, vfs: int, name: bytes, sync: int) -> int:
        self.faults.before("delete", os.fsdecode(name))
        self.faults.note(Step("delete", Path(os.fsdecode(name)).name))
        return int(_Delete(self._real.delete)(vfs, name, sync))

    def _write(self, file: int, content: int, size: int, at: int) -> int:
        name, methods = self._files[file]
        real = _Write(methods.write)
        code = self.faults.before("write", name)
        if code:
            real(file, content, size // 2, at)
            return code
        self.faults.note(Step("write", name, at, ctypes.string_at(content, size) if self.faults.keep else b""))
        return int(real(file, content, size, at))

    def _truncate(self, file: int, size: int) -> int:
        name, methods = self._files[file]
        code = self.faults.before("truncate", name)
        if code:
            return code
        self.faults.note(Step("truncate", name, size))
        return int(_Truncate(methods.truncate)(file, size))

    def _sync(self, file: int, flags: int) -> int:
        name, methods = self._files[file]
        code = self.faults.before("sync", name)
        if code:
            return code  # and what it was to make durable may or may not be
        done = int(_Sync(methods.sync)(file, flags))
        self.faults.note(Step("sync", name))
        return done


_LAYERS: list[_Layer] = []


@contextlib.contextmanager
def installed(faults: Faults) -> Iterator[Faults]:
    """Every file that SQLite opens in the block goes through ``faults``; close them before it ends."""
    layer = _Layer(faults)
    _LAYERS.append(layer)
    layer.register()
    try:
        yield faults
    finally:
        layer.unregister()


# -- power cuts -------------------------------------------------------------------------------------------------------


class Platter:
    """What is surely on disk of each file, and the steps since its last sync."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.synced: dict[str, bytes] = dict(files)
        self.later: dict[str, list[Step]] = {}

    def take(self, step: Step) -> None:
        if step.what == "sync":
            self.synced[step.name] = _simulated(self.synced.get(step.name, b""), self.later.pop(step.name, []), None)
        elif step.what != "told":
            self.later.setdefault(step.name, []).append(step)

    def unsynced(self) -> int:
        return sum(map(len, self.later.values()))

    def after_power_cut(self, chance: random.Random | None) -> dict[str, bytes]:
        """The files as they may be found; ``chance`` None: all that was written arrived."""
        names = {**self.synced, **self.later}
        found = {}
        for name in names:
            later = self.later.get(name, [])
            if any(step.what == "delete" for step in later) and (chance is None or chance.random() < 0.5):
                continue
            found[name] = _simulated(self.synced.get(name, b""), later, chance)
        return found


def _simulated(content: bytes, steps: list[Step], chance: random.Random | None) -> bytes:
    image = bytearray(content)
    for step in steps:
        if step.what == "truncate":
            if chance is None or chance.random() < 0.5:
                del image[step.at :]
        elif step.what == "write":
            if len(image) < step.at + len(step.content):
                image.extend(bytes(step.at + len(step.content) - len(image)))
            start, last = step.at, step.at + len(step.content)
            while start < last:
                end = min(last, (start // SECTOR + 1) * SECTOR)
                if chance is None or chance.random() < 0.5:
                    image[start:end] = step.content[start - step.at : end - step.at]
                start = end
        elif step.what == "delete":
            image.clear()
    return bytes(image)

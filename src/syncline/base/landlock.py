"""Restricts the files that a process may access, by a Landlock ruleset (Linux 5.13 and later): :func:`confine`.

The render workers (``sources/workers/main.py``) and the process that runs scripts (``assembly/scripts/child.py``) call
it. Whatever a repository makes a library do, it can access the system's programs and one folder, not the files of the
user. Imports only the standard library.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System call numbers, equal on all architectures."""
_VERSION, _BENEATH = 1, 1
_EXECUTE, _WRITE, _READ, _LIST, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_KNOWN = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
"""Rights by version of the interface; a handled right that is not granted is refused."""
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE

_SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom")
_PACKAGES = ("site-packages", "dist-packages")


def programs() -> Iterator[str]:
    """Yield the directories of this interpreter, its packages, and the machine's programs and libraries."""
    yield from _SYSTEM
    yield from (sys.prefix, sys.base_prefix)
    yield from (path for path in sys.path if os.path.basename(path) in _PACKAGES)
    found = importlib.util.find_spec("syncline")
    yield from (found.submodule_search_locations or ()) if found is not None else ()
    for name in ("PATH", "LD_LIBRARY_PATH"):
        yield from (path for path in os.environ.get(name, "").split(os.pathsep) if os.path.isabs(path))


def confine(reading: Iterable[str], writing: Iterable[str] = ()) -> bool:
    """Restrict this process and its children: they may open, list and run files below ``reading``, do anything below
    ``writing``, and nothing else. Return False if the kernel has no Landlock. Give up all other privileges before: they
    could undo it. Raises OSError if the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION)
    if version < 1:
        return False
    handled = _KNOWN.get(version, _KNOWN[3])
    attributes = struct.pack("=Q", handled)
    ruleset = _done(libc, libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0))
    try:
        rules = [(path, _EXECUTE | _READ | _LIST) for path in dict.fromkeys(reading)]
        rules += [("/dev/null", _READ | _WRITE | _TRUNCATE), *((path, handled) for path in writing)]
        for path, rights in rules:
            if os.path.isabs(path) and os.path.realpath(path) != "/":
                _grant(libc, ruleset, path, rights & handled)
        _done(libc, libc.syscall(_RESTRICT, ruleset, 0))
    finally:
        os.close(ruleset)
    return True


def _grant(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not on this machine
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, opened)
        _done(libc, libc.syscall(_ADD, ruleset, _BENEATH, rule, 0))
    finally:
        os.close(opened)


def _done(libc: ctypes.CDLL, answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer

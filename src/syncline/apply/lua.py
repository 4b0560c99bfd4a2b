"""Runs a user's Lua script as Argo CD does, once and sandboxed: values in, one value out.

:mod:`syncline.apply.health.overrides` calls it through a :class:`LuaRunner`. Needs the extra ``lua``. Every run has its
own interpreter without files, processes, environment and network, with limits of memory and time. A search pattern can
still block C code for long, so users' scripts run in a worker process that can be killed (``assembly/scripts/lua.py``);
never call :func:`run_guarded` with them in a process that has other work.

Remaining difference from gopher-lua: a fraction in ``..`` prints with 14 digits, not 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from math import isfinite
from typing import Any, Protocol


class LuaFailed(RuntimeError):
    """The script is invalid, failed, or exceeded a limit; the text is the interpreter's."""


class LuaRests(LuaFailed):
    """The script took too long, now or recently: its result is unknown, and it is run again later."""


OVERRAN = "the script ran longer than "
"""The message of ``lua_guard.lua``."""


class LuaMissing(LuaFailed):
    """The extra ``lua`` is not installed."""

    def __init__(self) -> None:
        super().__init__("Lua scripts need the package lupa: pip install lupa")


@dataclass(frozen=True, slots=True)
class LuaLimits:
    seconds: float = 1.0
    """Computing time, as upstream's limit; beyond it the run fails, even if the script catches errors."""
    memory_bytes: int = 32 << 20
    """Memory of one run; a Deployment of 5 KB takes about 100 KB."""
    depth: int = 100
    """Depth of nested tables in a result, far above that of any object in the API server."""


@dataclass(frozen=True, slots=True)
class LuaResult:
    """The last value that a script returned: its Lua type, and its JSON (tables and texts; else None).

    An empty table is an empty list, as upstream encodes it.
    """

    type: str
    value: Any = None


class LuaRunner(Protocol):
    """A runner of scripts. Raises :class:`LuaFailed`."""

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult: ...


class Guarded:
    """A :class:`LuaRunner` in this process, for trusted scripts."""

    def __init__(self, limits: LuaLimits = LuaLimits()) -> None:
        self._limits = limits

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult:
        return run_guarded(script, names, open_libs=open_libs, limits=self._limits)


def run_guarded(
    script: str, names: Mapping[str, Any], *, open_libs: bool, limits: LuaLimits = LuaLimits()
) -> LuaResult:
    """Run ``script`` with these global variables (JSON values). ``open_libs``: string, math and coroutine too.

    Rules: Argo CD ``util/lua`` (``runLuaWithResourceActionParameters``). Raises :class:`LuaFailed`.
    """
    lupa = _lupa()
    try:
        runtime = lupa.LuaRuntime(
            register_eval=False,
            register_builtins=False,
            attribute_filter=_no_attributes,
            unpack_returned_tuples=True,
            encoding="latin-1",
            max_memory=limits.memory_bytes,
        )
        prepare = runtime.execute(_prelude())
        run = prepare(open_libs, limits.seconds)
        tables = {name: _to_lua(runtime, value) for name, value in names.items()}
        kind, value = run(_bytes(script), runtime.table_from(tables))
        return LuaResult(kind, _from_lua(lupa, value, limits.depth) if kind in ("table", "string") else None)
    except (lupa.LuaError, lupa.LuaMemoryError, MemoryError, UnicodeError) as error:
        raise LuaFailed(_text(str(error)) or "not enough memory") from error


@cache
def _lupa() -> Any:
    try:
        return import_module("lupa.luajit21")
    except ImportError as error:
        raise LuaMissing from error


@cache
def _prelude() -> str:
    return files("syncline.apply").joinpath("lua_guard.lua").read_text(encoding="utf-8")


def _no_attributes(owner: object, name: object, setting: bool) -> object:
    raise AttributeError("objects of Python are out of reach")


def _bytes(text: str) -> str:
    """Return the UTF-8 bytes of a text, one character each, as in Lua: scripts may cut texts anywhere."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(found: str) -> str:
    """Inverse of :func:`_bytes`; invalid UTF-8 is replaced."""
    return found.encode("latin-1", "replace").decode("utf-8", "replace")


def _to_lua(runtime: Any, value: Any) -> Any:
    """Convert JSON to tables; every number is a double, nulls are dropped, in lists too."""
    match value:
        case dict():
            kept = {_bytes(key): _to_lua(runtime, item) for key, item in value.items() if item is not None}
            return runtime.table_from(kept)
        case list():
            return runtime.table_from([_to_lua(runtime, item) for item in value if item is not None])
        case str():
            return _bytes(value)
        case bool():
            return value
        case int():
            return float(value)
        case _:
            return value


def _from_lua(lupa: Any, value: Any, depth: int) -> Any:
    """Convert a table to JSON as gopher-json does: all keys are texts, or 1 to n; others raise LuaFailed."""
    if lupa.lua_type(value) != "table":
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, float) and not isfinite(value):
            raise LuaFailed(f"cannot encode {value} to JSON")
        if value is None or isinstance(value, (bool, int, float)):
            return value
        raise LuaFailed(f"cannot encode {lupa.lua_type(value) or 'object'} to JSON")
    if depth == 0:
        raise LuaFailed("cannot encode recursively nested tables to JSON")
    found = {
        _text(key) if isinstance(key, str) else key: _from_lua(lupa, item, depth - 1) for key, item in value.items()
    }
    if all(isinstance(key, str) for key in found) and found:
        return found
    if any(isinstance(key, str) for key in found):
        raise LuaFailed("cannot encode mixed or invalid key types")
    if sorted(found) != list(range(1, len(found) + 1)):
        raise LuaFailed("cannot encode sparse array")
    return [found[key] for key in sorted(found)]

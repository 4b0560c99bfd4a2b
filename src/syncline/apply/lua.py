"""Scripts of users, in Lua as Argo CD runs them: one guarded run, values in, one value out.

:mod:`syncline.apply.health.overrides` calls it through a :class:`LuaRunner`. Needs the extra ``lua``. Every run has
its own interpreter without files, processes, environment and network, with limits of memory and of time. A search
pattern can still keep C code busy for long, so scripts of users run in a worker process that is killed
(``assembly/scripts/lua.py``); never call :func:`run_guarded` with them in a process that has other work.

Differences from gopher-lua that remain: a fraction in ``..`` prints with 14 digits, not 17.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from math import isfinite
from typing import Any, Protocol

__all__ = ["OVERRAN", "LuaFailed", "LuaRests", "LuaResult", "LuaRunner", "run_guarded"]


class LuaFailed(RuntimeError):
    """The script cannot be read, failed, or ran into a limit; the text is the interpreter's."""


class LuaRests(LuaFailed):
    """The script took too long, now or a little while ago: what it would say is not known, and asked again later."""


OVERRAN = "the script ran longer than "
"""As ``lua_guard.lua`` says it."""


class LuaMissing(LuaFailed):
    """The extra ``lua`` is not installed."""

    def __init__(self) -> None:
        super().__init__("Lua scripts need the package lupa: pip install lupa")


@dataclass(frozen=True, slots=True)
class LuaLimits:
    seconds: float = 1.0
    """Of computing, as upstream's limit; beyond it the run fails, whatever the script catches."""
    memory_bytes: int = 32 << 20
    """What the objects of one run may take; a Deployment of 5 KB takes about 100 KB."""
    depth: int = 100
    """Nested tables of a result, as the depth of JSON that the API server takes is far below it."""


@dataclass(frozen=True, slots=True)
class LuaResult:
    """The last value that a script returned: the name of its Lua type, and it as JSON (tables and texts; else None).

    An empty table is an empty list, as upstream encodes it.
    """

    type: str
    value: Any = None


class LuaRunner(Protocol):
    """A runner of scripts. Raises :class:`LuaFailed`."""

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult: ...


class Guarded:
    """A :class:`LuaRunner` in this process, for scripts that one trusts."""

    def __init__(self, limits: LuaLimits = LuaLimits()) -> None:
        self._limits = limits

    def run(self, script: str, names: Mapping[str, Any], *, open_libs: bool) -> LuaResult:
        return run_guarded(script, names, open_libs=open_libs, limits=self._limits)


def run_guarded(
    script: str, names: Mapping[str, Any], *, open_libs: bool, limits: LuaLimits = LuaLimits()
) -> LuaResult:
    """Run ``script`` with these global names (JSON values). ``open_libs``: string, math and coroutine too.

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
    """The bytes of a text as Lua sees them, one character each: scripts may cut texts anywhere."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def _text(found: str) -> str:
    """Inverse of :func:`_bytes`; what is no UTF-8 is replaced."""
    return found.encode("latin-1", "replace").decode("utf-8", "replace")


def _to_lua(runtime: Any, value: Any) -> Any:
    """JSON as tables; every number is a double, a null is left out, in lists too."""
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
    """A table as JSON, by the rules of gopher-json: all keys are texts, or 1 to n; nothing else can be encoded."""
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

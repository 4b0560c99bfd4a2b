"""Lua of settings and Jsonnet of repositories: nothing of Python, of the machine or of the process comes into reach."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from syncline.apply.lua import LuaFailed
from syncline.assembly.scripts.lua import LuaWorker
from syncline.sources.errors import SourceError
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits

needs_lua = pytest.mark.skipif(importlib.util.find_spec("lupa") is None, reason="syncline[lua]")
needs_jsonnet = pytest.mark.skipif(importlib.util.find_spec("rjsonnet") is None, reason="syncline[jsonnet]")


@pytest.fixture(scope="module")
def lua() -> Iterator[LuaWorker]:
    with LuaWorker() as started:
        yield started


ABSENT = [
    "string.dump", "debug", "ffi", "jit", "python", "newproxy", "io.open", "io.popen", "os.execute",
    "os.getenv", "os.remove", "os.rename", "os.exit", "os.tmpname", "os.setlocale", "dofile", "loadfile",
    "module", "package.loadlib", "package.loaders", "package.searchers", "package.seeall",
    "package.loaded.ffi", "package.loaded.debug", "package.loaded.jit", "package.preload.ffi",
    'getmetatable("").__index.dump', "coroutine.debug", "_G.debug", "getfenv(0).debug", "getfenv(1).python",
    "getfenv(tostring).debug", "getfenv(load).debug", "getfenv(require).jit",
    "getfenv(coroutine.wrap(function() end)).debug", "obj.__class__", "obj.__init__", "getmetatable(obj)",
]  # fmt: skip


@needs_lua
@pytest.mark.parametrize("name", ABSENT)
@pytest.mark.parametrize("open_libs", [False, True])
def test_a_script_finds_no_way_out(name: str, open_libs: bool, lua: LuaWorker) -> None:
    script = f"local ok, found = pcall(function() return {name} end) return {{t = ok and type(found) or 'nil'}}"
    assert lua.run(script, {"obj": {"a": {"b": "c"}}}, open_libs=open_libs).value == {"t": "nil"}


ESCAPES = {
    "compiled code": 'return load("\\27LJ\\2", "x", "b")()',
    "compiled code by parts": 'local n = 0 return load(function() n = n + 1 return ({"\\27L", "J\\2"})[n] end)()',
    "compiled code as source": 'return loadstring("\\27Lua")()',
    "a module": "return require('os.execute')",
    "a module by path": "package.path = '/tmp/?.lua' return require('x')",
    "a module by preload": "package.preload.x = function() return {} end return require('x')",
    "another environment": "setfenv(1, {}) return debug.getinfo(1)",
    "the environment of the host": "setfenv(0, {}) return os.getenv('HOME')",
    "the words of Python": "return obj.__class__.__mro__",
    "attributes of Python": "return python.eval('1')",
    "a metatable of texts": "getmetatable('').__index = function() return debug.getinfo end return (''):x()(1)",
    "an end of the process": "return os.exit(0)",
}


@needs_lua
@pytest.mark.parametrize("escape", ESCAPES)
def test_a_script_that_tries_to_leave_fails(escape: str, lua: LuaWorker) -> None:
    with pytest.raises(LuaFailed) as caught:
        lua.run(ESCAPES[escape], {"obj": {"a": "b"}}, open_libs=True)
    assert "ended" not in str(caught.value), "the process goes on"
    assert lua.run("return {a = type(getmetatable('').__index.rep)}", {}, open_libs=True).value == {"a": "function"}


GREEDY = {
    "a text": "return ('x'):rep(1e9)",
    "a text that doubles": "local s = 'x' while true do s = s .. s end",
    "texts in a table": "local t = {} for i = 1, 1e7 do t[i] = ('x'):rep(1000) .. i end",
    "a table": "return table.concat({}, 'x', 1, 1e9)",
    "a format": "return string.format('%99.99f', 1/3):rep(1e7)",
    "replacements": "return (('x'):rep(1e5):gsub('.', ('y'):rep(1e4)))",
    "calls of itself": "local function f() return 1 + f() end return f()",
    "coroutines": "local t = {} for i = 1, 1e6 do t[i] = coroutine.wrap(function() coroutine.yield() end) t[i]() end",
    "a result that holds itself often": "local t = {'x'} for i = 1, 40 do t = {t, t} end return t",
    "a message": "error(('x'):rep(2e6))",
}


@needs_lua
@pytest.mark.parametrize("script", GREEDY)
def test_a_script_that_wants_more_than_it_may_fails_alone(script: str, lua: LuaWorker) -> None:
    with pytest.raises(LuaFailed):
        lua.run(GREEDY[script], {}, open_libs=True)
    assert lua.run("return {a = 'b'}", {}, open_libs=True).value == {"a": "b"}


# -- Jsonnet --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def jsonnet() -> Iterator[RenderWorkers]:
    made = RenderWorkers(WorkerLimits(workers=1, wall_s=60, cpu_s=1, memory_bytes=600 * 1024**2))
    yield made
    made.close()


def program(text: str) -> dict[str, Any]:
    names = ("ext_vars", "ext_codes", "tla_vars", "tla_codes")
    return {"files": {"app/a": text.encode(), "lib/x": b"{}"}, "mains": ["app/a"], "search": ["lib"]} | {
        name: {} for name in names
    }


PROGRAMS = {
    "a file": "importstr '/etc/passwd'",
    "a file by bytes": "importbin '/etc/passwd'",
    "the environment": "importstr '/proc/self/environ'",
    "a file above": "importstr '../../../../../../etc/passwd'",
    "a file above a library": "importstr '../../etc/passwd'",
    "the root of the worker": "importstr '//etc/passwd'",
    "an address": "import 'http://127.0.0.1:9/x'",
    "a file by URL": "importstr 'file:///etc/passwd'",
    "a name with NUL": "importstr 'x\\u0000/etc/passwd'",
    "a native function": "std.native('readFile')('/etc/passwd')",
    "a variable of the environment": "std.extVar('HOME')",
    "a text": "std.length(std.repeat('x', 4000000000))",
    "a range": "std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0)",
    "itself": "local f(x) = f(x + 1) + 1; f(0)",
    "an object of itself": "local a = {b: a.b}; a.b",
    "an import of itself": "import 'a'",
    "a text that doubles": "std.foldl(function(a, b) a + a, std.range(1, 40), 'x')",
    "deep output": "std.foldl(function(a, b) [a], std.range(1, 100000), 0)",
    "deep JSON": "std.parseJson(std.repeat('[', 200000))",
    "deep YAML": "std.parseYaml(std.repeat('[', 20000))",
}  # fmt: skip


@needs_jsonnet
@pytest.mark.parametrize("way", PROGRAMS)
def test_a_program_reads_its_files_and_ends(way: str, jsonnet: RenderWorkers) -> None:
    with pytest.raises(SourceError) as caught:
        jsonnet.run("jsonnet", program(PROGRAMS[way]), label="app")
    assert "root:" not in str(caught.value) and len(str(caught.value)) < 1500
    assert jsonnet.run("jsonnet", program("import 'x'"), label="app") == ["{ }"], "the next one is evaluated"

"""Scripts of users run in a process that can be killed, and the next script runs all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncline.assembly.lua_worker import LuaWorker
from syncline.gitops.lua import LuaFailed

pytest.importorskip("lupa", reason="the extra lua is not installed")
HOSTILE = {
    "an endless loop": "while true do end",
    "a loop that catches its own end": "while true do pcall(function() while true do end end) end",
    "a pattern that takes for ever": "return string.find(string.rep('a', 3000), string.rep('a-', 3000) .. 'b')",
    "too much memory": "local t = {} for i = 1, 1e9 do t[i] = 'x' .. i end",
    "an answer without end": "local t = {} t.t = t return t",
    "a file": "return io.open('/etc/passwd')",
    "a command": "return os.execute('true')",
    "compiled code": "return load(string.dump(function() end))",
    "the foreign function interface": "return require('ffi')",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[LuaWorker]:
    with LuaWorker() as started:
        yield started


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_script_fails_alone(worker: LuaWorker, script: str) -> None:
    with pytest.raises(LuaFailed):
        worker.run(script, {}, open_libs=True)
    assert worker.run("return {status = 'Healthy'}", {}, open_libs=False).value == {"status": "Healthy"}


def test_one_script_leaves_nothing_behind_for_the_next(worker: LuaWorker) -> None:
    worker.run("left = 1 table.left = 1 return {}", {}, open_libs=True)
    assert worker.run("return {a = type(left), b = type(table.left)}", {}, open_libs=True).value == {
        "a": "nil",
        "b": "nil",
    }


def test_a_script_sees_no_environment(worker: LuaWorker) -> None:
    assert worker.run("return {a = type(os.getenv)}", {}, open_libs=True).value == {"a": "nil"}

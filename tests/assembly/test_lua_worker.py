"""Scripts of users run in a process that can be killed, and the next script runs all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from syncline.apply.lua import LuaFailed, LuaRests
from syncline.assembly.scripts.lua import LuaWorker
from syncline.base.rests import Rests

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


# (what happened: tired, well or asked; the namespace; when; how long it rests still, or None)
RESTING = {
    "a script that took too long rests ten seconds": [("tired", "a", 0, None), ("asked", "a", 4, 6)],
    "and is run again after that": [("tired", "a", 0, None), ("asked", "a", 10, None)],
    "each time it rests twice as long": [("tired", "a", 0, None), ("tired", "a", 10, None), ("asked", "a", 12, 18)],
    "objects of other namespaces are judged": [("tired", "a", 0, None), ("asked", "b", 1, None)],
    "three namespaces in which it rests are all": [
        *(("tired", name, 0, None) for name in "abc"),
        ("asked", "d", 1, 9),
        ("asked", "d", 10, None),
    ],
    "a script that answers is well": [("tired", "a", 0, None), ("well", "a", 10, None), ("asked", "a", 10, None)],
}


@pytest.mark.parametrize("course", RESTING.values(), ids=RESTING.keys())
def test_a_script_that_took_too_long_rests(course: list[tuple[str, str, float, float | None]]) -> None:
    rests = Rests(shares_for_all=3)
    for what, namespace, now, left in course:
        if what == "tired":
            rests.tired("while true do end", namespace, now)
        elif what == "well":
            rests.well("while true do end", namespace)
        else:
            assert rests.left("while true do end", namespace, now) == (left or 0)
        assert rests.left("return {}", namespace, now) == 0


def test_a_clock_that_was_set_back_makes_no_rest_longer() -> None:
    rests = Rests()
    rests.tired("while true do end", "a", 3600)
    assert rests.left("while true do end", "a", 0) == 0


def test_a_script_that_was_killed_is_not_run_for_the_next_object(worker: LuaWorker) -> None:
    script = "while true do end"
    obj = {"metadata": {"namespace": "shop"}}
    with pytest.raises(LuaRests, match=r"longer than [0-9.]+ s( and was killed)?$"):
        worker.run(script, {"obj": obj}, open_libs=True)
    with pytest.raises(LuaRests, match="it rests"):
        worker.run(script, {"obj": obj}, open_libs=True)


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

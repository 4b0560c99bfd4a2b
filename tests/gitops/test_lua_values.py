"""Values of users' scripts as upstream's interpreter has them, beside what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.lua import Guarded, LuaFailed
from syncline.base.clock import EPOCH
from syncline.gitops.resource_actions.available import ActionScripts, offered_actions, run_action
from syncline.gitops.resource_actions.model import ActionFailed

pytest.importorskip("lupa", reason="the extra lua is not installed")
RUNNER = Guarded()
GADGET: dict[str, Any] = {"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "g"}}


def value(script: str, **names: Any) -> Any:
    return RUNNER.run(script, names, open_libs=True).value


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1/0", "+Inf"),
        ("-1/0", "-Inf"),
        ("0/0", "NaN"),
        ("-0.0", "0"),
        ("1e15", "1000000000000000"),
        ("1e20", "1e+20"),
        ("1e14 + 0.5", "1.000000000000005e+14"),
        ("1234567.5", "1.2345675e+06"),
        ("123456.5", "123456.5"),
        ("0.00001", "1e-05"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("math.huge", "1.7976931348623157e+308"),
        ("tonumber('1e3')", "nil"),
        ("tonumber('1.5e3')", "1500"),
        ("tonumber(' 0x10 ')", "16"),
        ("tonumber('12', 8)", "10"),
        ("_VERSION", "Lua 5.1"),
        ("table.move", "nil"),
    ],
)
def test_numbers_are_printed_and_read_as_upstream(expression: str, text: str) -> None:
    assert value(f"return tostring({expression})") == text


@pytest.mark.parametrize("number", ["1/0", "0/0", "1e400"])
def test_a_number_that_json_does_not_know_fails_the_script(number: str) -> None:
    with pytest.raises(LuaFailed, match="cannot encode"):
        value(f"return {{n = {number}}}")


def test_a_null_in_a_list_is_left_out_and_the_object_can_be_returned() -> None:
    obj = GADGET | {"spec": {"list": [1, None, "é"]}}
    assert value("return obj", obj=obj)["spec"]["list"] == [1, "é"]
    scripts = {"example.dev/Gadget": ActionScripts("", {"go": "obj.spec.done = true return obj"})}
    (effect,) = run_action(obj, "go", {}, scripts, RUNNER, EPOCH)
    assert effect.obj["spec"] == {"list": [1, "é"], "done": True}


def test_a_text_that_was_cut_in_a_letter_is_replaced_not_refused() -> None:
    assert value("return {message = string.sub(obj, 1, 1) .. '!'}", obj="é") == {"message": "\ufffd!"}
    assert value("return {message = obj .. '😀'}", obj="é") == {"message": "é😀"}


@pytest.mark.parametrize(
    "said", ["{go = 1}", "{go = 'x'}", "{go = {disabled = 'true'}}", "{go = {displayName = 1}}", "{'go'}"]
)
def test_an_action_that_is_offered_with_values_of_other_types_is_an_error(said: str) -> None:
    with pytest.raises(ActionFailed, match=r"discovery\.lua: "):
        offered_actions(GADGET, {"example.dev/Gadget": ActionScripts(f"return {said}")}, RUNNER)


def test_an_offered_action_may_have_another_name_than_its_key() -> None:
    scripts = {"example.dev/Gadget": ActionScripts("return {go = {name = 'other'}, stop = {}}")}
    assert [offer.name for offer in offered_actions(GADGET, scripts, RUNNER)] == ["other", "stop"]


@pytest.mark.parametrize("made", ["{a = 1}", "{{operation = 'create', resource = {a = 1}}}"])
def test_what_an_action_writes_has_a_kind(made: str) -> None:
    scripts = {"example.dev/Gadget": ActionScripts("", {"go": f"return {made}"})}
    with pytest.raises(ActionFailed, match="without kind; its fields are: a"):
        run_action(GADGET, "go", {}, scripts, RUNNER, EPOCH)

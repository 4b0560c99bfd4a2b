"""What changes between two MachineConfigs, and where parts come from; as tables."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest
from tests.machineconfig.rendering import files, machine_config

from syncline.machineconfig.configs.compare import changes
from syncline.machineconfig.render.origins import Part, parts_of

V = {"ignition": {"version": "3.4.0"}}


def unit(**fields: Any) -> dict[str, Any]:
    return {"config": V | {"systemd": {"units": [{"name": "x.service"} | fields]}}}


def core(**fields: Any) -> dict[str, Any]:
    return {"config": V | {"passwd": {"users": [{"name": "core"} | fields]}}}


CASES: dict[str, tuple[Any, Any, list[tuple[str, str, str, str]]]] = {
    "nothing differs": ({"config": V}, {"config": V | {"storage": {}}}, []),
    "one side is missing": (None, {"fips": True}, [("fips", "true", "changed", " → True")]),
    "a file comes": ({}, {"config": files(("/a", "x"))}, [("file", "/a", "added", "")]),
    "contents change": (
        {"config": files(("/a", "x"))},
        {"config": files(("/a", "y"))},
        [("file", "/a", "changed", "contents")],
    ),
    "the mode changes": (
        {"config": files({"path": "/a", "mode": 0o600})},
        {"config": files({"path": "/a", "mode": 0o644})},
        [("file", "/a", "changed", "mode 0600 → 0644")],
    ),
    "the same contents are packed in another way": (
        {"config": files({"path": "/a", "contents": {"source": "data:,x"}})},
        {
            "config": files(
                {
                    "path": "/a",
                    "contents": {
                        "source": "data:;base64," + base64.b64encode(gzip.compress(b"x")).decode(),
                        "compression": "gzip",
                    },
                }
            )
        },
        [],
    ),
    "versions of the language do not matter": (
        {"config": files(("/a", "x"), version="3.0.0")},
        {"config": files(("/a", "x"), version="3.5.0")},
        [],
    ),
    "a unit is enabled and gets a dropin": (
        unit(contents="[Unit]\n"),
        unit(contents="[Unit]\n", enabled=True, dropins=[{"name": "a.conf", "contents": "x"}]),
        [("unit", "x.service", "changed", "enabled unset → true, dropin a.conf added")],
    ),
    "keys are counted and passwords named": (
        core(sshAuthorizedKeys=["a", "b"]),
        core(sshAuthorizedKeys=["b", "c", "d"], passwordHash="x"),
        [("user", "core", "changed", "2 ssh keys added, 1 removed, passwordHash")],
    ),
    "arguments are counted": (
        {"kernelArguments": ["a", "b"]},
        {"kernelArguments": ["b", "b"]},
        [("argument", "a", "removed", ""), ("argument", "b", "added", "")],
    ),
    "the order of arguments is a change": (
        {"kernelArguments": ["a", "b"]},
        {"kernelArguments": ["b", "a"]},
        [("argument", "b a", "changed", "order")],
    ),
    "a raid changes": (
        {"config": V | {"storage": {"raid": [{"name": "r", "level": "raid0", "devices": ["/dev/a", "/dev/b"]}]}}},
        {"config": V | {"storage": {"raid": [{"name": "r", "level": "raid1", "devices": ["/dev/a", "/dev/b"]}]}}},
        [("raid", "r", "changed", "level")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_changes_are_told_in_words(name: str) -> None:
    old, new, expected = CASES[name]
    assert [(one.kind, one.name, one.verb, one.what) for one in changes(old, new)] == expected


def test_the_sources_of_a_part_stand_in_merge_order() -> None:
    configs = [
        machine_config("00-infra", files(("/a", "infra")), role="infra"),
        machine_config("99-z", files(("/a", "z"), ("/b", "z")), extensions=["usbguard"]),
        machine_config("10-a", unit(dropins=[{"name": "d.conf"}])["config"], kernelType="default"),
    ]
    assert parts_of(configs) == [
        Part("file", "/a", ("99-z", "00-infra")),
        Part("file", "/b", ("99-z",)),
        Part("unit", "x.service", ("10-a",)),
        Part("dropin", "x.service/d.conf", ("10-a",)),
        Part("extension", "usbguard", ("99-z",)),
    ]

"""Merging neighbours first gives what merging one after the other gives, whatever is in the configurations."""

from __future__ import annotations

import random
from typing import Any

import pytest

from syncline.ignition import merging
from syncline.ignition.typed import canonical
from syncline.machineconfig.configs.parsing import NEWEST, lifted_config
from syncline.machineconfig.render.merge import _crosses, _laid_over


def some(chance: random.Random, items: list[Any], most: int) -> list[Any]:
    return chance.sample(items, chance.randint(0, min(most, len(items))))


def config(chance: random.Random, *, crossing: bool) -> dict[str, Any]:
    """Few names, so that much is laid over each other."""
    files = []
    for name in some(chance, list("abcd"), 3):
        file: dict[str, Any] = {"path": f"/f/{name}"}
        for key, value in (
            ("mode", chance.choice([384, 420])),
            ("contents", {"source": f"data:,{chance.randint(0, 9)}", "compression": chance.choice(["", "gzip"])}),
            ("append", [{"source": f"data:,{chance.randint(0, 9)}"}]),
            ("user", {"name": chance.choice(["root", "core"])}),
        ):
            if chance.random() < 0.5:
                file[key] = value
        files.append(file)
    places = "/f/" if crossing else "/d/"
    directories = [{"path": places + name, "mode": 493} for name in some(chance, list("abcd"), 2)]
    links = [{"path": f"/l/{name}", "target": chance.choice(["/x", "/y"])} for name in some(chance, list("ab"), 1)]
    units = []
    for name in some(chance, list("uvw"), 2):
        dropins = [
            {"name": f"{one}.conf", "contents": str(chance.randint(0, 9))} for one in some(chance, list("xyz"), 2)
        ]
        units.append({"name": f"{name}.service", "enabled": chance.random() < 0.5, "dropins": dropins})
    users = [{"name": "core", "sshAuthorizedKeys": some(chance, list("klmn"), 3)}] if chance.random() < 0.5 else []
    return {
        "ignition": {"version": "3.5.0"},
        "storage": {"files": files, "directories": directories, "links": links},
        "systemd": {"units": units},
        "passwd": {"users": users},
    }


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_neighbours_first_is_the_same_as_one_after_the_other(seed: int, crossing: bool) -> None:
    chance = random.Random(f"{seed}/{crossing}")
    many = []
    while len(many) < chance.randint(2, 9):
        made = config(chance, crossing=crossing)
        paths = [one["path"] for kind in made["storage"].values() for one in kind]
        if len(paths) == len(set(paths)):
            many.append(canonical(NEWEST, made))
    one_by_one = many[0]
    for each in many[1:]:
        one_by_one = merging.merge(NEWEST, one_by_one, each)
    assert _laid_over(list(many)) == one_by_one
    assert crossing or not _crosses(many)


def test_what_was_read_is_not_changed_by_merging() -> None:
    raw = {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a", "contents": {"source": "data:,x"}}]}}
    before = str(lifted_config(raw))
    merging.merge(NEWEST, lifted_config(raw), lifted_config(raw | {"systemd": {"units": [{"name": "a.service"}]}}))
    assert str(lifted_config(raw)) == before

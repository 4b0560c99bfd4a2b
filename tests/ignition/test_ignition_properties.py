"""Laws that hold for every configuration: random ones, made from the table of fields itself."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from typing import Any

import pytest

from syncline.ignition.checking import check
from syncline.ignition.jsontext import dump
from syncline.ignition.merging import merge
from syncline.ignition.parsing import parse, validate
from syncline.ignition.rules import Spec
from syncline.ignition.schema import NEWEST, PLAIN, Object, Schema, schema, version_text
from syncline.ignition.typed import canonical
from syncline.ignition.versions.downward import DowngradeError, lower
from syncline.ignition.versions.upward import lift

MINORS = range(NEWEST + 1)
SEEDS = range(60)
TEXTS = (
    "",
    "a",
    "b",
    "/a",
    "/a/b",
    "data:,x",
    "https://h/",
    "gzip",
    "xfs",
    "raid1",
    "a.service",
    "b.conf",
    "<é&\u2028>",
)


def _value(table: Schema, kind: Object, chance: random.Random, *, plain: bool) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, field in kind.fields.items():
        if (chance.random() < 0.45 and not field.always) or (not plain and name in kind.plain):
            continue
        count = chance.randint(0, 3) if field.many else 1
        items = [_item(table, field.type, chance, plain=plain) for _ in range(count)]
        made[name] = items if field.many else items[0]
    return made


def _item(table: Schema, kind: str, chance: random.Random, *, plain: bool) -> Any:
    if kind not in PLAIN:
        return _value(table, table.objects[kind], chance, plain=plain)
    if PLAIN[kind] is bool:
        return chance.random() < 0.5
    return chance.choice((0, 1, 2, 420)) if PLAIN[kind] is int else chance.choice(TEXTS)


def config(minor: int, chance: random.Random, *, plain: bool = True) -> dict[str, Any]:
    """A canonical one; ``plain``: with lists whose items may repeat."""
    table = schema(minor)
    made = _value(table, table.root, chance, plain=plain)
    made["ignition"]["version"] = version_text(minor)
    return canonical(minor, made)


def without_doubles(minor: int, made: dict[str, Any]) -> dict[str, Any]:
    """Laid over nothing twice: what is double in one configuration is joined."""
    return merge(minor, made, made)


@pytest.mark.parametrize("minor", MINORS)
def test_canonical_is_a_fixed_point_and_writing_and_reading_give_it_back(minor: int) -> None:
    for seed in SEEDS:
        made = config(minor, random.Random(seed))
        again = canonical(minor, made)
        assert dump(again) == dump(made)
        assert dump(canonical(minor, json.loads(dump(made)))) == dump(made)
        assert dump(canonical(minor, json.loads(dump(made, indent=2)))) == dump(made)


@pytest.mark.parametrize("minor", MINORS)
def test_order_of_keys_does_not_matter(minor: int) -> None:
    def shuffled(value: Any, chance: random.Random) -> Any:
        if isinstance(value, dict):
            pairs = [(key, shuffled(part, chance)) for key, part in value.items()]
            chance.shuffle(pairs)
            return dict(pairs)
        return [shuffled(part, chance) for part in value] if isinstance(value, list) else value

    for seed in SEEDS:
        chance = random.Random(seed)
        made = config(minor, chance)
        assert dump(canonical(minor, shuffled(made, chance))) == dump(made)


@pytest.mark.parametrize("minor", MINORS)
def test_nothing_is_neutral_on_both_sides_of_a_merge(minor: int) -> None:
    nothing = {"ignition": {"version": version_text(minor)}}
    for seed in SEEDS:
        made = config(minor, random.Random(seed))
        assert merge(minor, made, nothing) == made
        assert merge(minor, nothing, made) == made


@pytest.mark.parametrize("minor", MINORS)
def test_a_configuration_over_itself_is_itself(minor: int) -> None:
    for seed in SEEDS:
        once = without_doubles(minor, config(minor, random.Random(seed), plain=False))
        if check(Spec(minor), once).fatal and any("duplicate" in str(one) for one in check(Spec(minor), once).entries):
            continue  # upstream joins only what it finds once
        if "httpHeaders" not in dump(once):
            assert merge(minor, once, once) == once


@pytest.mark.parametrize("minor", range(3, NEWEST + 1))
def test_merging_is_associative_where_nothing_moves_or_is_taken_away(minor: int) -> None:
    """Not for headers without value, nor for nodes and kernel arguments that change their list."""

    def calm(chance: random.Random) -> dict[str, Any]:
        made = config(minor, chance, plain=False)
        for kind in ("directories", "links"):
            made.get("storage", {}).pop(kind, None)
        made.get("kernelArguments", {}).pop("shouldNotExist", None)
        return canonical(minor, without_doubles(minor, canonical(minor, made)))

    tried = 0
    for seed in range(200):
        chance = random.Random(seed)
        a, b, c = (calm(chance) for _ in range(3))
        if any("httpHeaders" in dump(one) or _double(minor, one) for one in (a, b, c)):
            continue
        tried += 1
        assert merge(minor, merge(minor, a, b), c) == merge(minor, a, merge(minor, b, c))
    assert tried > 10


def _double(minor: int, made: dict[str, Any]) -> bool:
    return any(entry.message == "duplicate entry defined" for entry in check(Spec(minor), made).entries)


def test_lifting_in_steps_or_at_once_is_the_same() -> None:
    for seed in SEEDS:
        chance = random.Random(seed)
        low = chance.randint(0, NEWEST)
        middle = chance.randint(low, NEWEST)
        made = config(low, chance)
        assert lift(lift(made, low, middle), middle, NEWEST) == lift(made, low, NEWEST)
        assert lift(made, low, low) == made


def test_what_was_lifted_comes_down_again() -> None:
    """If it is valid on the way; 3.0 has no way down."""
    came = 0
    for seed in range(400):
        chance = random.Random(seed)
        minor = chance.randint(1, 5)
        made = _valid_parts(minor, config(minor, chance))
        try:
            down = lower(lift(made, minor, 5), 5, minor)
        except DowngradeError:
            continue
        came += 1
        assert down == made
    assert came > 50


def _valid_parts(minor: int, made: dict[str, Any]) -> dict[str, Any]:
    """Sections that are not valid leave; so does what lifting loses."""
    kept: dict[str, Any] = {"ignition": {"version": version_text(minor)}}
    sections = [*((name, None) for name in ("passwd", "systemd"))]
    sections += [("storage", kind) for kind in made.get("storage", {}) if kind != "luks"]
    for name, kind in sections:
        part = made.get(name) if kind is None else {**kept.get(name, {}), kind: made[name][kind]}
        trial = canonical(minor, {**kept, name: part}) if part else kept
        if not check(Spec(minor, release_2_26=True), trial).fatal:
            kept = trial
    return kept


@pytest.mark.parametrize("minor", MINORS)
def test_nothing_changes_what_it_is_given(minor: int) -> None:
    for seed in SEEDS:
        chance = random.Random(seed)
        one, other = config(minor, chance), config(minor, chance)
        before = copy.deepcopy((one, other))
        merge(minor, one, other)
        lift(one, minor, NEWEST)
        validate(one, version_text(minor))
        if 1 <= minor <= 5:
            with contextlib.suppress(DowngradeError):
                lower(one, minor, 1)
        assert (one, other) == before


@pytest.mark.parametrize("minor", MINORS)
def test_a_verdict_with_source_is_the_verdict_without(minor: int) -> None:
    for seed in SEEDS:
        made = config(minor, random.Random(seed))
        _, report, _ = parse(dump(made, indent=1).encode())
        told = [(entry.severity, entry.path, entry.message) for entry in report.entries]
        bare = validate(made, version_text(minor))
        assert told == [(entry.severity, entry.path, entry.message) for entry in bare.entries]
        assert all(entry.line for entry in report.entries)

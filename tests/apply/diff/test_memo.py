"""A verdict is remembered under everything that it depends on, and under nothing less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from syncline.apply.diff import DiffResult, DiffSettings, IgnoreRule, compare_objects
from syncline.apply.diff.memo import Verdicts, settings_key
from syncline.apply.diff.model import DEFAULT_OVERRIDES
from syncline.apply.diff.normalize import reads_status


def config(value: str, **meta: str) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "ns", **meta}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"k": value}}


class Counted:
    """The comparison itself, and how often it was made."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, target: Any, live: Any, settings: DiffSettings) -> DiffResult:
        self.times += 1
        return compare_objects(target, live, settings)


def ask(verdicts: Verdicts, target: Any, live: Any, settings: DiffSettings) -> bool:
    return verdicts.modified(target, live, settings, settings_key(settings))


def test_the_same_question_is_answered_once() -> None:
    asked = Counted()
    verdicts, settings = Verdicts(compare=asked), DiffSettings()
    live = config("1", uid="u", resourceVersion="7")
    assert not ask(verdicts, config("1"), live, settings)
    assert not ask(verdicts, config("1"), live, settings)
    assert asked.times == 1


def test_a_changed_manifest_object_or_setting_is_a_new_question() -> None:
    asked = Counted()
    verdicts, settings = Verdicts(compare=asked), DiffSettings()
    live = config("1", uid="u", resourceVersion="7")
    assert not ask(verdicts, config("1"), live, settings)
    assert ask(verdicts, config("2"), live, settings)
    assert ask(verdicts, config("1"), config("3", uid="u", resourceVersion="8"), settings)
    ignoring = replace(settings, ignore=(IgnoreRule.parse({"kind": "ConfigMap", "jsonPointers": ["/data/k"]}),))
    assert not ask(verdicts, config("2"), live, ignoring)
    assert asked.times == 4


def test_an_object_without_a_version_is_compared_every_time() -> None:
    asked = Counted()
    verdicts, settings = Verdicts(compare=asked), DiffSettings()
    for _ in range(2):
        assert not ask(verdicts, config("1"), config("1"), settings)
    assert asked.times == 2


def test_the_oldest_unused_verdict_falls_out() -> None:
    asked = Counted()
    verdicts, settings = Verdicts(limit=2, compare=asked), DiffSettings()
    first, second, third = (config("1", uid=uid, resourceVersion="7") for uid in "abc")
    for live in (first, second, first, third, first):
        ask(verdicts, config("1"), live, settings)
    assert asked.times == 3
    ask(verdicts, config("1"), second, settings)
    assert asked.times == 4


def test_a_report_of_status_is_no_new_question_where_status_is_ignored() -> None:
    asked = Counted()
    verdicts, settings = Verdicts(compare=asked), DiffSettings(overrides=DEFAULT_OVERRIDES)
    live = config("1", uid="u", resourceVersion="7") | {"status": {"said": "a"}}
    later = config("1", uid="u", resourceVersion="8", generation="2") | {"status": {"said": "b"}}
    assert not ask(verdicts, config("1"), live, settings)
    assert not ask(verdicts, config("1"), later, settings)
    assert asked.times == 1
    assert not ask(verdicts, config("1"), config("1", uid="u", resourceVersion="9", labels="x"), settings)
    assert asked.times == 2
    reading = replace(settings, ignore=(IgnoreRule.parse({"kind": "ConfigMap", "managedFieldsManagers": ["other"]}),))
    ask(verdicts, config("1"), live, reading)
    ask(verdicts, config("1"), later, reading)
    assert asked.times == 4
    expression = IgnoreRule.parse({"kind": "ConfigMap", "jqPathExpressions": [".data.k"]})
    assert reads_status(live, replace(settings, ignore=(expression,)))

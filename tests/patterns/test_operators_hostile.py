"""Catalogues and files of behaviours in which any value may be another one are refused with a reason, or used."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.patterns.operating import bundle, channel, package

from syncline.assembly.operators import folders
from syncline.assembly.operators.folders import FolderError, documents, read_behaviours
from syncline.kube.objects import GroupKind, Obj, copied
from syncline.patterns.operators.behaving import BehaviourError, due, read_behaviour
from syncline.patterns.operators.catalogs.model import SourceKey
from syncline.patterns.operators.catalogs.reading import CatalogError, read_catalog
from syncline.patterns.operators.resolver.resolve import Request, resolve

JUNK: tuple[Any, ...] = (None, 7, "", "x", [], ["x"], [7], {}, {"x": 7}, [[]], [{}], True)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a value but the whole."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield (*path, key)
        yield from places(part, (*path, key))


def spoiled(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced by each piece of junk."""
    for path in places(value):
        for junk in JUNK:
            made = copied(value)
            holder = made
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = junk
            yield made


def catalogue() -> list[Obj]:
    csv = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": {"name": "a"}}
    manifest = base64.b64encode(json.dumps({**csv, "spec": {}}).encode()).decode()
    whole = bundle("a", "2.0.0", olm_package_required={"packageName": "a", "versionRange": ">=1.0.0"})
    whole["properties"].append({"type": "olm.bundle.object", "value": {"data": manifest}})
    reference = {"schema": "olm.channel", "name": "stable"}
    return [
        package("a"),
        channel(
            "a", "stable", "a.v1.0.0", {"name": "a.v2.0.0", "replaces": "a.v1.0.0", "skips": ["b"], "skipRange": "1.x"}
        ),
        bundle("a", "1.0.0", "Thing.v1.example.com", olm_constraint={"all": {"constraints": [{"gvk": {"kind": "K"}}]}}),
        whole,
        {"schema": "olm.deprecations", "package": "a", "entries": [{"reference": reference, "message": "old"}]},
    ]


SOURCE = SourceKey("cat", "ns")
SUBSCRIPTION: Obj = {
    "metadata": {"name": "a", "namespace": "team"},
    "spec": {"name": "a", "source": "cat", "sourceNamespace": "ns"},
}
GROUP: Obj = {"metadata": {"name": "group", "namespace": "team"}}


def test_a_catalogue_with_any_other_value_is_refused_with_a_reason_or_used() -> None:
    refused = used = 0
    for given in spoiled(catalogue()):
        try:
            found = read_catalog(given)
        except CatalogError as error:
            assert str(error)
            refused += 1
            continue
        resolve(Request("team", [SUBSCRIPTION], {}, [GROUP], {SOURCE: found}))
        used += 1
    assert refused > 100
    assert used > 100


BEHAVIOUR = """
package: a
source: here
lines:
- name: one
  when: {group: g, kind: K}
  each: spec.list
  after: 5s
  unless: {A: "b"}
  looks:
  - {name: look, group: g, kind: L, named: [a], annotations: {a: b}}
  needs: [look]
  creates:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: "${each.name}-${look}", namespace: "${namespace}"}}
  status: {phase: Ready}
  source: here
"""


def test_a_file_of_behaviours_with_any_other_value_is_refused_with_a_reason_or_used() -> None:
    from syncline.kube.yaml.loading import load

    now = datetime(2026, 1, 1, tzinfo=UTC)
    one = {"metadata": {"name": "k", "namespace": "n"}, "spec": {"list": [{"name": "e"}, 7, "x"]}}
    objects = {GroupKind("g", "K"): [one], GroupKind("g", "L"): [{"metadata": {"name": "a"}}]}
    refused = used = 0
    for given in spoiled(load(BEHAVIOUR)):
        try:
            found = read_behaviour(json.dumps(given), "file")
        except BehaviourError as error:
            assert str(error)
            refused += 1
            continue
        for each in due(found, now, objects, now.replace(hour=1)):
            each.objects("team")
        used += 1
    assert refused > 50
    assert used > 20


@pytest.mark.parametrize("text", ["[", "[" * 100_000, '{"schema": 7}', "7", "[]", "null"])
def test_json_that_is_no_catalogue_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FolderError):
        list(documents(tmp_path))


def test_a_catalogue_of_too_many_files_or_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("schema: olm.package\nname: a\n")
    monkeypatch.setattr(folders, "MOST_FILES", 2)
    with pytest.raises(FolderError, match="more than 2 files"):
        list(documents(tmp_path))


def test_a_folder_of_behaviours_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("package: [")
    with pytest.raises(FolderError):
        read_behaviours(tmp_path)

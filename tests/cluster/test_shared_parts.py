"""Writes share with stored objects what they leave alone; no write ever changes what is stored, cached or watched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from bench.day import REDUCED, live_through
from tests.cluster.samples import KINDS, STATUSES, definition, sample
from tests.cluster.world import World

from syncline.cluster.resources.registry import Resource
from syncline.kube.client import Request
from syncline.kube.objects import Obj, gvk_of

MERGE = {"content-type": "application/merge-patch+json"}


def test_every_object_of_an_eventful_day_still_is_what_its_bytes_say() -> None:
    store = live_through(replace(REDUCED, hours=0.5)).world.core.store
    objects = [stored for resource in store.resources() for stored in store.list(resource)]
    assert len(objects) > 200
    for stored in objects:
        assert msgspec.json.encode(stored.obj) == stored.raw, stored.key


def job(**labels: str) -> Obj:
    container = {"name": "c", "image": "i:1"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "labels": labels},
        "spec": {"template": template},
    }


def test_a_status_write_that_takes_all_labels_gets_those_of_the_template_again() -> None:
    world = World(controllers=())
    path = "/apis/batch/v1/namespaces/default/jobs"
    world.transport.send(Request("POST", path, body=job(x="y"))).or_raise()
    body = {"metadata": {"labels": None}, "status": {"active": 1}}
    made = world.transport.send(Request("PATCH", f"{path}/j/status", headers=MERGE, body=body)).or_raise()
    assert made["metadata"]["labels"]["a"] == "b" and made["status"]["active"] == 1


def test_unknown_fields_beside_a_shared_spec_are_dropped_and_warned_of() -> None:
    world = World(controllers=())
    path = "/apis/batch/v1/namespaces/default/jobs"
    before = world.transport.send(Request("POST", path, body=job(x="y"))).or_raise()
    body = {"metadata": {"labels": {"z": "1"}, "colour": "red"}, "status": {"active": 1, "mood": "good"}}
    answer = world.transport.send(Request("PATCH", f"{path}/j/status", headers=MERGE, body=body))
    made = answer.or_raise()
    assert made["metadata"]["labels"] == {"x": "y", "z": "1"}
    assert "colour" not in made["metadata"] and "mood" not in made["status"] and made["spec"] == before["spec"]
    warned = answer.headers["warning"].replace("\\", "")
    assert 'unknown field "metadata.colour"' in warned and 'unknown field "status.mood"' in warned


def test_a_dry_run_that_takes_the_type_of_a_service_leaves_its_stored_node_ports() -> None:
    world = World(controllers=())
    path = "/api/v1/namespaces/default/services"
    spec = {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80}, {"name": "x", "port": 81}]}
    spec["ports"][0]["name"] = "w"  # type: ignore[index]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec}
    before = msgspec.json.encode(world.transport.send(Request("POST", path, body=service)).or_raise())
    body = {"spec": {"type": "ClusterIP"}}
    dry = world.transport.send(Request("PATCH", f"{path}/s", {"dryRun": "All"}, MERGE, body)).or_raise()
    assert "nodePort" not in dry["spec"]["ports"][0]
    assert msgspec.json.encode(world.transport.send(Request("GET", f"{path}/s")).or_raise()) == before


class Watched:
    """A cluster of which every version of every object is kept, as a cache and a watch keep it."""

    def __init__(self) -> None:
        self.world = World(controllers=())
        self.world.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        self.world.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        self.kept: list[tuple[Obj, bytes]] = []
        self.world.store.subscribe(lambda event: self.kept.append((event.stored.obj, event.stored.raw)))

    def created(self, kind: str) -> tuple[Resource, str]:
        """Its resource and the path of a new sample."""
        self.kept.clear()
        obj = sample(kind)
        resource = self.world.registry.of_kind(gvk_of(obj))
        assert resource is not None
        path = resource.info.path("default" if resource.info.namespaced else "")
        self.sent("POST", path, obj, needed=True)
        return resource, f"{path}/{obj['metadata']['name']}"

    def sent(
        self, method: str, path: str, body: Any, content: str = "json", *, needed: bool = False, **query: str
    ) -> Obj | None:
        """Send a request, which may be refused unless it is needed, and hold every version against its bytes."""
        versions = len(self.kept)
        answer = self.world.transport.send(
            Request(method, path, query, {"content-type": f"application/{content}"}, body)
        )
        said = f"{method} {path} {query} {body}"
        assert answer.ok or not needed, f"{said}: {answer.obj}"
        assert not query.get("dryRun") or len(self.kept) == versions, said
        for obj, raw in self.kept:
            assert msgspec.json.encode(obj) == raw, f"{said} changed what was written before"
        return answer.or_raise() if answer.ok else None

    def everywhere(self, method: str, path: str, body: Any, content: str = "json", **query: str) -> None:
        """A dry run, and the write."""
        self.sent(method, path, body, content, needed=True, dryRun="All", **query)
        self.sent(method, path, body, content, needed=True, **query)

    def write_statuses(self, path: str, kind: str, one: Obj, other: Obj) -> None:
        place = f"{path}/status"
        self.everywhere("PATCH", place, {"status": one}, "merge-patch+json")
        self.everywhere("PATCH", place, {"status": other}, "merge-patch+json")
        self.everywhere("PATCH", place, [{"op": "add", "path": "/status", "value": one}], "json-patch+json")
        self.everywhere("PUT", place, self.world.get(path) | {"status": other})
        if "tests.example" not in path:
            self.everywhere("PATCH", place, {"status": one}, "strategic-merge-patch+json")
        version, _, name = kind.partition(" ")
        for status in (other, one, other):
            body = {
                "apiVersion": version,
                "kind": name,
                "metadata": {"name": path.rpartition("/")[2]},
                "status": status,
            }
            self.everywhere("PATCH", place, body, "apply-patch+yaml", fieldManager="m", force="true")
        self.removed(place, self.world.get(path), "status")
        self.everywhere("PATCH", path, {"metadata": {"labels": {"x": "y"}}}, "merge-patch+json")
        self.everywhere("PUT", path, self.world.get(path) | {"status": one})

    def removed(self, path: str, obj: Obj, under: str) -> None:
        """Send dry runs that each remove one field or entry."""
        for pointer in places(obj.get(under), f"/{under}"):
            self.sent("PATCH", path, [{"op": "remove", "path": pointer}], "json-patch+json", dryRun="All")


@pytest.fixture(scope="module")
def watched() -> Watched:
    return Watched()


def places(value: Any, at: str) -> Iterator[str]:
    """JSON pointers of all fields and entries below a value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in entries:
        below = f"{at}/{str(name).replace('~', '~0').replace('/', '~1')}"
        yield below
        yield from places(part, below)


@pytest.mark.parametrize("kind", KINDS)
def test_no_write_changes_what_is_stored_or_watched(watched: Watched, kind: str) -> None:
    """A dry run without each field of the object; where it has a status, each way to write one, wet and dry."""
    resource, path = watched.created(kind)
    obj = watched.world.get(path)
    for part in sorted(obj.keys() - {"apiVersion", "kind", "metadata", "status"}):
        watched.removed(path, obj, part)
    if "approval" in resource.info.subresources:
        watched.everywhere("PATCH", f"{path}/approval", {"status": STATUSES[kind][0]}, "merge-patch+json")
    if kind in STATUSES:
        watched.write_statuses(path, kind, *STATUSES[kind])
    for stored in watched.world.store.list(resource.storage):
        assert msgspec.json.encode(stored.obj) == stored.raw, stored.key


def test_every_built_in_kind_with_a_status_has_a_sample() -> None:
    resources = [each for each in World(controllers=()).registry.resources() if "status" in each.info.subresources]
    assert {f"{each.info.api_version} {each.info.kind}" for each in resources} == {
        kind for kind in STATUSES if not kind.startswith("tests.example/")
    }

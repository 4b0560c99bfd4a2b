"""Writes share with stored objects what they leave alone; no write ever changes what is stored, cached or watched."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from bench.day import REDUCED, live_through
from tests.cluster.world import World

from syncline.kube.client import Request
from syncline.kube.objects import Obj

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

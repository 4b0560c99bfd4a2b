"""Worlds of a seed begin alike, and share nothing that changes."""

from __future__ import annotations

from syncline.assembly.embedded.core import build_core
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.storage.store import Store
from syncline.rehearsal.world import World

NAMESPACE = "/api/v1/namespaces/kube-public"


def stored(store: Store) -> dict[tuple[str, str, str], tuple[int, bytes]]:
    return {one.key: (one.revision, one.raw) for resource in store.resources() for one in store.list(resource)}


def new(seed: int = 3) -> World:
    return World(None, seed=seed, nodes=0)  # type: ignore[arg-type]


def made(world: World) -> dict[str, str]:
    sent = world.send("POST", "/api/v1/namespaces", {"metadata": {"generateName": "n-"}})
    return {name: sent["metadata"][name] for name in ("name", "uid", "resourceVersion")}


def test_a_world_begins_with_what_a_new_cluster_installs() -> None:
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(3))
    core.bootstrap(port=6443)
    found = stored(new().core.store)
    assert {key: found.get(key) for key in stored(core.store)} == stored(core.store)


def test_worlds_of_a_seed_go_on_alike_and_others_do_not() -> None:
    assert [made(new()), made(new())] == [made(new())] * 2
    assert made(new()) != made(new(4))


def test_what_happens_in_a_world_is_not_in_the_next() -> None:
    first, untouched = new(), stored(new().core.store)
    first.send("PATCH", NAMESPACE, {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
    first.core.store.list("/namespaces")[0].obj["metadata"]["name"] = "written in place"
    first.driver.advance(60)
    assert stored(first.core.store) != untouched == stored(new().core.store)
    assert new().core.store.list("/namespaces")[0].obj["metadata"]["name"] == "argocd"

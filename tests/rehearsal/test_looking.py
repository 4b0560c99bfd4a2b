"""Looks at a rehearsed cluster see what a list of everything would show, and forget nothing that waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, dig
from syncline.machineconfig.names import POOL
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.given.world import parse_world
from syncline.rehearsal.looking import Finished, Watching
from syncline.rehearsal.playing import Asked, Play

CONFIG = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: colours}\ndata: {sky: %s}\n"


def test_what_was_watched_equals_what_is_listed(tmp_path: Path) -> None:
    world = parse_world("nodes: [{name: node}]\n", Path("world.yaml"), Files({}))
    play = Play(Asked("one", Files({"map.yaml": CONFIG % b"blue"}), world), tmp_path)
    indices = application_indices(AppSettings())
    watching = Watching(play.world.admin, play.world.clock, indices)
    play.prepare()
    watching.look()
    for colour in (b"blue", b"red"):
        play.commit(Files({"map.yaml": CONFIG % colour}))
        play.world.driver.advance(60)
        cache = watching.look()
        listed = run_in_place(snapshot_of_cluster(indices), play.world.admin).cache
        kinds = set(cache.kinds())
        assert kinds >= set(listed.kinds()) - {kind for kind in listed.kinds() if kind.group == "events.k8s.io"}
        for kind in sorted(kinds):
            assert cache.objects(kind) == listed.objects(kind)
    assert dig(play.world.send("GET", "/api/v1/namespaces/one/configmaps/colours"), "data", "sky") == "red"


def application(version: str = "1", **status: object) -> Obj:
    said = {"sync": {"status": "Synced"}, "health": {"status": "Healthy"}, "operationState": {"phase": "Succeeded"}}
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": "shop", "namespace": "argocd", "resourceVersion": version},
        "status": said | status,
    }


def pool(version: str, **spec: object) -> Obj:
    metadata = {"name": "worker", "resourceVersion": version}
    return {"apiVersion": f"{POOL.group}/v1", "kind": POOL.kind, "metadata": metadata, "spec": spec}


def project(version: str) -> Obj:
    metadata = {"name": "default", "namespace": "argocd", "resourceVersion": version}
    return {"apiVersion": APP_PROJECT.api_version, "kind": APP_PROJECT.kind, "metadata": metadata, "spec": {}}


def test_what_waits_for_nothing_is_looked_at_again_when_it_or_what_it_depends_on_changes() -> None:
    cache, finished = Cache(Mapper()), Finished()
    cache.put(POOL, pool("1", paused=False))
    finished.look(cache)
    finished.note(application())
    assert finished.knows(application())
    assert not finished.knows(application("2"))
    cache.put(POOL, pool("2", paused=False))  # its status, for one
    finished.look(cache)
    assert finished.knows(application())
    for kind, obj in ((POOL, pool("3", paused=True)), (APP_PROJECT.group_kind, project("4"))):
        finished.note(application())
        cache.put(kind, obj)
        finished.look(cache)
        assert not finished.knows(application())


@pytest.mark.parametrize(
    "status",
    [
        {"health": {"status": "Suspended"}},
        {"sync": {"status": "OutOfSync"}},
        {"operationState": {"phase": "Failed"}},
        {"resources": [{"group": POOL.group, "kind": "MachineConfig", "name": "50-motd"}]},
    ],
)
def test_what_may_begin_to_wait_by_itself_is_looked_at_each_time(status: dict[str, object]) -> None:
    finished = Finished()
    finished.look(Cache(Mapper()))
    finished.note(application(**status))
    assert not finished.knows(application(**status))

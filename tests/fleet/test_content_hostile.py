"""Rendered content that someone changed, moved or replayed, keys that change under way, and deaths at each write.

``SYNCLINE_CRASH_POINTS`` says at how many writes of the hub a life ends; without it at three.
"""

from __future__ import annotations

import base64
import itertools
import os
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from tests.fleet.contents import APP, CHUNKS, CONTENTS, KEY, MAPS, OURS, SECRETS, Scene, secret
from tests.fleet.world import config_map

from syncline.argo.content.chunks import MAX_BYTES, digest_of, packed
from syncline.argo.content.entries import entries_of, entry_digest, recipient_of
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import ApiError, Unavailable
from syncline.kube.kinds.content import AGENT_NAMESPACE, MAX_DATA
from syncline.kube.objects import Obj, name_of

POINTS = int(os.environ.get("SYNCLINE_CRASH_POINTS", "3"))
TARGET = f"{OURS.format('c1')}/contenttargets/content"
COPY = f"{CONTENTS.format(AGENT_NAMESPACE)}"


@pytest.fixture(scope="module")
def shared() -> Scene:
    """One cluster that is synced. Each test leaves it synced."""
    made = Scene(config_map("a", text="1"), secret(), config_map("b", text="2"), clusters=("c1", "c2"))
    made.send()
    return made


def here(scene: Scene) -> Obj:
    (found,) = scene.spoke(COPY)["items"]
    return found  # type: ignore[no-any-return]


def put(scene: Scene, content: Obj) -> None:
    """Write the copy of the cluster, as who has all rights there."""
    member = scene.fleet.members["c1"]
    body = {**here(scene), "content": content}
    member.send("PUT", f"{COPY}/{name_of(body)}", body)


def look(scene: Scene) -> None:
    """Let the cluster's controllers begin again and read the content, while its agent is away."""
    scene.start_gitops("c1")
    scene.fleet.time.advance(400)  # more than the grace of a source that can't be read


def name_digest(scene: Scene, digest: str) -> None:
    """Write the version on the cluster's Application, as who may write Applications there. The work agent does not put
    that right by itself: as upstream's, it applies a manifest again when the work changes."""
    body = {"metadata": {"annotations": {"syncline.dev/rendered": digest}}}
    scene.fleet.members["c1"].send("PATCH", APP, body)


def is_well_again(scene: Scene, whole: Obj) -> None:
    """Start the agent and give the Application its digest back; all is as before."""
    scene.fleet.start_agent("c1")
    name_digest(scene, whole["entries"][0]["digest"])
    scene.fleet.time.advance(150)
    assert here(scene)["content"] == whole, "the agent brings it again"
    assert said(scene) == "" and scene.here()["status"]["sync"]["status"] == "Synced"


def said(scene: Scene) -> str:
    found = scene.here()["status"].get("conditions") or ()
    return "; ".join(one["message"] for one in found if one["type"] == "ComparisonError")


def password(scene: Scene) -> str:
    return base64.b64decode(scene.spoke(f"{SECRETS}/db")["data"]["password"]).decode()


def _first(content: Obj, **fields: Any) -> Obj:
    entry, *others = content["entries"]
    return {**content, "entries": [{**entry, **fields}, *others]}


def _forged(content: Obj, **fields: Any) -> Obj:
    """Return the content with fields of its entry changed, and the digest made again for them."""
    changed = _first(content, **fields)
    digest = entry_digest(changed["entries"][0], recipient_of({"content": changed}))
    return _first(changed, digest=digest)


CHANGES: dict[str, tuple[Any, str]] = {
    "a revision": (lambda one: _first(one, revisions=["f" * 40]), "the entry was changed"),
    "an order of manifests": (lambda one: _first(one, runs=[0, 3]), "the entry was changed"),
    "a list of chunks": (lambda one: _first(one, chunks=[], sealed=[]), "the entry was changed"),
    "the Application": (
        lambda one: {**one, "application": {"namespace": "argocd", "name": "x"}},
        "not on this cluster",
    ),
    "the cluster": (lambda one: {**one, "cluster": "c2"}, "the entry was changed"),
    "a digest made again": (lambda one: _forged(one, chunks=[]), "is not on this cluster yet"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_content_of_which_someone_changed(change: str, shared: Scene) -> None:
    make, why = CHANGES[change]
    shared.fleet.stop_agent("c1")
    whole = here(shared)["content"]
    put(shared, make(whole))
    look(shared)
    assert why in said(shared)
    assert shared.maps() == ["a", "b"], "nothing is pruned for it"
    is_well_again(shared, whole)


def test_older_content_in_place_of_the_current_one_is_not_applied(shared: Scene) -> None:
    before = here(shared)["content"]
    shared.source.commit(config_map("a", text="1"), secret(), config_map("c", text="3"))
    shared.refresh()
    assert shared.maps() == ["a", "c"]
    shared.fleet.stop_agent("c1")
    put(shared, before)
    look(shared)
    assert "it is not on this cluster yet" in said(shared) and shared.maps() == ["a", "c"]
    shared.fleet.start_agent("c1")
    shared.fleet.time.advance(400)
    assert said(shared) == "" and shared.maps() == ["a", "c"]
    shared.source.commit(config_map("a", text="1"), secret(), config_map("b", text="2"))
    shared.refresh()
    assert shared.maps() == ["a", "b"]


def test_what_a_tenant_makes_in_a_namespace_of_his_own_counts_for_nothing(shared: Scene) -> None:
    member, copy = shared.fleet.members["c1"], here(shared)
    evil = packed(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"evil","namespace":"default"}}\n')
    chunk = {"apiVersion": copy["apiVersion"], "kind": "ContentChunk", "metadata": {"name": digest_of(evil)}}
    member.send("POST", CHUNKS.format("default"), {**chunk, "data": base64.b64encode(evil).decode()})
    content = _forged(copy["content"], chunks=[digest_of(evil)], sealed=[], runs=[1])
    made = {"apiVersion": copy["apiVersion"], "kind": copy["kind"], "metadata": {"name": "evil"}, "content": content}
    member.send("POST", CONTENTS.format("default"), made)
    digest = content["entries"][0]["digest"]
    shared.fleet.stop_agent("c1")
    name_digest(shared, digest)
    look(shared)
    assert "it is not on this cluster yet" in said(shared)
    assert shared.maps() == ["a", "b"]
    is_well_again(shared, copy["content"])
    member.send("DELETE", f"{CONTENTS.format('default')}/evil")
    member.send("DELETE", f"{CHUNKS.format('default')}/{digest_of(evil)}")


def test_content_of_another_cluster_opens_nothing_here(shared: Scene) -> None:
    shared.send("other", "c2")
    shared.fleet.time.advance(60)
    (theirs,) = shared.listed(CONTENTS, "c2")
    member, entry = shared.fleet.members["c1"], entries_of(theirs)[0]
    sealed = {each["name"] for each in entry["sealed"]}
    for one in shared.listed(CHUNKS, "c2"):
        if name_of(one) in sealed:
            copied = {"apiVersion": one["apiVersion"], "kind": one["kind"], "metadata": {"name": name_of(one)}}
            member.send("POST", CHUNKS.format(AGENT_NAMESPACE), {**copied, "data": one["data"]})
    shared.fleet.stop_agent("c1")
    whole = here(shared)["content"]
    content = _forged(whole, sealed=entry["sealed"])
    put(shared, content)
    digest = content["entries"][0]["digest"]
    name_digest(shared, digest)
    look(shared)
    assert f"it is sealed for key {entry['sealed'][0]['key']}, which this cluster does not have" in said(shared)
    is_well_again(shared, whole)
    assert not sealed & set(shared.there(CHUNKS)), "what nothing names is removed"


def test_an_api_refuses_a_chunk_that_is_too_large_and_a_bomb_is_an_error(shared: Scene) -> None:
    member, copy = shared.fleet.members["c1"], here(shared)
    chunk = {"apiVersion": copy["apiVersion"], "kind": "ContentChunk", "metadata": {"name": "x"}}
    with pytest.raises(ApiError, match="Too long"):
        member.send("POST", CHUNKS.format(AGENT_NAMESPACE), {**chunk, "data": "A" * (MAX_DATA + 4)})
    bomb = packed(b" " * (64 * MAX_BYTES))
    assert len(bomb) < 100_000
    named = {**chunk, "metadata": {"name": digest_of(bomb)}, "data": base64.b64encode(bomb).decode()}
    member.send("POST", CHUNKS.format(AGENT_NAMESPACE), named)
    shared.fleet.stop_agent("c1")
    whole = here(shared)["content"]
    content = _forged(whole, chunks=[digest_of(bomb)])
    put(shared, content)
    digest = content["entries"][0]["digest"]
    name_digest(shared, digest)
    look(shared)
    assert f"a chunk is larger than {MAX_BYTES} bytes" in said(shared) and shared.maps() == ["a", "b"]
    is_well_again(shared, whole)
    assert digest_of(bomb) not in shared.there(CHUNKS), "what nothing names is removed"


def test_a_key_that_is_replaced_in_the_middle_of_a_transfer_loses_nothing() -> None:
    scene = Scene(config_map("a", text="1"), secret())
    scene.send()
    member = scene.fleet.members["c1"]
    old = {"metadata": {"annotations": {"syncline.dev/rotated-at": "2020-01-01T00:00:00Z"}}}
    for count in (1, 2):
        member.hub_cable.cut()
        scene.source.commit(config_map("a", text=str(count)), secret(password=f"rotated-{count}-xyz"))
        scene.refresh()  # sealed for the key that goes
        (before,) = entries_of(scene.listed(CONTENTS)[0])[0]["sealed"]
        member.send("PATCH", KEY, old)
        member.hub_cable.mend()
        scene.fleet.hub.send("PATCH", TARGET, {"spec": {"kubeVersion": "v0.0.0"}})  # so that the agent looks at it
        scene.fleet.time.advance(60)
        assert set(scene.spoke(KEY)["data"]) == {"current", "previous"}
        target = scene.fleet.hub.get(TARGET)
        (sealed,) = entries_of(scene.listed(CONTENTS)[0])[0]["sealed"]
        assert sealed["key"] == target["spec"]["keys"][0]["id"] != before["key"], "sealed again for the new one"
        assert password(scene) == f"rotated-{count}-xyz"
        assert scene.here()["status"]["sync"]["status"] == "Synced"


@dataclass
class Killed:
    """The connection of the hub's controllers, which die after so many writes."""

    inner: Transport
    left: int
    log: list[str]

    def send(self, request: Request) -> Response:
        if self.left <= 0:
            return Response.refused(Unavailable("killed"))
        answer = self.inner.send(request)
        if request.method != "GET" and "/events" not in request.path:
            self.left -= 1
            self.log.append(f"{request.method} {request.path}")
        return answer


def test_the_hub_may_die_after_any_write_of_a_transfer(figure: Any) -> None:
    scene = Scene(config_map("a", text="0"), secret())
    scene.send()
    counted: list[str] = []
    scene.restart_pull(partial(Killed, left=10_000, log=counted))
    _commit(scene, 0)
    writes = len(counted)
    assert writes >= 5, counted
    lasts = list(range(1, writes + 1, max(1, writes // POINTS)))
    for number, last in enumerate(lasts, 1):
        scene.restart_pull(partial(Killed, left=last, log=[]))
        _commit(scene, number)
        scene.restart_pull()
        scene.fleet.time.advance(30)
        assert scene.spoke(f"{MAPS}/a")["data"] == {"text": f"n{number}"}, f"after write {last}: {counted[last - 1]}"
        assert password(scene) == f"password-{number}-xyz"
        assert scene.here()["status"]["sync"]["revision"] == scene.source.head
        named = {chunk for one in scene.listed(CONTENTS) for e in entries_of(one) for chunk in _names(e)}
        assert named <= {name_of(one) for one in scene.listed(CHUNKS)}, "what is named is there"
    figure("deaths of the hub in a transfer", f"{len(lasts)} of {writes} writes, the same end")


def _names(entry: Obj) -> list[str]:
    return [*entry["chunks"], *itertools.chain(one["name"] for one in entry["sealed"])]


def _commit(scene: Scene, number: int) -> None:
    scene.source.commit(config_map("a", text=f"n{number}"), secret(password=f"password-{number}-xyz"))
    scene.refresh()

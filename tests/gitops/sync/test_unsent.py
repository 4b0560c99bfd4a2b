"""What a sync does not send: a watch that works is evidence, and nothing that changed is passed over for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from syncline.control.cache import Cache
from syncline.control.informer import Informer
from syncline.gitops.application.manifests import Manifests
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unanswered
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ResourceInfo
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
NAMES = ("a", "b", "c")


class Source:
    """Three ConfigMaps, and whatever a test makes of them."""

    def __init__(self) -> None:
        self.values = dict.fromkeys(NAMES, "1")

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        made = [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}}
            for name, value in self.values.items()
        ]
        return Manifests(("".join(self.values.values()).ljust(40, "0"),), tuple(made), ("Directory",), now)


class Line:
    """What the controllers send about ConfigMaps; ``before`` is done once, just ahead of a request that it picks."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.before: Callable[[Request], bool] = lambda _request: False

    def over(self, inner: Transport) -> Transport:
        self._inner = inner
        return self

    def send(self, request: Request) -> Response:
        if request.path.startswith(MAPS):
            if self.before(request):
                self.before = lambda _request: False
            dry = " dry" if "dryRun" in request.query else ""
            name = request.path.removeprefix(MAPS).strip("/")
            self.sent.append(f"{request.method} {name}{dry}".replace("  ", " "))
        return self._inner.send(request)

    def taken(self) -> list[str]:
        sent, self.sent = self.sent, []
        return sent


class Scene:
    def __init__(self, *options: str) -> None:
        self.source, self.line = Source(), Line()
        self.world = World(self.source, nodes=0)
        self.world.start_gitops(self.line.over)
        spec = {
            "project": "default",
            "source": {"repoURL": "https://example.com/r.git", "path": "."},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"syncOptions": list(options)},
        }
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "app"}}
        self.world.send("POST", APPS, kind | {"spec": spec})
        self.world.driver.settle()
        self.line.taken()

    def sync(self, **more: Any) -> dict[str, str]:
        """The rows of one operation, by name."""
        self.world.send("PATCH", f"{APPS}/app", {"operation": {"sync": more}}, MERGE)
        self.world.driver.until_idle()
        state = self.world.send("GET", f"{APPS}/app")["status"]["operationState"]
        assert state["phase"] == "Succeeded", state
        return {row["name"]: row["message"] for row in state["syncResult"]["resources"]}

    def value(self, name: str) -> str:
        return str(self.world.send("GET", f"{MAPS}/{name}")["data"]["v"])

    def status(self) -> str:
        return str(self.world.send("GET", f"{APPS}/app")["status"]["sync"]["status"])

    def change(self, name: str, value: str) -> None:
        self.world.send("PATCH", f"{MAPS}/{name}", {"data": {"v": value}}, MERGE)


def test_a_new_object_is_asked_about_once_and_made_once() -> None:
    scene = Scene()
    assert scene.sync() == {name: f"configmap/{name} created" for name in NAMES}
    assert scene.line.taken() == ["POST dry"] * 3 + ["POST "] * 3


def test_what_is_as_the_last_apply_left_it_is_not_sent_and_its_row_says_unchanged() -> None:
    scene = Scene()
    scene.sync()
    scene.line.taken()
    assert scene.sync() == {name: f"configmap/{name} unchanged" for name in NAMES}
    assert scene.line.taken() == []


def test_after_a_restart_the_note_of_what_was_applied_is_evidence_enough() -> None:
    scene = Scene()
    scene.sync()
    scene.world.start_gitops(scene.line.over)
    scene.world.driver.until_idle()
    scene.line.taken()
    assert scene.sync() == {name: f"configmap/{name} unchanged" for name in NAMES}
    assert scene.line.taken() == []


def test_of_many_objects_the_one_that_the_commit_changed_is_sent() -> None:
    scene = Scene()
    scene.sync()
    scene.line.taken()
    scene.source.values["b"] = "2"
    assert scene.sync()["b"] == "configmap/b configured"
    assert scene.line.taken() == ["PATCH b dry", "PATCH b"]
    assert scene.value("b") == "2"


def test_a_live_object_that_somebody_changed_is_sent() -> None:
    scene = Scene()
    scene.sync()
    scene.change("c", "theirs")
    scene.world.driver.until_idle()
    scene.line.taken()
    assert scene.sync()["c"] == "configmap/c configured"
    assert (scene.value("c"), scene.line.taken()) == ("1", ["PATCH c dry", "PATCH c"])


def test_a_live_object_that_changes_between_the_look_and_the_patch_is_read_and_patched_again() -> None:
    scene = Scene()
    scene.sync()
    scene.source.values["b"] = "2"
    scene.line.taken()

    def meddle(request: Request) -> bool:
        if request.method != "PATCH" or "dryRun" in request.query:
            return False
        scene.change("b", "theirs")
        return True

    scene.line.before = meddle
    assert scene.sync()["b"] == "configmap/b configured"
    assert (scene.value("b"), scene.line.taken()) == ("2", ["PATCH b dry", "PATCH b", "GET b", "PATCH b"])


def test_an_object_that_is_made_by_somebody_else_meanwhile_is_taken_over() -> None:
    scene = Scene()

    def meddle(request: Request) -> bool:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"v": "theirs"}}
        scene.world.send("POST", MAPS, body)
        return True

    scene.line.before = meddle
    assert scene.sync()["a"] == "configmap/a configured"
    assert scene.value("a") == "1"


def test_an_object_that_goes_between_the_look_and_the_patch_is_made_again() -> None:
    scene = Scene()
    scene.sync()
    scene.source.values["b"] = "2"

    def meddle(request: Request) -> bool:
        if request.method != "PATCH" or "dryRun" in request.query:
            return False
        scene.world.send("DELETE", f"{MAPS}/b")
        return True

    scene.line.before = meddle
    assert scene.sync()["b"] == "configmap/b created"
    assert scene.value("b") == "2"


def test_a_change_that_the_watch_tells_too_late_for_one_sync_makes_the_application_out_of_sync() -> None:
    scene = Scene()
    scene.sync()

    def meddle(request: Request) -> bool:
        if request.method != "PATCH" or "dryRun" not in request.query:
            return False
        scene.change("c", "theirs")
        return True

    scene.line.before = meddle
    scene.source.values["b"] = "2"
    assert scene.sync()["c"] == "configmap/c unchanged"
    assert scene.status() == "OutOfSync"
    assert scene.sync()["c"] == "configmap/c configured"
    assert (scene.value("c"), scene.status()) == ("1", "Synced")


def test_server_side_an_apply_is_repeated_only_once_somebody_took_a_field_of_it() -> None:
    scene = Scene("ServerSideApply=true")
    applied = dict.fromkeys(NAMES, "serverside-applied")

    def rows() -> dict[str, str]:
        return {name: message.rpartition(" ")[2] for name, message in scene.sync().items()}

    assert rows() == applied
    assert scene.line.taken() == [f"PATCH {name} dry" for name in NAMES] + [f"PATCH {name}" for name in NAMES]
    assert (rows(), scene.line.taken()) == (applied, [])
    scene.world.send("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"of": "others"}}}, MERGE)
    scene.change("b", "theirs")
    scene.world.driver.until_idle()
    assert (rows(), scene.line.taken()) == (applied, ["PATCH b dry", "PATCH b"])
    assert scene.value("b") == "1"


@pytest.mark.parametrize("asked", [{"dryRun": True}, {}])
def test_a_dry_run_says_the_same_of_what_is_not_sent(asked: Obj) -> None:
    scene = Scene()
    scene.sync()
    scene.line.taken()
    said = "configured (dry run)" if asked else "unchanged"
    assert scene.sync(**asked)["a"] == f"configmap/a {said}"
    assert scene.line.taken() == []


def test_a_kind_whose_watch_failed_is_not_followed_until_it_is_heard_again() -> None:
    info = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True, verbs=("list", "watch"))
    cache = Cache(Mapper([info]))
    informer = Informer(info, cache)
    said = [cache.follows(info.group_kind)]
    informer.listed({"kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []})
    said.append(cache.follows(info.group_kind))
    informer.failed(Unanswered("no answer"))
    said.append(cache.follows(info.group_kind))
    informer.received([])
    said.append(cache.follows(info.group_kind))
    assert said == [False, True, False, True]


def test_what_no_working_watch_shows_is_read_before_it_is_applied() -> None:
    scene = Scene()
    scene.sync()
    scene.line.taken()
    cache = scene.world.gitops_actor.loop.cache
    cache.mark_behind(ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True).group_kind)
    assert scene.sync() == {name: f"configmap/{name} unchanged" for name in NAMES}
    assert scene.line.taken() == [f"GET {name}" for name in NAMES] * 2

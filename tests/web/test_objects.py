"""The tree of an Application and its single objects, on the embedded API: who may read, patch and delete what."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.web.serving import parts_of

from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.serving.direct import DirectTransport
from syncline.cluster.storage.store import Store
from syncline.control.manager import DirectPort, drive
from syncline.kube.client import Request
from syncline.kube.kinds.argoproj import crds
from syncline.kube.mapper import discover
from syncline.kube.objects import Obj
from syncline.web.access import Caller, OpenAccess
from syncline.web.server import handlers_of
from syncline.web.state import CONFIG_MAP, PROJECTS, State
from syncline.web.wire.answering import message_bytes
from syncline.web.wire.api import methods, read
from syncline.web.wire.calls import Call
from syncline.web.wire.status import Code, RpcError

POD = {"containers": [{"name": "c", "image": "registry.example/web:1"}]}
ROWS = [
    {"group": "apps", "version": "v1", "kind": "ReplicaSet", "namespace": "default", "name": "web"},
    {"version": "v1", "kind": "Secret", "namespace": "default", "name": "key"},
    {"version": "v1", "kind": "ConfigMap", "namespace": "default", "name": "gone"},
    {"version": "v1", "kind": "Secret", "namespace": "default", "name": "untracked"},
    {"version": "v1", "kind": "Secret", "namespace": "default", "name": "copied"},
    {"version": "v1", "kind": "Secret", "namespace": "kube-system", "name": "forbidden"},
]
APP = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "shop"},
    "spec": {
        "project": "default",
        "source": {"repoURL": "https://git.example.invalid/shop.git", "path": "."},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
    },
    "status": {"resources": ROWS},
}
REPLICA_SET = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {
        "name": "web",
        "annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/ReplicaSet:default/web"},
    },
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD},
    },
}
KEY = {"group": "", "kind": "Secret", "namespace": "default", "resourceName": "key", "version": "v1", "name": "shop"}


PROJECT = {
    "metadata": {"name": "default", "namespace": "argocd"},
    "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "default"}]},
}


def tracked(kind: str, name: str, namespace: str = "default", group: str = "") -> Obj:
    """Return annotations that name an object of the Application."""
    return {"argocd.argoproj.io/tracking-id": f"shop:{group}/{kind}:{namespace}/{name}"}


class Rights(OpenAccess):
    """Permits these actions on the Application only."""

    def __init__(self, *actions: str) -> None:
        self.actions = actions

    def permits(self, caller: Caller, resource: str, action: str, name: str) -> bool:
        return (resource, name) == ("applications", "default/shop") and action in self.actions


class Scene:
    """An embedded API with one Application: a ReplicaSet with a Pod, a Secret, and a ConfigMap that is missing."""

    def __init__(self) -> None:
        store = Store()
        self.admin = DirectTransport(Api(store, Registry(store), Authorizer(store), VirtualClock(), Entropy(1)))
        self.state = State(DirectPort(self.admin))
        for crd in crds():
            self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        for name in ("default", "argocd", "kube-system"):
            self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.post("/apis/argoproj.io/v1alpha1/namespaces/argocd/applications", APP)
        owner = self.post("/apis/apps/v1/namespaces/default/replicasets", REPLICA_SET)
        owned = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"]}
        for plural, obj in (
            ("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": "default"}}),
            ("pods", {"kind": "Pod", "metadata": {"name": "web-1", "ownerReferences": [owned]}, "spec": POD}),
        ):
            self.post(f"/api/v1/namespaces/default/{plural}", {"apiVersion": "v1", **obj})
        self.secret("key", tracked("Secret", "key"))
        self.secret("foreign", tracked("Secret", "foreign"))
        self.secret("untracked", {})
        self.secret("copied", tracked("Secret", "key"))
        self.secret("forbidden", tracked("Secret", "forbidden", "kube-system"), "kube-system")
        self.state.cache.put(PROJECTS, PROJECT)

    def secret(self, name: str, annotations: Obj, namespace: str = "default") -> None:
        body = {"metadata": {"name": name, "annotations": annotations}, "stringData": {"password": "hidden-canary"}}
        self.post(f"/api/v1/namespaces/{namespace}/secrets", {"apiVersion": "v1", "kind": "Secret", **body})

    def post(self, path: str, body: Obj) -> Obj:
        made: Obj = self.admin.send(Request("POST", path, body=body)).or_raise()
        return made

    def has(self, path: str) -> bool:
        return self.admin.send(Request("GET", path)).ok

    def settings(self, **data: str) -> None:
        metadata = {"name": "argocd-cm", "namespace": "argocd"}
        found = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        self.state.cache.put(CONFIG_MAP, found)

    def call(self, name: str, query: Obj, access: OpenAccess | None = None) -> Any:
        """Call a method, and return its answer as a client reads it."""

        async def run() -> Any:
            self.state.mapper.replace(await drive(discover(), self.state.port))
            method = methods()[f"/application.ApplicationService/{name}"]
            handler = handlers_of(parts_of(self.state, access))[method.path]
            answer: Any = handler(Call(method, Caller("guest"), {}, ""), query)
            return read(method.response, message_bytes(method, await answer))

        return asyncio.run(run())


def test_a_tree_has_what_objects_own_and_what_is_missing() -> None:
    nodes = {one["name"]: one for one in Scene().call("ResourceTree", {"applicationName": "shop"})["nodes"]}
    assert list(nodes) == ["web", "web-1", "key", "gone", "untracked", "copied", "forbidden"]
    assert nodes["web-1"]["images"] == ["registry.example/web:1"]
    parent = nodes["web-1"]["parentRefs"][0]
    assert (parent["kind"], parent["name"], parent["uid"]) == ("ReplicaSet", "web", nodes["web"]["uid"])
    assert nodes["gone"]["health"] == {"status": "Missing"}
    assert "uid" not in nodes["gone"]


def test_values_of_a_secret_are_masked_also_after_a_patch() -> None:
    scene = Scene()
    shown = scene.call("GetResource", KEY)["manifest"]
    assert set(json.loads(shown)["data"]) == {"password"}
    patch = {"patchType": "application/merge-patch+json", "patch": '{"stringData": {"more": "hidden-canary"}}'}
    patched = scene.call("PatchResource", KEY | patch)["manifest"]
    assert set(json.loads(patched)["data"]) == {"password", "more"}
    for text in (shown, patched):
        assert "aGlkZGVuLWNhbmFyeQ" not in text
        assert "hidden-canary" not in text


def test_only_objects_of_the_tree_are_reached() -> None:
    scene = Scene()
    for name in ("GetResource", "DeleteResource", "PatchResource"):
        with pytest.raises(RpcError) as refused:
            scene.call(name, KEY | {"resourceName": "foreign"})
        assert refused.value.code is Code.INVALID_ARGUMENT
        assert refused.value.message == "Secret  foreign not found as part of application shop"
    assert scene.has("/api/v1/namespaces/default/secrets/foreign")


@pytest.mark.parametrize(
    ("name", "namespace"), [("untracked", "default"), ("copied", "default"), ("forbidden", "kube-system")]
)
def test_a_status_that_names_objects_of_others_reaches_none_of_them(name: str, namespace: str) -> None:
    scene = Scene()
    shown = next(one for one in scene.call("ResourceTree", {"applicationName": "shop"})["nodes"] if one["name"] == name)
    assert not {"uid", "resourceVersion", "health"} & shown.keys()
    for method in ("GetResource", "DeleteResource", "PatchResource"):
        with pytest.raises(RpcError) as refused:
            scene.call(method, KEY | {"resourceName": name, "namespace": namespace})
        assert refused.value.message == f"Secret  {name} not found as part of application shop"
    assert scene.has(f"/api/v1/namespaces/{namespace}/secrets/{name}")


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ("{", "application/merge-patch+json"),
        ("[]", "application/merge-patch+json"),
        ("{}", "application/json-patch+json"),
        ("{}", "application/apply-patch+yaml"),
        ("{}", "text/plain"),
    ],
)
def test_a_patch_of_another_form_is_refused(patch: str, kind: str) -> None:
    with pytest.raises(RpcError) as refused:
        Scene().call("PatchResource", KEY | {"patch": patch, "patchType": kind})
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_a_delete_needs_the_right_of_the_object() -> None:
    scene, path = Scene(), "/api/v1/namespaces/default/secrets/key"
    with pytest.raises(RpcError) as refused:
        scene.call("DeleteResource", KEY, Rights("get", "delete", "delete//Pod/default/key"))
    assert (refused.value.code, scene.has(path)) == (Code.PERMISSION_DENIED, True)
    scene.call("DeleteResource", KEY | {"force": True}, Rights("delete//Secret/default/key"))
    assert not scene.has(path)


def test_a_delete_by_the_right_of_the_application_where_rights_are_inherited() -> None:
    scene = Scene()
    scene.settings(**{"server.rbac.disableApplicationFineGrainedRBACInheritance": "false"})
    scene.call("DeleteResource", KEY | {"force": True}, Rights("delete"))
    assert not scene.has("/api/v1/namespaces/default/secrets/key")


def test_objects_are_not_touched_where_impersonation_is_asked_for() -> None:
    scene = Scene()
    scene.settings(**{"application.sync.impersonation.enabled": "true"})
    with pytest.raises(RpcError) as refused:
        scene.call("GetResource", KEY)
    assert refused.value.code is Code.UNIMPLEMENTED

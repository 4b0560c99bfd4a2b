from __future__ import annotations

import pytest

from syncline.cluster.access.authz import Attributes, Authorizer
from syncline.cluster.access.users import ANONYMOUS, UserInfo
from syncline.cluster.bootstrap import bootstrap_objects, install
from syncline.cluster.storage.store import Key, Store
from syncline.kube.client import Request, Response
from syncline.kube.errors import Forbidden, already_exists
from syncline.kube.objects import Obj, name_of, namespace_of

RBAC_KINDS = {
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
}


def authorizer(*more: Obj) -> Authorizer:
    store = Store()
    for obj in [*bootstrap_objects(), *more]:
        if obj["kind"] in RBAC_KINDS:
            resource = f"rbac.authorization.k8s.io/{RBAC_KINDS[obj['kind']]}"
            store.put(Key(resource, namespace_of(obj), name_of(obj)), obj, expect=0)
    return Authorizer(store)


def bound(role: str) -> Obj:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "b", "namespace": "demo"},
        "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"kind": "ClusterRole", "name": role},
    }


@pytest.mark.parametrize(
    ("role", "verb", "group", "resource", "allowed"),
    [
        ("view", "list", "", "pods", True),
        ("view", "get", "", "secrets", False),
        ("view", "create", "apps", "deployments", False),
        ("edit", "list", "", "pods", True),
        ("edit", "get", "", "secrets", True),
        ("edit", "create", "apps", "deployments", True),
        ("edit", "create", "rbac.authorization.k8s.io", "roles", False),
        ("admin", "list", "", "pods", True),
        ("admin", "create", "apps", "deployments", True),
        ("admin", "create", "rbac.authorization.k8s.io", "roles", True),
        ("admin", "create", "", "resourcequotas", False),
        ("cluster-admin", "create", "", "resourcequotas", True),
    ],
)
def test_view_edit_and_admin_grow_from_each_other(
    role: str, verb: str, group: str, resource: str, allowed: bool
) -> None:
    asked = Attributes(verb, group, resource, namespace="demo")
    assert authorizer(bound(role)).decide(UserInfo("jane"), asked).allowed is allowed


def test_everyone_who_is_known_may_ask_what_they_may_do_and_what_there_is() -> None:
    anyone = UserInfo("jane", ("system:authenticated",))
    rules, errors = authorizer().rules(anyone, "demo")
    assert errors == ""
    resources = [(rule.api_groups, rule.resources) for rule in rules if rule.resources]
    assert resources == [
        (("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
        (("authentication.k8s.io",), ("selfsubjectreviews",)),
    ]
    assert authorizer().decide(anyone, Attributes("get", path="/apis/apps/v1")).allowed


def test_strangers_may_read_the_version_only() -> None:
    judge = authorizer()
    assert judge.decide(ANONYMOUS, Attributes("get", path="/version")).allowed
    assert not judge.decide(ANONYMOUS, Attributes("get", path="/apis")).allowed


def test_what_is_missing_is_made_and_what_is_there_is_left_alone() -> None:
    asked: list[str] = []

    def send(request: Request) -> Response:
        asked.append(request.path)
        if name_of(request.body) == "default":
            return Response.refused(already_exists("namespaces", "default"))
        return Response.of(201, request.body)

    objects = bootstrap_objects(ca_pem="PEM")
    assert install(send, objects) == len(objects) - 1
    assert asked[0] == "/api/v1/namespaces" and "/api/v1/namespaces/default/services" in asked
    assert not any("{" in path for path in asked)


def test_a_refusal_stops_the_installation() -> None:
    with pytest.raises(Forbidden):
        install(lambda request: Response.refused(Forbidden("no")), bootstrap_objects())


def test_objects_are_unique_and_bindings_name_roles_that_exist() -> None:
    objects = bootstrap_objects(ca_pem="PEM")
    identities = [(obj["kind"], namespace_of(obj), name_of(obj)) for obj in objects]
    assert len(set(identities)) == len(identities)
    for obj in objects:
        if "roleRef" in obj:
            ref = obj["roleRef"]
            space = namespace_of(obj) if ref["kind"] == "Role" else ""
            assert (ref["kind"], space, ref["name"]) in identities

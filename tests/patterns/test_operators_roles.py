"""The ClusterRoles of operators: of each API that they provide, and of their OperatorGroup."""

from __future__ import annotations

from tests.patterns.operating import OLM, Operators, bundle, channel, package

from syncline.kube.objects import Obj
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.providing import aggregation_label, group_roles

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
WIDGET = Api("example.com", "v1", "Widget")


def world_with_widgets() -> Operators:
    only = channel("widgets", "stable", "widgets.v1.0.0")
    world = Operators(package("widgets"), only, bundle("widgets", "1.0.0", "Widget.v1.example.com"))
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.time.advance(5)
    return world


def roles_of(world: Operators, kind: str) -> dict[str, Obj]:
    items: list[Obj] = world.get(ROLES)["items"]
    mine = [one for one in items if one["metadata"].get("labels", {}).get("olm.owner.kind") == kind]
    return {one["metadata"]["name"]: one for one in mine}


def test_an_api_has_roles_that_the_roles_of_users_and_of_the_group_aggregate() -> None:
    world = world_with_widgets()
    verbs = {one: world.get(f"{ROLES}/widgets.example.com-v1-{one}")["rules"] for one in ("admin", "edit", "view")}
    assert verbs["admin"] == [{"verbs": ["*"], "apiGroups": ["example.com"], "resources": ["widgets"]}]
    assert verbs["edit"][0]["verbs"] == ["create", "update", "patch", "delete"]
    crd = world.get(f"{ROLES}/widgets.example.com-v1-crdview")
    assert crd["rules"][0]["resourceNames"] == ["widgets.example.com"]
    assert crd["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert crd["metadata"]["ownerReferences"][0]["kind"] == "CustomResourceDefinition"
    groups = [rule for rule in world.get(f"{ROLES}/view")["rules"] if "example.com" in rule["apiGroups"]]
    assert groups == [{"verbs": ["get", "list", "watch"], "apiGroups": ["example.com"], "resources": ["widgets"]}]
    owned = roles_of(world, "OperatorGroup")
    (admin,) = (one for name, one in owned.items() if name.startswith("olm.og.group.admin-"))
    assert admin["rules"] == verbs["admin"]
    label = {aggregation_label(WIDGET, "admin"): "true"}
    assert admin["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": label}]}


def test_a_role_that_is_changed_or_deleted_is_put_right_again() -> None:
    world = world_with_widgets()
    path = f"{ROLES}/widgets.example.com-v1-edit"
    world.send("PATCH", path, {"rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]})
    world.time.advance(5)
    assert world.get(path)["rules"][0]["apiGroups"] == ["example.com"]
    world.send("DELETE", path)
    world.time.advance(5)
    assert world.get(path)["rules"][0]["resources"] == ["widgets"]


def test_the_roles_of_a_group_go_with_it() -> None:
    world = world_with_widgets()
    before = {name for name, one in roles_of(world, "OperatorGroup").items() if ".group." in name}
    assert len(before) == 3
    world.send("DELETE", "/apis/operators.coreos.com/v1/namespaces/team/operatorgroups/group")
    world.time.advance(5)
    assert not before & set(roles_of(world, "OperatorGroup"))
    assert world.phase("team", "widgets.v1.0.0") == "Failed"
    assert not world.absent(f"{OLM}/team/clusterserviceversions/widgets.v1.0.0")


def test_names_and_labels_are_upstreams() -> None:
    group = {"metadata": {"name": "g" * 300, "namespace": "team"}}
    names = [one["metadata"]["name"] for one in group_roles(group, ())]
    assert all(len(name) <= 253 for name in names)
    assert [name.rsplit(".", 1)[1].split("-")[0] for name in names] == ["admin", "edit", "view"]
    assert aggregation_label(WIDGET, "view").startswith("olm.opgroup.permissions/aggregate-to-")

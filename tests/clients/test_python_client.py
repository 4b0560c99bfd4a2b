"""The official Python client, unmodified, over HTTPS: typed and dynamic, lists, watches, patches, apply, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.clients.manifests import config, deployment, widget, widgets
from tests.live import Served

official = pytest.importorskip("kubernetes", reason="the official Python client is not installed")
from kubernetes import client, config as configuration, dynamic, utils, watch  # noqa: E402, I001

NAMESPACE, GROUP = "python-client", "python.example"
WAIT_S = 300


@pytest.fixture(scope="module")
def api(served: Served) -> Iterator[Any]:
    connection = configuration.new_client_from_config(str(served.kubeconfig))
    with connection:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        core = client.CoreV1Api(connection)
        core.create_namespace(body)
        follow = watch.Watch()  # pods are refused before their service account is there
        for _ in follow.stream(core.list_namespaced_service_account, NAMESPACE, timeout_seconds=WAIT_S):
            follow.stop()
        yield connection
        definitions = client.ApiextensionsV1Api(connection)
        if any(one.metadata.name == f"widgets.{GROUP}" for one in definitions.list_custom_resource_definition().items):
            definitions.delete_custom_resource_definition(f"widgets.{GROUP}")


def test_objects_are_created_read_listed_patched_replaced_and_deleted(api: Any) -> None:
    core = client.CoreV1Api(api)
    made = core.create_namespaced_config_map(NAMESPACE, config("c", a="1"))
    assert (made.metadata.name, made.data) == ("c", {"a": "1"})
    core.patch_namespaced_config_map("c", NAMESPACE, {"data": {"b": "2"}})
    read = core.read_namespaced_config_map("c", NAMESPACE)
    read.data["a"] = "3"
    core.replace_namespaced_config_map("c", NAMESPACE, read)
    found = core.list_namespaced_config_map(NAMESPACE, field_selector="metadata.name=c").items
    assert [each.data for each in found] == [{"a": "3", "b": "2"}]
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("c", NAMESPACE, read)
    assert refused.value.status == 409
    assert core.delete_namespaced_config_map("c", NAMESPACE).status == "Success"
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_config_map("c", NAMESPACE)
    assert missing.value.status == 404 and '"reason":"NotFound"' in missing.value.body


def test_long_lists_come_in_pages(api: Any) -> None:
    core = client.CoreV1Api(api)
    for number in range(5):
        core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": f"page-{number}"}})
    names: list[str] = []
    token = None
    while token != "":
        page = core.list_namespaced_secret(NAMESPACE, limit=2, _continue=token)
        assert len(page.items) <= 2
        names += [each.metadata.name for each in page.items]
        token = page.metadata._continue or ""
    assert names == [f"page-{number}" for number in range(5)]


def test_a_watch_follows_a_deployment_until_it_is_available(api: Any) -> None:
    apps = client.AppsV1Api(api)
    version = apps.list_namespaced_deployment(NAMESPACE).metadata.resource_version
    apps.create_namespaced_deployment(NAMESPACE, deployment("watched", replicas=1))
    seen = []
    follow = watch.Watch()
    since = {"resource_version": version, "timeout_seconds": WAIT_S}
    for event in follow.stream(apps.list_namespaced_deployment, NAMESPACE, **since):
        seen.append(event["type"])
        if event["object"].status.available_replicas:
            follow.stop()
    assert seen[0] == "ADDED" and set(seen[1:]) == {"MODIFIED"}
    scale = apps.read_namespaced_deployment_scale("watched", NAMESPACE)
    assert (scale.spec.replicas, scale.status.replicas) == (1, 1)
    apps.patch_namespaced_deployment_scale("watched", NAMESPACE, {"spec": {"replicas": 0}})
    assert apps.read_namespaced_deployment("watched", NAMESPACE).spec.replicas == 0
    apps.delete_namespaced_deployment("watched", NAMESPACE, propagation_policy="Foreground")


def test_a_watch_from_a_version_gets_only_what_came_later(api: Any) -> None:
    core = client.CoreV1Api(api)
    version = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
    core.create_namespaced_config_map(NAMESPACE, config("later", a="1"))
    mine = {"field_selector": "metadata.name!=kube-root-ca.crt"}  # which a controller gives each namespace
    stream = watch.Watch().stream(
        core.list_namespaced_config_map, NAMESPACE, resource_version=version, timeout_seconds=1, **mine
    )
    assert [(event["type"], event["object"].metadata.name) for event in stream] == [("ADDED", "later")]


def test_an_eviction_that_a_budget_forbids_is_answered_429(api: Any) -> None:
    core, policy = client.CoreV1Api(api), client.PolicyV1Api(api)
    spec = {"containers": [{"name": "main", "image": "shop:1"}]}
    core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": "kept", "labels": {"app": "kept"}}, "spec": spec})
    follow = watch.Watch()
    selected = {"field_selector": "metadata.name=kept", "timeout_seconds": WAIT_S}
    for event in follow.stream(core.list_namespaced_pod, NAMESPACE, **selected):
        if event["object"].status.phase == "Running":
            follow.stop()
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    policy.create_namespaced_pod_disruption_budget(NAMESPACE, {"metadata": {"name": "kept"}, "spec": budget})
    with pytest.raises(client.ApiException) as refused:
        core.create_namespaced_pod_eviction("kept", NAMESPACE, client.V1Eviction(metadata={"name": "kept"}))
    assert refused.value.status == 429


def test_manifests_are_created_by_the_clients_own_helper(api: Any) -> None:
    (made,) = utils.create_from_dict(api, config("by-helper", a="1"), namespace=NAMESPACE)
    assert made.metadata.uid


def test_the_dynamic_client_serves_custom_resources_and_applies_from_the_server_side(api: Any) -> None:
    client.ApiextensionsV1Api(api).create_custom_resource_definition(widgets(GROUP))
    world = dynamic.DynamicClient(api)
    kinds = world.resources.get(api_version=f"{GROUP}/v1", kind="Widget")
    made = kinds.create(body=widget(GROUP, "w", size=4), namespace=NAMESPACE)
    assert (made.spec.size, made.spec.colour) == (4, "red")
    body = widget(GROUP, "w", size=6)
    with pytest.raises(dynamic.exceptions.ConflictError, match="conflict with"):
        kinds.server_side_apply(body=body, namespace=NAMESPACE, field_manager="tests")
    applied = kinds.server_side_apply(body=body, namespace=NAMESPACE, field_manager="tests", force_conflicts=True)
    assert applied.spec.size == 6
    patched = kinds.patch(
        body={"spec": {"colour": "green"}},
        name="w",
        namespace=NAMESPACE,
        content_type="application/merge-patch+json",
    )
    assert patched.spec.colour == "green"
    events = kinds.watch(namespace=NAMESPACE, timeout=1)
    assert [(event["type"], event["object"].spec.size) for event in events] == [("ADDED", 6)]
    with pytest.raises(dynamic.exceptions.UnprocessibleEntityError, match="size must be even"):
        kinds.create(body=widget(GROUP, "odd", size=3), namespace=NAMESPACE)
    kinds.delete(name="w", namespace=NAMESPACE)
    assert kinds.get(namespace=NAMESPACE).items == []


def test_tokens_and_access_reviews_are_answered(api: Any) -> None:
    core, access = client.CoreV1Api(api), client.AuthorizationV1Api(api)
    core.create_namespaced_service_account(NAMESPACE, {"metadata": {"name": "robot"}})
    asked = core.create_namespaced_service_account_token(
        "robot", NAMESPACE, {"spec": {"audiences": [], "expirationSeconds": 600}}
    )
    assert asked.status.token.count(".") == 2
    review = {
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:robot",
            "resourceAttributes": {"verb": "get", "resource": "pods"},
        }
    }
    assert access.create_subject_access_review(review).status.allowed is False

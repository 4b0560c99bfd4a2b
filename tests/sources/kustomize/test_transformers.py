"""What each field of a kustomization does, as policies."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.hashing import spell
from syncline.sources.kustomize.transforming.transform import split_image

_spec = importlib.util.spec_from_file_location("kust", Path(__file__).with_name("kust.py"))
assert _spec is not None and _spec.loader is not None
kust = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(kust)


def container(obj: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = obj["spec"]["template"]["spec"]["containers"][0]
    return found


def test_a_prefix_and_a_suffix_change_names_but_never_those_of_namespaces() -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n" + kust.CONFIG_MAP
    text = "namePrefix: a-\nnameSuffix: -z\n"
    objects = kust.built({"kustomization.yaml": f"resources: [r.yaml]\n{text}", "r.yaml": namespace}).objects
    assert [obj["metadata"]["name"] for obj in objects] == ["n", "a-c-z"]


def test_a_reference_follows_prefix_and_hash() -> None:
    files = {
        "base/kustomization.yaml": (
            "resources: [d.yaml]\nnamePrefix: b-\nconfigMapGenerator: [{name: c, literals: [a=b]}]\n"
        ),
        "base/d.yaml": kust.DEPLOYMENT,
        "top/kustomization.yaml": "resources: [../base]\nnamePrefix: t-\n",
    }
    config_map, deployment = kust.built(files, "top").objects
    assert config_map["metadata"]["name"] == "t-b-c-4h2mbtbbt6"
    assert container(deployment)["envFrom"][0]["configMapRef"]["name"] == config_map["metadata"]["name"]


def test_the_hash_of_a_known_config_map_is_upstreams() -> None:
    assert spell('{"data":{"a":"b"},"kind":"ConfigMap","name":""}') == "4h2mbtbbt6"


def test_a_namespace_is_set_where_the_kind_has_one() -> None:
    assert kust.one("namespace: team")["metadata"]["namespace"] == "team"
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"
    assert "namespace" not in kust.one("namespace: team", role)["metadata"]


@pytest.mark.parametrize(("mode", "moved"), [("defaultOnly", ["t", "o"]), ("allServiceAccounts", ["t", "t"])])
def test_service_accounts_of_bindings_move_as_the_transformer_says(mode: str, moved: list[str]) -> None:
    binding = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b}\n"
        "subjects:\n- {kind: ServiceAccount, name: default, namespace: o}\n"
        "- {kind: ServiceAccount, name: robot, namespace: o}\n"
        "roleRef: {kind: Role, name: r, apiGroup: rbac.authorization.k8s.io}\n"
    )
    config = "apiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: x, namespace: t}\n"
    config += f"setRoleBindingSubjects: {mode}\n"
    found = kust.one("transformers: [t.yaml]", binding, **{"t.yaml": config})
    assert [subject["namespace"] for subject in found["subjects"]] == moved


@pytest.mark.parametrize(
    ("field", "selector", "template"),
    [
        ("commonLabels: {x: '1'}", True, True),
        ("labels: [{pairs: {x: '1'}}]", False, False),
        ("labels: [{pairs: {x: '1'}, includeTemplates: true}]", False, True),
        ("labels: [{pairs: {x: '1'}, includeSelectors: true}]", True, True),
    ],
)
def test_labels_reach_selectors_and_templates_only_where_asked(field: str, selector: bool, template: bool) -> None:
    found = kust.one(field, kust.DEPLOYMENT)
    assert found["metadata"]["labels"] == {"x": "1"}
    assert ("x" in found["spec"]["selector"]["matchLabels"]) is selector
    assert ("x" in found["spec"]["template"]["metadata"]["labels"]) is template


@pytest.mark.parametrize(
    ("entry", "image"),
    [
        ("{name: reg.example.com:5000/nginx, newTag: '2'}", "reg.example.com:5000/nginx:2"),
        ("{name: reg.example.com:5000/nginx, newName: other}", "other:1.25"),
        ("{name: reg.example.com:5000/nginx, digest: 'sha256:1'}", "reg.example.com:5000/nginx@sha256:1"),
        (
            "{name: reg.example.com:5000/nginx, newTag: '2', digest: 'sha256:1'}",
            "reg.example.com:5000/nginx:2@sha256:1",
        ),
        ("{name: reg.example.com:5000/nginx, tagSuffix: -x}", "reg.example.com:5000/nginx:1.25-x-x"),
        ("{name: other, newTag: '2'}", "reg.example.com:5000/nginx:1.25"),
    ],
)
def test_an_image_takes_what_its_entry_names(entry: str, image: str) -> None:
    """A suffix is added twice: by the search for lists of containers, and by the field specs (as upstream)."""
    assert container(kust.one(f"images: [{entry}]", kust.DEPLOYMENT))["image"] == image


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nginx", ("nginx", "", "")),
        ("host:5000/a/b", ("host:5000/a/b", "", "")),
        ("host:5000/a:t@sha256:d", ("host:5000/a", "t", "sha256:d")),
        ("a@sha256:d", ("a", "", "sha256:d")),
    ],
)
def test_a_colon_before_the_first_slash_belongs_to_the_registry(text: str, parts: tuple[str, str, str]) -> None:
    assert split_image(text) == parts


def test_replicas_without_a_target_are_refused() -> None:
    assert kust.one("replicas: [{name: web, count: 4}]", kust.DEPLOYMENT)["spec"]["replicas"] == 4
    with pytest.raises(BuildError, match="resource with name nope does not match a config"):
        kust.one("replicas: [{name: nope, count: 4}]", kust.DEPLOYMENT)


def test_annotations_come_out_as_text_and_empty_ones_disappear() -> None:
    assert "annotations" not in kust.one("", kust.CONFIG_MAP + "kept: null\n".replace("kept", "x"))["metadata"]
    noted = kust.CONFIG_MAP.replace("name: c", "name: c\n  annotations: {n: 5}")
    assert kust.one("commonAnnotations: {m: 'true'}", noted)["metadata"]["annotations"] == {"n": "5", "m": "true"}


def test_a_replacement_fills_a_part_of_a_text() -> None:
    entry = (
        "replacements:\n- source: {kind: ConfigMap, name: c, fieldPath: data.a}\n  targets:\n"
        "  - select: {kind: Deployment}\n    fieldPaths: ['spec.template.spec.containers.[name=main].image']\n"
        "    options: {delimiter: ':', index: 2}\n"
    )
    files = {
        "kustomization.yaml": f"resources: [r.yaml]\n{entry}",
        "r.yaml": kust.CONFIG_MAP + "---\n" + kust.DEPLOYMENT,
    }
    assert container(kust.built(files).objects[1])["image"] == "reg.example.com:5000/nginx:b"


def test_a_replacement_reaches_into_json_that_is_kept_as_text() -> None:
    entry = (
        "replacements:\n- source: {kind: ConfigMap, name: c, fieldPath: data.a}\n  targets:\n"
        "  - {select: {kind: ConfigMap}, fieldPaths: [data.j.x.y]}\n"
    )
    source = kust.CONFIG_MAP + """  j: '{"x": {"y": "q"}, "z": 2}'\n"""
    assert kust.one(entry, source)["data"]["j"] == '{"x":{"y":"b"},"z":2}'


def test_a_variable_that_is_a_whole_text_keeps_its_type() -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec:\n  ports: [{port: 80, targetPort: $(P)}]\n"
    target = "objref: {apiVersion: v1, kind: Service, name: s}"
    var = f"vars: [{{name: P, {target}, fieldref: {{fieldPath: 'spec.ports[0].port'}}}}]"
    assert kust.one(var, service)["spec"]["ports"][0]["targetPort"] == 80


def test_the_order_is_by_kind_unless_asked_otherwise() -> None:
    files = {"kustomization.yaml": "resources: [r.yaml]\n", "r.yaml": kust.DEPLOYMENT + "---\n" + kust.CONFIG_MAP}
    assert [obj["kind"] for obj in kust.built(files).objects] == ["ConfigMap", "Deployment"]
    assert [obj["kind"] for obj in kust.built(files, order="none").objects] == ["Deployment", "ConfigMap"]
    fifo = {**files, "kustomization.yaml": "resources: [r.yaml]\nsortOptions: {order: fifo}\n"}
    assert [obj["kind"] for obj in kust.built(fifo).objects] == ["Deployment", "ConfigMap"]

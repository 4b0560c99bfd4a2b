"""What a change means before it is made."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.change import Change, classify_change

OPTIONS = "argocd.argoproj.io/sync-options"


def job(image: str, options: str = "", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": "j", "namespace": "demo"}
    if options:
        metadata["annotations"] = {OPTIONS: options}
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template, **spec}}


def stored(image: str) -> dict[str, Any]:
    """As the API has it: with defaults and generated labels."""
    live = job(
        image, completions=1, parallelism=1, selector={"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    )
    container = live["spec"]["template"]["spec"]["containers"][0]
    container.update(imagePullPolicy="Always", resources={})
    live["spec"]["template"]["metadata"] = {"labels": {"job-name": "j"}}
    return live


@pytest.mark.parametrize(
    ("target", "replace", "change"),
    [
        (job("a:1"), False, Change.UPDATE),
        (job("a:1", parallelism=2), False, Change.UPDATE),
        (job("a:1"), True, Change.REPLACE),
        (job("a:1", "Replace=true"), False, Change.REPLACE),
        (job("a:2"), False, Change.REFUSE),
        (job("a:1", completions=3), False, Change.REFUSE),
        (job("a:2"), True, Change.RECREATE),
        (job("a:2", "Replace=true"), False, Change.RECREATE),
        (job("a:2", "Force=true"), False, Change.RECREATE),
        (job("a:1", "Force=true"), False, Change.UPDATE),
        (job("a:1", "Force=true,Replace=true"), False, Change.RECREATE),
    ],
)
def test_a_job_is_made_anew_only_where_somebody_allowed_it(target: Any, replace: bool, change: Change) -> None:
    assert classify_change(target, stored("a:1"), replace=replace).change is change


def test_a_refusal_names_object_field_and_the_three_ways_out() -> None:
    refused = classify_change(job("a:2"), stored("a:1"))
    assert refused.fields == ("spec.template",)
    assert refused.message.startswith('Job.batch "j" is invalid: spec.template changed but the field is immutable')
    for way in ("Replace=true", "Force=true", "BeforeHookCreation", "new name"):
        assert way in refused.message


def test_72_a_binding_whose_role_changes_is_made_anew() -> None:
    def binding(role: str) -> dict[str, Any]:
        metadata = {"name": "b"}
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        api = "rbac.authorization.k8s.io/v1"
        return {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": reference}

    assert classify_change(binding("edit"), binding("view")).change is Change.RECREATE
    assert classify_change(binding("view"), binding("view")).change is Change.UPDATE


def test_an_immutable_config_map_is_not_changed_in_place() -> None:
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "immutable": True, "data": {"v": "1"}}
    assert classify_change({**live, "data": {"v": "2"}}, live).fields == ("data",)
    assert classify_change(live, live).change is Change.UPDATE

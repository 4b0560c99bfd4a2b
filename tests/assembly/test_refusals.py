"""The plan finds what the sync will be refused, and says it by object and path."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.explain.asking import folder, plan, printed
from tests.scenes.scenes import Repo, Stage, application

from syncline.assembly.inspection.preview import Verb, Verdict
from syncline.kube.client import Request, Response
from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import load_all

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"
WEB = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: '%s'%s}]}
"""
QUOTA = """apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {count/configmaps: '1'}}
"""
HOOK = """apiVersion: batch/v1
kind: Job
metadata: {generateName: migrate-, annotations: {argocd.argoproj.io/hook: PreSync}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: one, image: one, command: [echo]}]}}}
"""
SHOP = """apiVersion: v1
kind: Namespace
metadata: {name: shop}
"""


def elsewhere(repo: Repo, *options: str) -> Obj:
    """An Application that goes to a Namespace that does not exist."""
    app = application(repo, "app")
    app["spec"]["destination"]["namespace"] = "shop"
    app["spec"]["syncPolicy"] = {"syncOptions": list(options)}
    return app


def test_a_namespace_that_nothing_makes_is_refused_once_and_with_the_option(tmp_path: Path) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, a=CONFIG % "one", b=CONFIG % "two")
    planned = plan(stage, tmp_path, elsewhere(repo))
    assert planned.verdict is Verdict.UNSAFE
    (said,) = planned.unsafe
    assert said == (
        'namespaces "shop" not found: no manifest brings it, and the sync does not make it '
        "(syncOptions: CreateNamespace=true)"
    )
    stage.create(elsewhere(repo))
    stage.world.driver.advance(5)
    stage.sync()
    state = stage.finish()
    assert state["phase"] == "Failed" and 'namespaces "shop" not found' in str(state)


@pytest.mark.parametrize(("options", "more"), [(["CreateNamespace=true"], ""), ([], SHOP)])
def test_a_namespace_that_the_sync_makes_is_no_refusal(tmp_path: Path, options: list[str], more: str) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, a=CONFIG % "one", **({"n": more} if more else {}))
    planned = plan(stage, tmp_path, elsewhere(repo, *options))
    assert (planned.verdict, planned.unsafe) == (Verdict.CHANGES, ()), printed(planned)


@pytest.mark.parametrize(
    ("replicas", "container", "said"),
    [
        ("1", ", imagePolicy: Always", 'unknown field "spec.template.spec.containers[0].imagePolicy"'),
        ("'three'", "", "spec.replicas"),
        ("1", ", ports: [{containerPort: http}]", "containerPort"),
        ("1", ", ports: [{containerPort: 70000}]", "spec.template.spec.containers[0].ports[0].containerPort"),
        ("-1", "", "spec.replicas: Invalid value: -1"),
    ],
)
def test_a_field_that_does_not_fit_is_named_by_its_path(
    tmp_path: Path, replicas: str, container: str, said: str
) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, w=WEB % (replicas, "web:1", container))
    planned = plan(stage, tmp_path, application(repo, "app"))
    assert planned.verdict is Verdict.UNSAFE
    assert planned.count(Verb.REFUSE) == 1
    assert said in planned.unsafe[0], planned.unsafe


def test_a_type_that_a_patch_cannot_take_is_named_in_the_plan_and_in_the_sync(tmp_path: Path) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, w=WEB % ("1", "web:1", ""))
    stage.create(application(repo, "app"))
    stage.world.driver.advance(5)
    stage.sync()
    stage.finish()
    repo.change("app/w.yaml", "replicas: 1", "replicas: three")
    (said,) = plan(stage, tmp_path).unsafe
    assert 'spec.replicas: found "three", must be an integer' in said
    stage.refresh()
    stage.sync()
    told = str(stage.finish())
    assert 'Deployment "web" is invalid: spec.replicas: found "three", must be an integer' in told
    assert '"" is invalid' not in told


def test_a_quota_is_asked_of_the_api_and_what_comes_earlier_may_change_its_answer(tmp_path: Path) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, a=CONFIG % "one")
    stage.world.send("POST", "/api/v1/namespaces/default/resourcequotas", load_all(QUOTA.encode()).documents[0].value)
    stage.world.driver.advance(5)
    planned = plan(stage, tmp_path, application(repo, "app"))
    assert planned.verdict is Verdict.UNSAFE
    assert "exceeded quota: few" in planned.unsafe[0]
    assert "next: raise ResourceQuota few, or ask for less" in printed(planned)
    (repo.path / "app" / "q.yaml").write_text(QUOTA.replace("count/configmaps: '1'", "count/configmaps: '9'"))
    repo.commit("a larger quota comes first")
    planned = plan(stage, tmp_path, application(repo, "app"))
    assert planned.unsafe == ()
    assert any("repeated at its turn" in text and "exceeded quota: few" in text for text in planned.warnings)


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ("web:", "invalid reference format"),
        ("Web/front:1", ""),
        ("web/Front:1", "repository name (web/Front) must be lowercase"),
        ("registry:5000/web@sha256:12", "invalid reference format"),
    ],
)
def test_an_image_that_no_node_can_name_is_refused(tmp_path: Path, image: str, why: str) -> None:
    stage, repo = Stage(tmp_path), folder(tmp_path, w=WEB % ("1", image, ""))
    planned = plan(stage, tmp_path, application(repo, "app"))
    assert planned.verdict is (Verdict.UNSAFE if why else Verdict.CHANGES)
    assert not why or f"spec.template.spec.containers[0].image: found {image!r}" in planned.unsafe[0]
    assert why in str(planned.unsafe)


class Reader:
    """Asks as somebody who may read everything and write nothing."""

    def __init__(self, stage: Stage) -> None:
        self._admin = stage.world.admin

    def send(self, request: Request) -> Response:
        return self._admin.send(replace(request, headers={**request.headers, "impersonate-user": "reader"}))


def test_without_rights_to_write_schemas_still_answer_and_the_right_is_named_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = folder(tmp_path, a=CONFIG % "one", b=CONFIG % "two", w=WEB % ("three", "web:1", ", imagePolicy: x"))
    role = {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}
    user = {"kind": "User", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    binding = {"metadata": {"name": "reader"}, "roleRef": role, "subjects": [user]}
    stage.world.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    stage.world.driver.advance(5)
    planned = plan(stage, tmp_path, application(repo, "app"), transport=Reader(stage))
    (said,) = planned.unsafe
    assert "spec.template.spec.containers[0].imagePolicy: no such field" in said
    assert 'spec.replicas: found "three", must be an integer' in said
    noted = [text for text in planned.warnings if text.startswith("not asked of the API")]
    assert noted == [
        "not asked of the API (3 objects): you may not create configmaps, create deployments.apps in namespace "
        'default; ask for a Role in default with rules: [{apiGroups: [""], resources: ["configmaps"], '
        'verbs: ["create"]}, {apiGroups: ["apps"], resources: ["deployments"], verbs: ["create"]}]'
    ]


def test_only_questions_leave_a_plan(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    repo = folder(tmp_path, a=CONFIG % "one", s=SHOP, h=HOOK, r=WEB % ("1", "web:1", ""))
    app = application(repo, "app")
    app["spec"]["syncPolicy"] = {"syncOptions": ["Replace=true", "CreateNamespace=true"]}
    before = stage.world.core.store.revision
    assert plan(stage, tmp_path, app).verdict is Verdict.CHANGES
    assert stage.world.core.store.revision == before


def test_no_more_objects_are_asked_for_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("syncline.assembly.inspection.refusals.MAX_ASKED", 2)
    stage, repo = Stage(tmp_path), folder(tmp_path, **{name: CONFIG % name for name in "abcd"})
    planned = plan(stage, tmp_path, application(repo, "app"))
    assert "not asked of the API: 2 more objects than 2" in planned.warnings

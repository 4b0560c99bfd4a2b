"""Rules of Applications and projects, one by one, by their numbers in the application reference."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.test_compare import APP, compared, config, owned, statuses

from syncline.apply.diff import DiffMode, DiffSettings, IgnoreRule, compare_objects
from syncline.apply.diff.model import KnownTypeField, Override
from syncline.apply.health import health_of
from syncline.apply.health.overrides import HealthScript, checked_with
from syncline.apply.lua import Guarded, LuaLimits
from syncline.argo.clusters import HERE, Cluster
from syncline.argo.project import (
    merge_global,
    permits_app_namespace,
    permits_destination,
    permits_kind,
    permits_resource,
    permits_source,
)
from syncline.argo.spec import validate_spec
from syncline.argo.typed import stored_spec
from syncline.gitops.comparison.compare import SyncCode
from syncline.gitops.sync.retry import retry_after
from syncline.kube.objects import Obj

SERVER = "https://kubernetes.default.svc"
ANY: Obj = {
    "metadata": {"name": "p"},
    "spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]},
}
WIDGET = {"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "web"}}


def project(**spec: Any) -> Obj:
    return {"metadata": {"name": "p"}, "spec": spec}


def app(**spec: Any) -> Obj:
    source = {"repoURL": "https://h/r", "path": "."}
    full = {"source": source, "destination": {"server": SERVER, "namespace": "web"}, "project": "p"} | spec
    return {"metadata": {"name": "a", "namespace": "argocd"}, "spec": full}


def problems(obj: Obj, clusters: tuple[Cluster, ...] = (HERE,)) -> list[str]:
    return [c.message for c in validate_spec(obj, ANY, control_namespace="argocd", clusters=clusters)]


# -- specs ------------------------------------------------------------------------------------------------------------


def test_an_empty_project_is_the_default_one_a002() -> None:
    assert stored_spec({"project": ""})["project"] == "default"


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ({"source": {"repoURL": "r", "kustomize": {}}}, {"source": {"repoURL": "r"}}),
        (
            {"source": {"repoURL": "r", "helm": {"parameters": []}}, "sources": [{"repoURL": "r", "helm": {}}]},
            {"source": {"repoURL": "r", "helm": {"parameters": []}}, "sources": [{"repoURL": "r"}]},
        ),
        (
            {"sourceHydrator": {"drySource": {"repoURL": "r", "path": "", "helm": {}}, "syncSource": {"path": ""}}},
            {"sourceHydrator": {"drySource": {"repoURL": "r", "path": "", "helm": {}}, "syncSource": {"path": ""}}},
        ),
    ],
)
def test_empty_tool_blocks_go_from_the_sources_that_count(given: Obj, normal: Obj) -> None:
    assert stored_spec(given) == {**normal, "project": "default"}


def test_a_chart_without_version_is_refused_a005() -> None:
    found = problems(app(source={"repoURL": "https://h/charts", "chart": "web", "targetRevision": ""}))
    assert found == ["spec.source.targetRevision is required if the manifest source is a helm chart"]


def test_a_destination_with_name_and_server_is_refused_a006() -> None:
    (found,) = problems(app(destination={"name": "in-cluster", "server": SERVER}))
    assert found.startswith("application destination can't have both name and server defined")


def test_a_name_that_two_clusters_have_is_refused_with_both_a007() -> None:
    twice = (Cluster("https://a", "prod"), Cluster("https://b", "prod"))
    assert problems(app(destination={"name": "prod", "namespace": "web"}), twice) == [
        "there are 2 clusters with the same name: [https://a https://b]"
    ]


def test_a_bare_number_is_seconds_a009() -> None:
    assert retry_after({"backoff": {"duration": "10"}}, 0).total_seconds() == 10


def test_without_limit_it_goes_on_for_ever_and_no_wait_is_longer_than_the_maximum_a010() -> None:
    assert retry_after({"limit": -1}, 500).total_seconds() == 180


# -- projects ---------------------------------------------------------------------------------------------------------


def test_one_star_of_a_repository_stays_in_its_folder_a015() -> None:
    assert not permits_source(project(sourceRepos=["https://h/org/*"]), "https://h/org/sub/r")
    assert permits_source(project(sourceRepos=["https://h/org/**"]), "https://h/org/sub/r")


@pytest.mark.parametrize("listed", [["*", "!https://h/bad.git"], ["!https://h/bad.git", "*"]])
def test_a_denied_repository_is_denied_in_any_order_and_spelling_a016(listed: list[str]) -> None:
    assert not permits_source(project(sourceRepos=listed), "HTTPS://H/bad")


def test_denials_alone_permit_the_rest_a017() -> None:
    assert permits_source(project(sourceRepos=["!https://h/bad"]), "https://h/good")


def test_a_denied_namespace_is_denied_elsewhere_allowed_a018() -> None:
    rules = project(destinations=[{"server": "*", "namespace": "*"}, {"server": "*", "namespace": "!kube-system"}])
    assert not permits_destination(rules, SERVER, "in-cluster", "kube-system")
    assert permits_destination(rules, SERVER, "in-cluster", "web")


def test_a_denied_cluster_name_counts_in_every_namespace_a019() -> None:
    rules = project(destinations=[{"server": "*", "namespace": "*"}, {"name": "!prod", "namespace": "x"}])
    assert not permits_destination(rules, "https://prod", "prod", "y")


@pytest.mark.parametrize(
    ("destination", "permitted"),
    [
        ({"name": "prod", "server": "!*", "namespace": "!db"}, True),
        ({"name": "!prod", "server": "https://k:6443", "namespace": "*"}, True),
        ({"name": "!prod", "server": "https://other", "namespace": "*"}, False),
        ({"server": "!https://k:6443", "namespace": "*"}, False),
        ({"server": "!https://k:6443", "namespace": "db"}, True),
    ],
)
def test_an_entry_that_permits_by_one_pattern_denies_by_none_of_its_own(destination: Obj, permitted: bool) -> None:
    rest = {"server": "*", "namespace": "*"}
    assert permits_destination(project(destinations=[destination, rest]), "https://k:6443", "prod", "web") is permitted


@pytest.mark.parametrize("pattern", ["https://{h,i}/r", "http*://h/r", "*://h/*", "https://h:*/r", "https://[gh]/r"])
def test_a_pattern_that_is_no_address_permits_nothing_and_denies_what_it_means(pattern: str) -> None:
    assert not permits_source(project(sourceRepos=[pattern]), "https://h/r")
    assert permits_source(project(sourceRepos=["https://h/{r,s}"]), "https://h/r")
    assert not permits_source(project(sourceRepos=["*", "!https://{h,i}/r"]), "https://h/r")


def test_an_empty_list_of_namespaced_kinds_permits_none_a_missing_one_all_a020() -> None:
    assert not permits_kind(project(namespaceResourceWhitelist=[]), "", "ConfigMap", "c", namespaced=True)
    assert permits_kind(project(), "", "ConfigMap", "c", namespaced=True)


def test_a_cluster_scoped_kind_may_be_permitted_by_name_a022() -> None:
    rules = project(clusterResourceWhitelist=[{"group": "", "kind": "Namespace", "name": "team-*"}])
    assert permits_kind(rules, "", "Namespace", "team-a", namespaced=False)
    assert not permits_kind(rules, "", "Namespace", "other", namespaced=False)


def test_only_clusters_of_the_project_where_it_says_so_a023() -> None:
    rules = project(destinations=[{"server": "*", "namespace": "*"}], permitOnlyProjectScopedClusters=True)
    assert not permits_destination(rules, "https://a", "a", "web")
    assert permits_destination(rules, "https://a", "a", "web", [{"server": "https://a", "name": "a"}])


def test_applications_live_beside_the_controllers_unless_more_is_permitted_a024() -> None:
    assert permits_app_namespace(project(), "argocd", "argocd")
    assert not permits_app_namespace(project(), "team", "argocd")
    assert permits_app_namespace(project(sourceNamespaces=["team"]), "team", "argocd")


def test_a_global_list_restricts_a_project_that_has_none_a025() -> None:
    merged = merge_global(project(), project(namespaceResourceWhitelist=[{"group": "", "kind": "Pod"}]))
    assert not permits_kind(merged, "", "ConfigMap", "c", namespaced=True)
    assert permits_resource(
        merge_global(merged, project(destinations=[{"server": "*", "namespace": "*"}])), "", "Pod", "p", "n", SERVER, ""
    )


# -- comparison -------------------------------------------------------------------------------------------------------


def test_an_application_of_another_namespace_is_named_with_it_a039() -> None:
    from syncline.argo.tracking import instance_name

    elsewhere = APP | {"metadata": {"name": "shop", "namespace": "team"}}
    assert instance_name(elsewhere, "argocd") == "team_shop"
    found = compared([config("a")], [], app=elsewhere)
    target = found.pairs[0].target
    assert target is not None
    assert target["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] == "team_shop:/ConfigMap:web/a"


def test_a_label_of_an_older_method_is_no_difference_a040() -> None:
    live = config("a", namespace="web", labels={"app.kubernetes.io/instance": "shop"})
    assert compared([config("a")], [live]).status is SyncCode.SYNCED


def test_a_quantity_in_a_custom_resource_needs_its_type_a042() -> None:
    live, target = ({**WIDGET, "spec": {"cpu": cpu}} for cpu in ("1", "1000m"))
    assert compare_objects(target, live, DiffSettings()).modified
    typed = Override(IgnoreRule(), (KnownTypeField("spec.cpu", "core/Quantity"),))
    assert not compare_objects(target, live, DiffSettings(overrides={"example.org/Widget": typed})).modified


def test_fields_that_a_custom_resource_gained_are_no_difference_a_surplus_item_is_a043() -> None:
    target = {**WIDGET, "spec": {"parts": [{"name": "x"}]}}
    gained = {**WIDGET, "spec": {"parts": [{"name": "x", "size": 1}], "more": {"a": 1}}}
    assert not compare_objects(target, gained, DiffSettings()).modified
    surplus = {**WIDGET, "spec": {"parts": [{"name": "x"}, {"name": "y"}]}}
    assert compare_objects(target, surplus, DiffSettings()).modified


def test_text_of_a_secret_is_compared_by_what_it_says_a044() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "web"}}
    assert not compare_objects(
        {**secret, "stringData": {"k": "v"}}, {**secret, "data": {"k": "dg=="}}, DiffSettings()
    ).modified


def test_a_pointer_to_nothing_is_no_error_a046() -> None:
    rule = IgnoreRule(kind="ConfigMap", json_pointers=("/data/missing", "/no/where"))
    assert compare_objects(config("a"), config("a", "2"), DiffSettings(ignore=(rule,))).modified


def test_fields_of_another_manager_may_be_ignored_a050() -> None:
    target = {**WIDGET, "spec": {"replicas": 1}}
    owner = {"manager": "scaler", "operation": "Update", "apiVersion": "example.org/v1", "fieldsType": "FieldsV1"}
    entry = owner | {"fieldsV1": {"f:spec": {"f:replicas": {}}}}
    live = {**WIDGET, "spec": {"replicas": 3}, "metadata": {**WIDGET["metadata"], "managedFields": [entry]}}  # type: ignore[dict-item]
    rule = IgnoreRule(group="example.org", kind="Widget", managers=("scaler",))
    assert compare_objects(target, live, DiffSettings()).modified
    assert not compare_objects(target, live, DiffSettings(ignore=(rule,))).modified


def test_what_a_webhook_adds_to_a_dry_run_counts_only_if_asked_for_a051() -> None:
    mine = {"manager": "argocd-controller", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    entry = mine | {"fieldsV1": {"f:data": {"f:key": {}}}}
    live = config("a", namespace="web", managedFields=[entry])
    answer = config("a", namespace="web", managedFields=[entry], labels={"added": "yes"})
    settings = DiffSettings(mode=DiffMode.SERVER_SIDE, dry_run=answer)
    assert not compare_objects(config("a"), live, settings).modified
    with_them = DiffSettings(mode=DiffMode.SERVER_SIDE, dry_run=answer, include_mutation_webhook=True)
    assert compare_objects(config("a"), live, with_them).modified


def test_changed_metadata_of_the_managed_namespace_is_out_of_sync_a055() -> None:
    policy = {"managedNamespaceMetadata": {"labels": {"a": "2"}}, "syncOptions": ["CreateNamespace=true"]}
    done = {"operationState": {"syncResult": {"managedNamespaceMetadata": {"labels": {"a": "1"}}}}}
    changed = {**APP, "spec": {**APP["spec"], "syncPolicy": policy}, "status": done}
    found = compared([config("a")], [owned(config("a"))], app=changed)
    assert (found.status, statuses(found)["a"]) == (SyncCode.OUT_OF_SYNC, "Synced")


# -- health -----------------------------------------------------------------------------------------------------------


def judged(kind: str, version: str = "apps/v1", **fields: Any) -> tuple[str, str]:
    metadata = {"name": "web", "namespace": "n"} | fields.pop("metadata", {})
    found = health_of({"apiVersion": version, "kind": kind, "metadata": metadata} | fields)
    assert found is not None
    return str(found.status), found.message


def test_a_deployment_that_was_not_seen_yet_progresses_a058() -> None:
    status, message = judged("Deployment", metadata={"generation": 3}, status={"observedGeneration": 2})
    assert status == "Progressing" and "observed deployment generation less than desired generation" in message


def test_a_deployment_past_its_deadline_is_degraded_a059() -> None:
    condition = {"type": "Progressing", "reason": "ProgressDeadlineExceeded"}
    status, message = judged("Deployment", status={"conditions": [condition]})
    assert status == "Degraded" and '"web"' in message


def test_a_partitioned_stateful_set_is_healthy_another_progresses_a060() -> None:
    status = {
        "observedGeneration": 1,
        "readyReplicas": 2,
        "updatedReplicas": 0,
        "updateRevision": "b",
        "currentRevision": "a",
    }
    spec = {"replicas": 2, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    assert judged("StatefulSet", spec=spec, status=status)[0] == "Healthy"
    spec = {"replicas": 2, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
    assert judged("StatefulSet", spec=spec, status=status)[0] == "Progressing"


@pytest.mark.parametrize(("policy", "expected"), [("Never", False), ("Always", True)])
def test_an_image_that_cannot_be_pulled_degrades_what_runs_for_ever_a061(policy: str, expected: bool) -> None:
    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    found = judged(
        "Pod", "v1", spec={"restartPolicy": policy}, status={"phase": "Pending", "containerStatuses": [waiting]}
    )
    assert (found[0] == "Degraded") is expected


def test_a_claim_that_is_pending_progresses_a062() -> None:
    assert judged("PersistentVolumeClaim", "v1", status={"phase": "Pending"})[0] == "Progressing"


def test_a_suspended_job_is_suspended_a_suspended_cron_job_is_healthy_a063() -> None:
    condition = {"type": "Suspended", "status": "True"}
    assert judged("Job", "batch/v1", spec={"suspend": True}, status={"conditions": [condition]})[0] == "Suspended"
    assert judged("CronJob", "batch/v1", spec={"suspend": True}, status={})[0] == "Healthy"


def scripted(script: str, obj: Obj, *, open_libs: bool = False) -> tuple[str, str]:
    pytest.importorskip("lupa", reason="the extra lua is not installed")
    check = checked_with({"ConfigMap": HealthScript(script, open_libs)}, Guarded(LuaLimits(seconds=0.2)))
    found = check(obj)
    assert found is not None
    return str(found.status), found.message


def test_what_is_being_deleted_progresses_whatever_a_script_says_a064() -> None:
    going = config("a", deletionTimestamp="2026-01-01T00:00:00Z")
    assert scripted('return {status="Healthy"}', going) == ("Progressing", "Pending deletion")


def test_a_script_with_a_status_of_its_own_is_unknown_a065() -> None:
    assert scripted('return {status="Great"}', config("a")) == ("Unknown", "Lua returned an invalid health status")
    assert scripted("return {}", config("a")) == ("", "")


def test_a_script_that_never_ends_is_stopped_a066() -> None:
    assert scripted("while true do end", config("a"))[0] == "Unknown"


def test_a_script_has_libraries_only_where_they_are_opened_a067() -> None:
    script = 'return {status=string.format("%s", "Healthy")}'
    assert scripted(script, config("a"))[0] == "Unknown"
    assert scripted(script, config("a"), open_libs=True) == ("Healthy", "")


def test_a_degraded_child_degrades_its_parent_an_unknown_one_does_not_a071() -> None:
    from tests.gitops.test_compare import KINDS

    from syncline.apply.health import Health, HealthStatus
    from syncline.gitops.comparison.compare import ComparisonInput, compare
    from syncline.kube.objects import ref_of

    child = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "c", "namespace": "web"}}
    for status, expected in ((HealthStatus.DEGRADED, "Degraded"), (HealthStatus.UNKNOWN, "Healthy")):
        given = ComparisonInput(
            APP, (child,), {ref_of(child): owned(child)}, {}, KINDS, health=lambda _o, s=status: Health(s)
        )
        assert str(compare(given).health.status) == expected

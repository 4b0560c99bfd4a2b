"""Operators on the embedded cluster in virtual time: from a Subscription to an operator that is up, upgraded, gone."""

from __future__ import annotations

import pytest
from tests.patterns.operating import OLM, Operators, bundle, channel, package

from syncline.kube.objects import Obj
from syncline.patterns.operators.catalogs.reading import read_catalog
from syncline.patterns.operators.controllers import namespaces

WIDGET = "Widget.v1.example.com"


def one_version() -> Operators:
    only = channel("widgets", "stable", "widgets.v1.0.0")
    return Operators(package("widgets"), only, bundle("widgets", "1.0.0", WIDGET))


def three_versions(*entries: Obj) -> Operators:
    listed = entries or (
        {"name": "widgets.v1.0.0"},
        {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"},
        {"name": "widgets.v1.2.0", "replaces": "widgets.v1.1.0"},
    )
    versions = (bundle("widgets", f"1.{minor}.0", WIDGET) for minor in range(3))
    return Operators(package("widgets"), channel("widgets", "stable", *listed), *versions)


def approve(world: Operators, namespace: str, plan: Obj) -> None:
    path = f"{OLM}/{namespace}/installplans/{plan['metadata']['name']}"
    world.send("PATCH", path, {"spec": {"approved": True}})


def test_a_subscription_brings_its_operator_up() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", channel="stable")
    world.until("team", "widgets.v1.0.0")
    status = world.subscription("team", "widgets")["status"]
    assert (status["state"], status["installedCSV"]) == ("AtLatestKnown", "widgets.v1.0.0")
    assert world.condition("team", "widgets", "CatalogSourcesUnhealthy")["status"] == "False"
    (plan,) = world.plans("team")
    assert plan["status"]["phase"] == "Complete"
    assert status["installPlanRef"]["name"] == plan["metadata"]["name"]
    assert world.get("/apis/apps/v1/namespaces/team/deployments/widgets")["status"]["availableReplicas"] == 1
    assert world.get("/apis/example.com/v1/widgets")["items"] == []


def test_a_catalogue_lists_its_packages_as_package_manifests() -> None:
    world = one_version()
    found = world.get("/apis/packages.operators.coreos.com/v1/namespaces/openshift-marketplace/packagemanifests")
    (manifest,) = found["items"]
    assert manifest["status"]["defaultChannel"] == "stable"
    assert [one["currentCSV"] for one in manifest["status"]["channels"]] == ["widgets.v1.0.0"]


def test_a_manual_subscription_waits_for_approval_and_says_so() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", installPlanApproval="Manual")
    world.time.advance(30)
    (plan,) = world.plans("team")
    assert plan["status"]["phase"] == "RequiresApproval"
    pending = world.condition("team", "widgets", "InstallPlanPending")
    assert (pending["status"], pending["reason"]) == ("True", "RequiresApproval")
    assert world.phase("team", "widgets.v1.0.0") == "absent"
    approve(world, "team", plan)
    world.until("team", "widgets.v1.0.0")
    assert world.condition("team", "widgets", "InstallPlanPending") == {}


def test_a_subscription_starts_with_its_starting_csv_and_is_upgraded_along_the_channel() -> None:
    world = three_versions()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    world.until("team", "widgets.v1.2.0")
    world.time.advance(30)
    assert [world.phase("team", f"widgets.v1.{minor}.0") for minor in range(3)] == ["absent", "absent", "Succeeded"]
    names = [one["spec"]["clusterServiceVersionNames"] for one in world.plans("team")]
    assert names == [["widgets.v1.0.0"], ["widgets.v1.1.0"], ["widgets.v1.2.0"]]


def test_a_skipped_version_is_never_installed() -> None:
    world = three_versions(
        {"name": "widgets.v1.0.0"},
        {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"},
        {"name": "widgets.v1.2.0", "replaces": "widgets.v1.0.0", "skips": ["widgets.v1.1.0"]},
    )
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    world.until("team", "widgets.v1.2.0")
    names = [one["spec"]["clusterServiceVersionNames"] for one in world.plans("team")]
    assert names == [["widgets.v1.0.0"], ["widgets.v1.2.0"]]


def test_a_skip_range_reaches_the_head_from_any_version_in_it() -> None:
    world = three_versions(
        {"name": "widgets.v1.0.0"},
        {"name": "widgets.v1.1.0", "replaces": "widgets.v1.0.0"},
        {"name": "widgets.v1.2.0", "replaces": "widgets.v1.1.0", "skipRange": ">=1.0.0 <1.2.0"},
    )
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0")
    world.until("team", "widgets.v1.2.0")
    names = [one["spec"]["clusterServiceVersionNames"] for one in world.plans("team")]
    assert names == [["widgets.v1.0.0"], ["widgets.v1.2.0"]]


def test_an_operator_that_is_not_upgradeable_holds_its_upgrade() -> None:
    world = three_versions()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.0.0", installPlanApproval="Manual")
    world.time.advance(10)
    approve(world, "team", world.plans("team")[0])
    world.until("team", "widgets.v1.0.0")
    path = "/apis/operators.coreos.com/v2/namespaces/team/operatorconditions/widgets.v1.0.0"
    held = {"type": "Upgradeable", "status": "False", "reason": "Busy", "message": "a migration runs"}
    world.send("PATCH", path, {"spec": {"overrides": [held]}})
    world.time.advance(10)
    approve(world, "team", world.plans("team")[1])
    world.time.advance(60)
    assert world.phase("team", "widgets.v1.1.0") == "Pending"
    assert world.reason("team", "widgets.v1.1.0") == "OperatorConditionNotUpgradeable"
    assert world.phase("team", "widgets.v1.0.0") != "absent"
    world.send("PATCH", path, {"spec": {"overrides": [{**held, "status": "True"}]}})
    world.until("team", "widgets.v1.1.0")


def test_a_namespace_without_an_operator_group_resolves_nothing() -> None:
    world = one_version()
    world.namespace("team", group=False)
    world.subscribe("team", "widgets")
    world.time.advance(10)
    failed = world.condition("team", "widgets", "ResolutionFailed")
    assert failed["reason"] == "ErrorPreventedResolution"
    assert failed["message"] == "expected 1 OperatorGroup in the namespace, found 0"
    world.group("team", "late", "team")
    world.until("team", "widgets.v1.0.0")
    assert world.condition("team", "widgets", "ResolutionFailed") == {}


def test_a_second_operator_group_fails_the_operators_of_its_namespace() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.group("team", "second", "team")
    world.until("team", "widgets.v1.0.0", "Failed")
    assert world.reason("team", "widgets.v1.0.0") == "TooManyOperatorGroups"
    group = world.get("/apis/operators.coreos.com/v1/namespaces/team/operatorgroups/second")
    assert [one["type"] for one in group["status"]["conditions"]] == ["MultipleOperatorGroups"]
    world.send("DELETE", "/apis/operators.coreos.com/v1/namespaces/team/operatorgroups/second")
    world.until("team", "widgets.v1.0.0")


def test_an_operator_fails_whose_modes_do_not_cover_its_group() -> None:
    world = Operators(
        package("widgets"),
        channel("widgets", "stable", "widgets.v1.0.0"),
        bundle("widgets", "1.0.0", WIDGET, modes=("AllNamespaces",)),
    )
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0", "Failed")
    assert world.reason("team", "widgets.v1.0.0") == "UnsupportedOperatorGroup"


def test_two_groups_that_meet_may_not_provide_the_same_api() -> None:
    world = Operators(
        *(package("widgets"), channel("widgets", "stable", "widgets.v1.0.0"), bundle("widgets", "1.0.0", WIDGET)),
        *(package("others"), channel("others", "stable", "others.v1.0.0"), bundle("others", "1.0.0", WIDGET)),
    )
    world.namespace("first")
    world.namespace("second", "second")
    world.subscribe("first", "widgets")
    world.until("first", "widgets.v1.0.0")
    world.subscribe("second", "others")
    world.until("second", "others.v1.0.0", "Failed")
    assert world.reason("second", "others.v1.0.0") == "InterOperatorGroupOwnerConflict"


def test_an_operator_for_all_namespaces_is_copied_into_each_and_copies_go_with_it() -> None:
    world = one_version()
    world.namespace("team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.time.advance(5)
    assert world.reason("default", "widgets.v1.0.0") == "Copied"
    world.send("POST", "/api/v1/namespaces", {"metadata": {"name": "later"}})
    world.time.advance(5)
    assert world.phase("later", "widgets.v1.0.0") == "Succeeded"
    world.send("DELETE", f"{OLM}/team/subscriptions/widgets")
    world.send("DELETE", f"{OLM}/team/clusterserviceversions/widgets.v1.0.0")
    world.time.advance(60)
    assert [world.phase(name, "widgets.v1.0.0") for name in ("team", "default", "later")] == ["absent"] * 3
    assert world.absent("/apis/apps/v1/namespaces/team/deployments/widgets")
    assert not world.absent("/apis/example.com/v1/widgets"), "definitions stay, and with them the data"


def test_copies_can_be_switched_off() -> None:
    world = one_version()
    body = {"metadata": {"name": "cluster"}, "spec": {"features": {"disableCopiedCSVs": True}}}
    config = {"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", **body}
    world.send("POST", "/apis/operators.coreos.com/v1/olmconfigs", config)
    world.namespace("team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.time.advance(5)
    assert world.phase("default", "widgets.v1.0.0") == "absent"


def test_a_missing_dependency_is_installed_with_a_subscription_of_its_own() -> None:
    needs = {"packageName": "gears", "versionRange": ">=2.0.0 <3.0.0"}
    world = Operators(
        package("widgets"),
        channel("widgets", "stable", "widgets.v1.0.0"),
        bundle("widgets", "1.0.0", WIDGET, olm_package_required=needs),
        package("gears", "fast"),
        channel("gears", "fast", "gears.v3.0.0"),
        channel("gears", "slow", "gears.v2.1.0"),
        bundle("gears", "2.1.0", "Gear.v1.example.com"),
        bundle("gears", "3.0.0", "Gear.v1.example.com"),
    )
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.until("team", "gears.v2.1.0")
    made = world.subscription("team", "gears-slow-cat-openshift-marketplace")
    assert made["status"]["installedCSV"] == "gears.v2.1.0"
    assert len(world.plans("team")) == 1


def test_a_contradiction_is_said_in_upstreams_words() -> None:
    needs = {"packageName": "gears", "versionRange": ">=9.0.0"}
    world = Operators(
        package("widgets"),
        channel("widgets", "stable", "widgets.v1.0.0"),
        bundle("widgets", "1.0.0", WIDGET, olm_package_required=needs),
    )
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.time.advance(10)
    failed = world.condition("team", "widgets", "ResolutionFailed")
    assert failed["reason"] == "ConstraintsNotSatisfiable"
    assert failed["message"] == (
        "constraints not satisfiable: bundle widgets.v1.0.0 requires an operator with package: gears and with "
        "version in range: >=9.0.0, subscription widgets exists, subscription widgets requires "
        "cat/openshift-marketplace/stable/widgets.v1.0.0"
    )


def test_a_subscription_to_a_catalogue_without_a_folder_says_so() -> None:
    world = one_version()
    body = {"metadata": {"name": "other"}, "spec": {"sourceType": "grpc", "image": "example.com/other:1"}}
    source = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", **body}
    world.namespace("team", "team")
    world.send("POST", f"{OLM}/team/catalogsources", source)
    world.subscribe("team", "widgets", source="other", sourceNamespace="team")
    world.time.advance(10)
    status = world.get(f"{OLM}/team/catalogsources/other")["status"]
    assert status["connectionState"]["lastObservedState"] == "TRANSIENT_FAILURE"
    assert "--catalog other=FOLDER" in status["message"]
    assert world.condition("team", "widgets", "CatalogSourcesUnhealthy")["message"] == (
        "targeted catalogsource team/other unhealthy"
    )
    assert world.condition("team", "widgets", "ResolutionFailed")["message"].startswith("constraints not satisfiable: ")


def test_what_a_subscription_configures_reaches_the_pods_of_its_operator() -> None:
    world = one_version()
    world.namespace("team", "team")
    config = {"env": [{"name": "LEVEL", "value": "debug"}], "nodeSelector": {"kubernetes.io/os": "linux"}}
    world.subscribe("team", "widgets", config=config)
    world.until("team", "widgets.v1.0.0")
    pod = world.get("/apis/apps/v1/namespaces/team/deployments/widgets")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    names = {one["name"]: one["value"] for one in pod["containers"][0]["env"]}
    assert names == {"LEVEL": "debug", "OPERATOR_CONDITION_NAME": "widgets.v1.0.0"}


def test_a_group_with_a_service_account_installs_with_its_rights_alone() -> None:
    world = one_version()
    world.namespace("team", group=False)
    world.send("POST", "/api/v1/namespaces/team/serviceaccounts", {"metadata": {"name": "installer"}})
    world.group("team", "group", "team", serviceAccountName="installer")
    world.subscribe("team", "widgets")
    world.time.advance(30)
    (plan,) = world.plans("team")
    assert plan["status"]["phase"] == "Installing"
    assert "forbidden" in plan["status"]["message"]
    binding = {
        "metadata": {"name": "installer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": "team"}],
    }
    world.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    world.until("team", "widgets.v1.0.0")


def test_an_install_plan_that_is_deleted_while_it_waits_is_made_again() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", installPlanApproval="Manual")
    world.time.advance(10)
    (plan,) = world.plans("team")
    world.send("DELETE", f"{OLM}/team/installplans/{plan['metadata']['name']}")
    world.time.advance(10)
    (again,) = world.plans("team")
    assert again["metadata"]["uid"] != plan["metadata"]["uid"]
    approve(world, "team", again)
    world.until("team", "widgets.v1.0.0")


def test_an_operator_whose_definition_is_taken_away_says_that_it_needs_it() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.send("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    world.time.advance(30)
    assert world.reason("team", "widgets.v1.0.0") == "RequirementsNotMet"


def test_a_deployment_that_is_deleted_comes_back() -> None:
    world = one_version()
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.send("DELETE", "/apis/apps/v1/namespaces/team/deployments/widgets")
    world.time.advance(120)
    assert world.phase("team", "widgets.v1.0.0") == "Succeeded"
    assert world.get("/apis/apps/v1/namespaces/team/deployments/widgets")["status"]["availableReplicas"] == 1


def test_a_cluster_extension_says_that_no_controller_works_on_it() -> None:
    world = one_version()
    spec = {"namespace": "team", "source": {"sourceType": "Catalog", "catalog": {"packageName": "widgets"}}}
    body = {"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "widgets"}}
    world.send("POST", "/apis/olm.operatorframework.io/v1/clusterextensions", {**body, "spec": spec})
    (said,) = world.get("/apis/olm.operatorframework.io/v1/clusterextensions/widgets")["status"]["conditions"]
    assert (said["type"], said["status"], said["reason"]) == ("Installed", "False", "NoController")


def test_what_belongs_to_an_operator_has_its_label_and_is_listed() -> None:
    world = one_version()
    world.namespace("team")
    world.subscribe("team", "widgets")
    world.until("team", "widgets.v1.0.0")
    world.time.advance(10)
    label = "operators.coreos.com/widgets.team"
    assert label in world.subscription("team", "widgets")["metadata"]["labels"]
    copy = world.get(f"{OLM}/default/clusterserviceversions/widgets.v1.0.0")
    assert label not in copy["metadata"]["labels"], "a copy is no component"
    listed = world.get("/apis/operators.coreos.com/v1/operators/widgets.team")["status"]["components"]
    assert [one["kind"] for one in listed["refs"]] == [
        *("ClusterRole", "ClusterRoleBinding", "ClusterServiceVersion", "CustomResourceDefinition", "Deployment"),
        *("InstallPlan", "OperatorCondition", "ServiceAccount", "Subscription"),
    ]
    (phase,) = listed["refs"][2]["conditions"]
    assert (phase["type"], phase["reason"]) == ("Succeeded", "InstallSucceeded")


def test_a_bundle_of_which_there_is_only_an_image_says_so() -> None:
    only = bundle("widgets", "1.0.0")
    only["properties"] = [one for one in only["properties"] if one["type"] != "olm.csv.metadata"]
    world = Operators(package("widgets"), channel("widgets", "stable", "widgets.v1.0.0"), only)
    world.namespace("team", "team")
    world.subscribe("team", "widgets")
    world.time.advance(10)
    failed = world.condition("team", "widgets", "BundleUnpackFailed")
    assert failed["message"].startswith(
        "Bundle unpacking failed - ImageNotPulled: image example.com/widgets:1.0.0 of bundle widgets.v1.0.0 cannot be"
    )
    assert world.plans("team") == []


def gears(version: str) -> list[Obj]:
    return [package("gears"), channel("gears", "stable", f"gears.v{version}"), bundle("gears", version)]


def test_priorities_of_catalogues_count_before_the_namespace_they_are_in() -> None:
    needs = {"packageName": "gears", "versionRange": ">=1.0.0"}
    only = channel("widgets", "stable", "widgets.v1.0.0")
    widgets = [package("widgets"), only, bundle("widgets", "1.0.0", olm_package_required=needs)]
    world = Operators(*gears("2.0.0"))
    world.catalogs.catalogs["team/near"] = read_catalog(gears("1.0.0"))  # type: ignore[index]
    world.catalogs.catalogs["team/own"] = read_catalog(widgets)  # type: ignore[index]
    world.namespace("team", "team")
    for name, priority in (("near", 0), ("own", 0)):
        spec = {"sourceType": "grpc", "image": f"{name}:1", "priority": priority}
        body = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": name}}
        world.send("POST", f"{OLM}/team/catalogsources", {**body, "spec": spec})
    world.send("PATCH", f"{OLM}/openshift-marketplace/catalogsources/cat", {"spec": {"priority": 5}})
    world.subscribe("team", "widgets", source="own", sourceNamespace="team")
    world.until("team", "widgets.v1.0.0")
    assert world.phase("team", "gears.v2.0.0") == "Succeeded"


def test_a_large_catalogue_is_resolved_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "MOST_IN_PLACE", 0)
    world = three_versions()
    world.namespace("team", "team")
    world.subscribe("team", "widgets", startingCSV="widgets.v1.1.0")
    world.until("team", "widgets.v1.2.0")
    assert len(world.plans("team")) == 2

"""The scene of the pull model with ``--rights managed-by``: what the administrator of one cluster forgot is on the hub.

The sentence is Kubernetes' own, for OpenShift's account of the application controller.
"""

from __future__ import annotations

import pytest
from tests.fleet.test_pull_scene import APPS, CLUSTERS, DEPLOYMENT, NAMESPACE, REPORT, guestbook, hub_of_the_scene, play
from tests.fleet.world import Fleet, Member, Site
from tests.gitops.behaviours.sim import Source

from syncline.apply.managed import ACCOUNT, LABEL
from syncline.assembly.inspection.preview import observed_application
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.assembly.rights import Rights
from syncline.cli.views.cause import describe_cause
from syncline.control.executor import run_in_place
from syncline.explain.application import explain_application
from syncline.explain.fleet.carried import explain_carried
from syncline.explain.view import View
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef

FORGOTTEN = "aws-2"
SENTENCE = (
    "services is forbidden: User "
    '"system:serviceaccount:openshift-gitops:openshift-gitops-argocd-application-controller" '
    'cannot create resource "services" in API group "" in the namespace "guestbook"'
)
OTHER = SENTENCE.replace("services", "deployments.apps", 1).replace("services", "deployments").replace('""', '"apps"')
REPORTS = f"/apis/syncline.dev/v1alpha1/namespaces/{FORGOTTEN}/applicationreports"
APP = f"{APPS}/{FORGOTTEN}-guestbook-app"
SPACES = "/api/v1/namespaces"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/{}/" + ACCOUNT


def _namespace(name: str, manager: str = "") -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {LABEL: manager} if manager else {}},
    }


def _start(fleet: Fleet, name: str, nodes: int = 0) -> Member:
    member = fleet.add(name, nodes=nodes)
    fleet.start_gitops(member, Source(*guestbook()), AppSettings(NAMESPACE), Rights.MANAGED_BY)
    return member


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    made = hub_of_the_scene()
    for name in CLUSTERS:
        member = _start(made, name, nodes=1)
        if name != FORGOTTEN:
            member.send("POST", SPACES, _namespace("guestbook", NAMESPACE))
    return play(made, 900)


def test_a_cluster_may_write_where_the_label_names_its_instance(fleet: Fleet) -> None:
    for name in CLUSTERS:
        app = fleet.hub.get(f"{APPS}/{name}-guestbook-app")
        expected = ("OutOfSync", "Missing") if name == FORGOTTEN else ("Synced", "Healthy")
        assert (app["status"]["sync"]["status"], app["status"]["health"]["status"]) == expected
        assert fleet.members[name].absent(DEPLOYMENT) == (name == FORGOTTEN)


def test_without_the_label_the_cluster_says_so_in_the_words_of_kubernetes(fleet: Fleet) -> None:
    state = fleet.members[FORGOTTEN].get(APP)["status"]["operationState"]
    rows = {row["kind"]: (row["status"], row["message"]) for row in state["syncResult"]["resources"]}
    assert rows == {"Service": ("SyncFailed", SENTENCE), "Deployment": ("SyncFailed", OTHER)}
    assert state["message"] == (f"one or more objects failed to apply, reason: {OTHER},{SENTENCE} (retried 5 times).")


def test_the_hub_has_the_sentence_whole(fleet: Fleet) -> None:
    (report,) = (one["report"] for one in fleet.hub.get(REPORTS)["items"])
    assert {one["kind"]: one["message"] for one in report["failed"]} == {"Service": SENTENCE, "Deployment": OTHER}
    assert SENTENCE in report["operation"]["message"]
    state = fleet.hub.get(APP)["status"]["operationState"]
    assert SENTENCE in state["message"]
    assert {row["message"] for row in state["syncResult"]["resources"]} == {SENTENCE, OTHER}


def test_b86_the_report_of_the_set_has_it_cut_at_512_characters(fleet: Fleet) -> None:
    statuses = fleet.hub.get(REPORT)["statuses"]
    assert (statuses["summary"]["healthy"], statuses["summary"]["notHealthy"]) == ("2", "1")
    said = {one["cluster"]: one.get("conditions") for one in statuses["clusterConditions"]}
    assert [name for name, conditions in said.items() if conditions] == [FORGOTTEN]
    texts = [one["message"] for one in said[FORGOTTEN]]
    assert any(SENTENCE in text for text in texts)
    (cut,) = [text for text in texts if text.startswith("Failed last sync attempt")]
    assert len(cut) == 515
    assert cut.endswith("...")


def _explained(site: Site, fleet: Fleet) -> str:
    """What ``syncline explain app/aws-2-guestbook-app`` says on a cluster."""
    settings, now = AppSettings(NAMESPACE), fleet.clock.now()
    cache = run_in_place(snapshot_of_cluster(application_indices(settings)), site.admin).cache
    ref, view = ObjectRef(*APPLICATION.group_kind, NAMESPACE, f"{FORGOTTEN}-guestbook-app"), View(cache, now)
    if site is fleet.hub:
        app = cache.get(ref)
        assert app is not None
        return describe_cause(explain_carried(view, app).cause, now)
    observed = observed_application(cache, ref, Source(*guestbook()), settings, now)
    assert observed is not None
    return describe_cause(explain_application(view, observed).cause, now)


CURE = "kubectl label namespace guestbook argocd.argoproj.io/managed-by=openshift-gitops"


def test_on_the_cluster_explain_names_the_missing_label_and_the_command(fleet: Fleet) -> None:
    text = _explained(fleet.members[FORGOTTEN], fleet)
    assert f"has no label {LABEL}" in text
    assert f"{CURE}; then: syncline app sync {FORGOTTEN}-guestbook-app -N {NAMESPACE}" in text


def test_on_the_hub_explain_names_the_cluster_and_the_command(fleet: Fleet) -> None:
    assert f"in cluster {FORGOTTEN}, label the namespace, unless it has the label: {CURE}" in _explained(
        fleet.hub, fleet
    )


@pytest.mark.parametrize(
    ("manager", "said"),
    [
        ("team-b", f"its label {LABEL} names another instance: team-b"),
        (NAMESPACE, f"has the label {LABEL}={NAMESPACE}, and {ACCOUNT} lacks the right all the same"),
    ],
)
def test_explain_says_what_the_label_is_now(fleet: Fleet, manager: str, said: str) -> None:
    member = fleet.members[FORGOTTEN]
    member.send("PATCH", f"{SPACES}/guestbook", {"metadata": {"labels": {LABEL: manager}}})
    try:
        assert said in _explained(member, fleet)
    finally:
        member.send("PATCH", f"{SPACES}/guestbook", {"metadata": {"labels": {LABEL: None}}})


def test_roles_come_and_go_with_the_label_as_the_operator_keeps_them() -> None:
    fleet = Fleet()
    member = _start(fleet, "c1")
    role, binding = (ROLES.format("shop", kind) for kind in ("roles", "rolebindings"))
    member.send("POST", SPACES, _namespace("shop"))
    fleet.time.advance(5)
    assert member.absent(role)
    assert not member.absent(ROLES.format(NAMESPACE, "roles")), "an instance manages its own namespace"
    member.send("PATCH", f"{SPACES}/shop", {"metadata": {"labels": {LABEL: NAMESPACE}}})
    fleet.time.advance(5)
    rules = member.get(role)["rules"]
    assert rules[0] == {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    assert all(rule in rules for rule in member.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/admin")["rules"])
    assert member.get(binding)["subjects"] == [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]
    member.send("PATCH", role, {"rules": []})
    fleet.time.advance(5)
    assert member.get(role)["rules"] == rules, "what others change comes back"
    member.send("PATCH", f"{SPACES}/shop", {"metadata": {"labels": {LABEL: "another"}}})
    fleet.time.advance(5)
    assert member.absent(role)
    assert member.absent(binding)


def test_a_role_that_an_administrator_made_stays_where_the_label_is_missing() -> None:
    fleet = Fleet()
    member = _start(fleet, "c1")
    member.send("POST", SPACES, _namespace("shop"))
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": ACCOUNT}, "rules": []}
    member.send("POST", ROLES.format("shop", "roles").rpartition("/")[0], role)
    fleet.time.advance(5)
    assert not member.absent(ROLES.format("shop", "roles"))

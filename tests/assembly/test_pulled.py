"""A look that reads what is looked at: what it asks for, and what it says of what it may not read."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, Simulation, config

from syncline.assembly.inspection.differences import application_differences
from syncline.assembly.inspection.preview import PlannedSync, Verb, Verdict, planned_sync
from syncline.assembly.inspection.pulled import MAX_REFUSED, SINGLE, PulledCache, pulled
from syncline.assembly.inspection.resource_tree import resource_tree, walk
from syncline.assembly.inspection.snapshot import application_indices
from syncline.cli.access.snapshots import include
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.explain.application import explain_application
from syncline.explain.graph import explain_object
from syncline.explain.view import View
from syncline.gitops.application.manifests import ManifestStore
from syncline.gitops.application.observing.observe import observe_application
from syncline.kube.client import Request, Response
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, uid_of

DEV = UserInfo("dev", ("system:authenticated",))
APP = ObjectRef(*APPLICATION.group_kind, "argocd", "app")
MAP = GroupKind("", "ConfigMap")
POD = GroupKind("", "Pod")
SECRET = GroupKind("", "Secret")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TILL: Obj = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "till"}, "stringData": {"pin": "1"}}
WEB: Obj = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "w", "image": "w"}]}},
    },
}


class Asking:
    """The API as one user, with what was asked."""

    def __init__(self, sim: Simulation, user: UserInfo) -> None:
        self._inner = sim.world.core.transport(user)
        self.paths: list[str] = []

    def send(self, request: Request) -> Response:
        self.paths.append(request.path)
        return self._inner.send(request)


def rule(group: str, resource: str, *verbs: str) -> Obj:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def allow(sim: Simulation, namespace: str, *rules: Obj, role: str = "") -> None:
    """Give ``dev`` the rules in a namespace, or a ClusterRole by name."""
    name = role or f"own-{len(rules)}"
    space = f"{RBAC}/namespaces/{namespace}"
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole" if role else "Role", "name": name}
    if rules:
        sim.world.send("POST", f"{space}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dev"}]
    sim.world.send("POST", f"{space}/rolebindings", {"metadata": {"name": name}, "roleRef": ref, "subjects": subjects})


def look(sim: Simulation, user: UserInfo = DEV) -> tuple[PulledCache, Asking]:
    asking = Asking(sim, user)
    cache = pulled(asking, application_indices(sim.world.settings))
    asking.paths.clear()
    return cache, asking


def plan(sim: Simulation, user: UserInfo = DEV) -> tuple[PlannedSync, PulledCache, Asking]:
    cache, asking = look(sim, user)
    app = cache.get(APP)
    assert app is not None
    include(cache, app, "argocd")
    found = planned_sync(cache, app, sim.source, sim.world.settings, sim.world.clock.now())
    return found, cache, asking


def health(sim: Simulation) -> str:
    return str(dig(sim.app(), "status", "health", "status"))


def verbs(planned: PlannedSync) -> dict[str, Verb]:
    return {change.ref.name: change.verb for group in planned.groups for change in group.changes}


@pytest.fixture
def sim() -> Simulation:
    """``dev`` may edit in ``default`` but its Secrets, and read Applications in ``argocd``."""
    made = Simulation(config("a"), config("b"), TILL, WEB)
    made.sync()
    allow(made, "argocd", rule("argoproj.io", "applications", "get", "list", "watch"))
    rules = (
        rule("", "configmaps", "get", "list"),
        rule("", "pods", "get", "list"),
        rule("apps", "deployments", "get", "list"),
        rule("apps", "replicasets", "get", "list"),
    )
    allow(made, "default", *rules)
    return made


def test_a_plan_asks_for_its_application_its_project_and_its_objects_and_lists_no_cluster(sim: Simulation) -> None:
    planned, cache, asking = plan(sim, ADMIN)
    assert set(verbs(planned).values()) == {Verb.UNCHANGED}
    lists = {path for path in asking.paths if path.startswith("/api") and "namespaces" not in path}
    assert lists <= {"/apis/syncline.dev/v1alpha1/holds"}, "Holds are cluster-wide; nothing else is listed so"
    assert len(asking.paths) < 20 and len(asking.paths) == len(set(asking.paths)), "everything is asked for once"
    assert cache.sentences(aside=True) == []


def test_a_plan_with_the_rights_of_a_namespace_is_the_plan_but_for_what_may_not_be_read(sim: Simulation) -> None:
    sim.source.commit(config("a", "new"), config("b"), config("c"), TILL, WEB)
    planned, cache, _ = plan(sim)
    assert not planned.problems
    assert verbs(planned) == {
        "a": Verb.CONFIGURE,
        "b": Verb.UNCHANGED,
        "c": Verb.CREATE,
        "till": Verb.UNREAD,
        "web": Verb.UNCHANGED,
    }
    assert (planned.sync, planned.health, planned.verdict) == ("OutOfSync", health(sim), Verdict.CHANGES)
    told = cache.sentences()
    assert any("you may not get secrets till in namespace default; ask for a Role in default" in one for one in told)
    assert any('resources: ["appprojects"], resourceNames: ["default"], verbs: ["get"]' in one for one in told)
    assert not any("holds" in one for one in told), "Holds are for machine configs, and there are none"


def test_what_may_not_be_read_is_in_sync_where_the_controller_says_so_of_the_same_commit(sim: Simulation) -> None:
    planned, _, _ = plan(sim)
    assert verbs(planned)["till"] is Verb.UNREAD
    assert (planned.sync, planned.verdict) == ("Synced", Verdict.NOTHING)
    sim.source.commit(config("a"), config("b"), TILL, WEB)
    planned, _, _ = plan(sim)
    assert (planned.sync, planned.verdict) == ("Unknown", Verdict.CHANGES), "the Secret may be another one now"


def test_what_left_the_source_and_may_not_be_read_is_not_pruned_in_the_plan(sim: Simulation) -> None:
    sim.source.commit(config("a"), WEB)
    planned, _, _ = plan(sim)
    assert "till" not in verbs(planned) and Verb.PRUNE not in verbs(planned).values()
    assert "/Secret/default/till: may not be read, so it is not known whether it would be pruned" in planned.warnings


def test_differences_leave_out_what_may_not_be_read_and_name_it(sim: Simulation) -> None:
    cache, _ = look(sim)
    app = cache.get(APP)
    assert app is not None
    include(cache, app, "argocd")
    found = application_differences(cache, app, sim.source, sim.world.settings, sim.world.clock.now())
    assert not found.modified and [ref.name for ref in found.unread] == ["till"]


def test_a_tree_says_of_what_may_not_be_read_what_the_status_says(sim: Simulation) -> None:
    cache, _ = look(sim)
    nodes = {node.ref.name: node for node in walk(resource_tree(cache, sim.app()))}
    assert nodes["till"].live is None and "forbidden" in nodes["till"].unread
    pods = [node for node in nodes.values() if node.ref.kind == "Pod"]
    assert len(pods) == 1, "what Deployments own is found by lists of the namespace"


def test_an_explanation_does_not_call_missing_what_may_not_be_read(sim: Simulation) -> None:
    sick = {"kind": "Secret", "version": "v1", "namespace": "default", "name": "till", "status": "Synced"}
    status = {"health": {"status": "Degraded"}, "resources": [sick | {"health": {"status": "Degraded"}}]}
    sim.patch(f"{APPS}/app", {"status": status})
    cache, _ = look(sim)
    app = cache.get(APP)
    assert app is not None
    include(cache, app, "argocd")
    now = sim.world.clock.now()
    observed = observe_application(cache, APP, ManifestStore(), sim.world.settings)
    assert observed is not None
    found = explain_application(View(cache, now), observed)
    assert [(one.subject, one.message) for one in found.cause.because] == [
        ("/Secret/default/till", "you may not read it")
    ]


def test_a_workload_whose_pods_may_not_be_read_says_so(sim: Simulation) -> None:
    allow(sim, "kube-system", rule("apps", "deployments", "get"))
    space = "/apis/apps/v1/namespaces/kube-system/deployments"
    sim.world.send("POST", space, WEB | {"metadata": {"name": "far"}})
    cache, _ = look(sim)
    ref = ObjectRef("apps", "Deployment", "kube-system", "far")
    live = cache.get(ref)
    assert live is not None
    live = live | {"status": {"observedGeneration": 1}}
    found = explain_object(View(cache, sim.world.clock.now()), live)
    assert [cause.state for cause in found.cause.because] == ["unread", "unread"]


def test_several_objects_of_a_kind_are_listed_and_where_that_is_refused_asked_for_one_by_one(sim: Simulation) -> None:
    for number in range(30):
        sim.world.send("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": f"m{number}"}})
    refs = [ObjectRef(*MAP, "default", f"m{number}") for number in range(30)]
    cache, asking = look(sim)
    assert all(cache.get(ref) for ref in refs)
    assert len(asking.paths) == SINGLE + 1
    single = look(sim)
    allow(sim, "kube-system", rule("", "configmaps", "get"))
    found = [single[0].get(ref._replace(namespace="kube-system")) for ref in refs]
    assert found == [None] * 30 and single[0].reads_all() is False
    assert not any(single[0].unread(ref._replace(namespace="kube-system")) for ref in refs), "they are not there"


def test_refusals_are_not_asked_for_without_end(sim: Simulation) -> None:
    cache, asking = look(sim)
    refs = [ObjectRef(*SECRET, "default", f"s{number}") for number in range(200)]
    assert all(cache.unread(ref) for ref in refs)
    assert len(asking.paths) == MAX_REFUSED + 1
    rules = [one for one in cache.sentences() if "secrets" in one]
    assert len(rules) == 1 and len(rules[0]) < 400


@pytest.mark.parametrize(
    "read",
    [
        lambda cache: cache.objects(POD),
        lambda cache: cache.objects(POD, "kube-system"),
        lambda cache: cache.views(POD, uid_of),
        lambda cache: cache.uncontrolled(POD, "kube-system"),
        lambda cache: cache.has_synced(POD) or [],
    ],
)
def test_a_list_that_is_refused_is_unread_and_names_the_right(sim: Simulation, read: Any) -> None:
    cache, _ = look(sim)
    assert list(read(cache)) == []
    place = "kube-system" if cache.unread(ObjectRef(*POD, "kube-system", "")) else ""
    assert "forbidden" in cache.unread(ObjectRef(*POD, place, ""))
    (told,) = cache.sentences()
    assert told.startswith("you may not list pods") and 'resources: ["pods"], verbs: ["list"]' in told


def test_what_is_put_stays_as_it_was_put(sim: Simulation) -> None:
    cache, asking = look(sim)
    mine = config("a", "mine") | {"metadata": {"name": "a", "namespace": "default"}}
    cache.put(MAP, mine)
    cache.drop(MAP, "default", "b")
    assert cache.objects(MAP, "default")[0] == mine
    assert cache.get(ObjectRef(*MAP, "default", "b")) is None
    assert asking.paths == ["/api/v1/namespaces/default/configmaps"]


def test_an_application_that_was_never_compared_is_planned_with_what_it_left_before() -> None:
    sim = Simulation(config("a"), config("old"))
    sim.sync()
    bare = {key: value for key, value in sim.app().items() if key != "status"}
    sim.source.commit(config("a"))
    cache, _ = look(sim, ADMIN)
    include(cache, bare, "argocd")
    planned = planned_sync(cache, bare, sim.source, sim.world.settings, sim.world.clock.now())
    assert any("old" in text for group in planned.groups for text in group.warnings), "it would be pruned"

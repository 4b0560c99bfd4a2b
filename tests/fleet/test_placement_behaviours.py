"""Scheduling of Placements by behaviours of the reference, what explain says, and ``spreadPolicy`` of ours."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from tests.fleet.placements import hub_of, one_pass
from tests.fleet.recordings import NOW

from syncline.base.clock import format_time
from syncline.fleet.hub.placement.explaining import Explained, explained
from syncline.fleet.hub.placement.memory import Memory
from syncline.fleet.hub.placement.plan import Observed, plan_placement
from syncline.fleet.hub.placement.scheduling import schedule
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.objects import Obj

LABEL = "cluster.open-cluster-management.io/placement"


def cluster(name: str, *, taints: Iterable[Obj] = (), claims: Obj | None = None, **labels: str) -> Obj:
    listed = [{"name": key, "value": value} for key, value in (claims or {}).items()]
    spec = {"hubAcceptsClient": True, "taints": list(taints)}
    metadata = {"name": name, "labels": {CLUSTER_SET_LABEL: "s1", **labels}}
    return {"metadata": metadata, "spec": spec, "status": {"clusterClaims": listed}}


def case(*clusters: Obj, spec: Obj, annotations: Obj | None = None, bound: bool = True, **given: Any) -> dict[str, Any]:
    sets = [{"metadata": {"name": "s1"}, "spec": {}}]
    bindings = [{"metadata": {"name": "s1", "namespace": "ns"}, "spec": {"clusterSet": "s1"}}]
    metadata = {"name": "pl", "namespace": "ns", "annotations": annotations or {}}
    placement = {"metadata": metadata, "spec": spec}
    return {"placement": placement, "clusters": clusters, "sets": sets, "bindings": bindings if bound else [], **given}


def decided(name: str, *clusters: str, namespace: str = "ns", placement: str = "pl") -> Obj:
    metadata = {"name": name, "namespace": namespace, "labels": {LABEL: placement}}
    return {"metadata": metadata, "status": {"decisions": [{"clusterName": one, "reason": ""} for one in clusters]}}


def reason(given: dict[str, Any]) -> str:
    conditions = one_pass(given, NOW)["placementStatus"]["conditions"]
    return str(next(one["reason"] for one in conditions if one["type"] == "PlacementSatisfied"))


def selected(given: dict[str, Any]) -> list[str]:
    found: list[str] = one_pass(given, NOW)["selected"]
    return found


def selector(**parts: Any) -> Obj:
    return {"requiredClusterSelector": parts}


def cel(*expressions: str) -> Obj:
    return selector(celSelector={"celExpressions": list(expressions)})


THREE = (cluster("a", env="prod"), cluster("b", env="dev"), cluster("c"))


def test_b27_b28_the_condition_says_what_is_not_bound() -> None:
    assert reason(case(*THREE, spec={}, bound=False)) == "NoManagedClusterSetBindings"
    assert reason(case(*THREE, spec={"clusterSets": ["s2"]})) == "NoIntersection"
    assert reason(case(spec={})) == "AllManagedClusterSetsEmpty"


def test_b30_predicates_unite_and_their_parts_intersect() -> None:
    by_label = {"matchLabels": {"env": "prod"}}
    by_claim = {"matchExpressions": [{"key": "n", "operator": "In", "values": ["1"]}]}
    clusters = (*THREE, cluster("d", claims={"n": "1"}), cluster("e", claims={"n": "1"}, env="prod"))
    either = {"predicates": [selector(labelSelector=by_label), selector(claimSelector=by_claim)]}
    assert selected(case(*clusters, spec=either)) == ["a", "d", "e"]
    both = {"predicates": [selector(labelSelector=by_label, claimSelector=by_claim)]}
    assert selected(case(*clusters, spec=both)) == ["e"]


def test_b32_an_invalid_expression_empties_the_decisions_and_a_failing_one_excludes_a_cluster() -> None:
    before = [decided("pl-decision-1", "a", "b")]
    got = one_pass(case(*THREE, spec={"predicates": [cel("managedCluster.")]}, decisions=before), NOW)
    assert got["selected"] == [] and got["placementDecisions"][0]["decisions"] == []
    assert got["placementStatus"]["conditions"][0]["status"] == "True"
    assert selected(case(*THREE, spec={"predicates": [cel('managedCluster.metadata.labels.env == "dev"')]})) == ["b"]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('managedCluster.kind == "ManagedCluster"', []),
        ("!has(managedCluster.spec.taints)", ["a", "b", "c"]),
        ("managedCluster.status.conditions == null", ["a", "b", "c"]),
        ("'{\"a\":[1,2]}'.parseJSON().a[1] == 2.0", ["a", "b", "c"]),
        ('"abc".reverse() == "cba"', ["a", "b", "c"]),
        ("[optional.of(1), optional.none()].unwrapOpt() == [1]", ["a", "b", "c"]),
        ('managedCluster.scores("res").exists(s, s.name == "cpu" && s.value > 5)', ["b"]),
        ('"x".scores("res").size() > 0', []),
        ("managedCluster", []),
        ('isSemver("v1.2.3")', []),
        ("dyn(1) < 1.5", ["a", "b", "c"]),
    ],
)
def test_expressions_see_what_upstream_shows_them(expression: str, names: list[str]) -> None:
    scores = [{"metadata": {"name": "res", "namespace": "b"}, "status": {"scores": [{"name": "cpu", "value": 7}]}}]
    assert selected(case(*THREE, spec={"predicates": [cel(expression)]}, scores=scores)) == names


@pytest.mark.parametrize(
    "expression",
    [
        "1 < 1.5",
        'semver("1.2", true).major() == 1',
        "[2,1].sort() == [1,2]",
        "sets.contains([1],[1])",
        "{'a':1}.transformList(k, v, v) == [1]",
        "[1].existsOne(x, x == 1)",
        'managedCluster.metadata.name.charAt("x") == ""',
    ],
)
def test_functions_that_upstream_lacks_are_misconfigured(expression: str) -> None:
    assert one_pass(case(*THREE, spec={"predicates": [cel(expression)]}), NOW)["status"]["code"] == 3


NO_SELECT = {"key": "k", "effect": "NoSelect", "timeAdded": format_time(NOW - timedelta(seconds=30))}


def test_b34_no_select_if_new_keeps_what_is_selected() -> None:
    taint = {**NO_SELECT, "effect": "NoSelectIfNew"}
    clusters = (cluster("a", taints=[taint]), cluster("b", taints=[taint]))
    assert selected(case(*clusters, spec={}, decisions=[decided("pl-decision-1", "a")])) == ["a"]


def test_b35_a_toleration_requeues_for_selected_clusters_even_without_candidates() -> None:
    spec = {"tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 60}]}
    before = [decided("pl-decision-1", "a")]
    got = one_pass(case(cluster("a", taints=[NO_SELECT]), spec=spec, decisions=before), NOW)
    assert got["selected"] == ["a"] and got["requeueAfter"] == 30
    unchecked = {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]}
    given = case(cluster("a", taints=[NO_SELECT]), spec=unchecked, decisions=before, bound=False)
    assert reason(given) == "NoManagedClusterSetBindings"


def test_b38_balance_counts_decisions_of_all_namespaces_but_not_its_own() -> None:
    others = [
        decided("x-decision-1", "a", "b", namespace="one", placement="x"),
        decided("y-decision-1", "b", namespace="two", placement="y"),
        decided("z-decision-1", "b", namespace="two", placement="z"),
        decided("pl-decision-1", "a", "b", "c"),
    ]
    (found, _) = one_pass(case(*THREE, spec={}, decisions=others), NOW)["prioritizers"]
    assert found["scores"] == {"a": 32, "b": -100, "c": 100}


def misconfigured(given: dict[str, Any]) -> tuple[str, str]:
    conditions = one_pass(given, NOW)["placementStatus"]["conditions"]
    found = next(one for one in conditions if one["type"] == "PlacementMisconfigured")
    return found["status"], found["message"]


def test_b31_an_expression_over_claims_takes_label_values_alone() -> None:
    spaced = {"matchExpressions": [{"key": "n", "operator": "In", "values": ["a b"]}]}
    given = case(*THREE, spec={"predicates": [selector(claimSelector=spaced)]})
    assert misconfigured(given)[0] == "True"
    assert selected(given) == []


def test_b33_a_taint_that_is_only_preferred_changes_nothing() -> None:
    taint = {**NO_SELECT, "effect": "PreferNoSelect"}
    assert selected(case(cluster("a", taints=[taint]), cluster("b"), spec={})) == ["a", "b"]


def test_b36_a_toleration_of_each_value_has_none() -> None:
    spec = {"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]}
    assert misconfigured(case(*THREE, spec=spec))[0] == "True"


def test_b37_equal_scores_go_by_name() -> None:
    clusters = [cluster(name) for name in ("c", "a", "b")]
    assert selected(case(*clusters, spec={"numberOfClusters": 2})) == ["a", "b"]


def _with_memory(name: str, allocatable: str | None) -> Obj:
    status = {} if allocatable is None else {"allocatable": {"memory": allocatable}, "capacity": {"memory": "8Gi"}}
    return {**cluster(name), "status": status}


def _weighed(mode: str, *configs: Obj) -> Obj:
    return {"prioritizerPolicy": {"mode": mode, "configurations": list(configs)}}


def test_b39_equal_resources_score_alike_and_a_cluster_without_figures_scores_nothing() -> None:
    memory = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableMemory"}, "weight": 1}
    clusters = [_with_memory("a", "4Gi"), _with_memory("b", "4Gi"), _with_memory("c", None)]
    (found,) = one_pass(case(*clusters, spec=_weighed("Exact", memory)), NOW)["prioritizers"]
    assert found["scores"] == {"a": 100, "b": 100, "c": 0} or found["scores"] == {"a": 100, "b": 100}


def test_b40_weights_of_an_add_on_join_the_default_ones_unless_the_mode_is_exact() -> None:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}
    config = {"scoreCoordinate": coordinate, "weight": 3}
    names = {
        mode: [one["name"] for one in one_pass(case(*THREE, spec=_weighed(mode, config)), NOW)["prioritizers"]]
        for mode in ("Additive", "Exact")
    }
    assert len(names["Additive"]) == 3 and {"Balance", "Steady"} <= set(names["Additive"])
    assert len(names["Exact"]) == 1


def test_b41_a_score_that_has_expired_counts_nothing_and_an_event_says_so() -> None:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "r", "scoreName": "s"}}
    spec = _weighed("Exact", {"scoreCoordinate": coordinate, "weight": 1})
    score = {
        "metadata": {"name": "r", "namespace": "a"},
        "status": {"scores": [{"name": "s", "value": 50}], "validUntil": format_time(NOW - timedelta(seconds=1))},
    }
    got = one_pass(case(*THREE, spec=spec, scores=[score], decisions=[decided("pl-decision-1", "c")]), NOW)
    (found,) = got["prioritizers"]
    assert not any(found["scores"].values())
    assert any(one.startswith("Warning") and "AddOnPlacementScores a/r expired" in one for one in got["events"])


def test_b42_an_unknown_prioritizer_is_misconfigured() -> None:
    spread = {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Spread"}, "weight": 1}
    status, message = misconfigured(case(*THREE, spec=_weighed("Additive", spread)))
    assert status == "True" and "incorrect builtin prioritizer" in message


def test_b43_fewer_than_wanted_are_unscheduled() -> None:
    got = one_pass(case(*THREE, spec={"numberOfClusters": 5}), NOW)
    messages = [one["message"] for one in got["placementStatus"]["conditions"]]
    assert got["unscheduled"] == 2 and "2 cluster decisions unscheduled" in messages


def test_b46_a_named_group_is_divided_into_consecutive_indices() -> None:
    strategy = {"decisionGroups": [{"groupName": "prod", "groupClusterSelector": {}}], "clustersPerDecisionGroup": 3}
    clusters = [cluster(f"c{number}") for number in range(7)]
    got = one_pass(case(*clusters, spec={"decisionStrategy": {"groupStrategy": strategy}}), NOW)
    groups = got["placementStatus"]["decisionGroups"]
    assert [(one["decisionGroupName"], one["clusterCount"]) for one in groups] == [
        ("prod", 3),
        ("prod", 3),
        ("prod", 1),
    ]


def test_what_is_remembered_changes_no_result() -> None:
    memory = Memory()
    spec = {"predicates": [cel('managedCluster.scores("res")[0].value > 5')]}
    for value in (7, 3, 9):
        score = {"metadata": {"name": "res", "namespace": "b"}, "status": {"scores": [{"name": "x", "value": value}]}}
        given = case(*THREE, spec=spec, scores=[score])
        observed = Observed(given["placement"], hub_of(given))
        assert plan_placement(observed, NOW, memory) == plan_placement(observed, NOW)


# -- explain ---------------------------------------------------------------------------------------------------


def outcomes(given: dict[str, Any]) -> dict[str, Explained]:
    hub = hub_of(given)
    found = schedule(given["placement"], hub, NOW)
    return {one.cluster: one for one in explained(given["placement"], hub, found, NOW)}


def test_explain_names_what_decided_about_each_cluster() -> None:
    clusters = (
        *THREE,
        cluster("d", taints=[NO_SELECT], env="prod"),
        cluster("e", env="prod"),
        {"metadata": {"name": "f"}},
    )
    spec = {"predicates": [selector(labelSelector={"matchLabels": {"env": "prod"}})], "numberOfClusters": 1}
    got = outcomes(case(*clusters, spec=spec))
    assert got["a"].selected and got["a"].scores == (("Balance", 1, 100), ("Steady", 1, 0)) and got["a"].total == 100
    assert (got["b"].by, got["b"].why) == ("Predicate", ("predicate 1: its labels do not match env=prod",))
    assert (got["d"].by, got["d"].why) == ("TaintToleration", ("no toleration matches its taint k:NoSelect",))
    assert (got["e"].by, got["e"].total) == ("Score", 100)
    assert (got["f"].by, got["f"].why) == ("ClusterSets", ("it is a member of none of the sets s1",))


# -- spreadPolicy ----------------------------------------------------------------------------------------------

ON = {"syncline.dev/spread": "true"}
REGIONS = tuple(cluster(f"{region}{number}", region=region) for region in ("eu", "us") for number in range(3))


def spread_spec(number: int | None, action: str, skew: int = 1) -> Obj:
    term = {"topologyKey": "region", "topologyKeyType": "Label", "maxSkew": skew, "whenUnsatisfiable": action}
    return {"spreadPolicy": {"spreadConstraints": [term]}, **({"numberOfClusters": number} if number else {})}


def test_spread_policy_counts_only_with_the_annotation() -> None:
    spec = spread_spec(2, "ScheduleAnyway")
    assert selected(case(*REGIONS, spec=spec)) == ["eu0", "eu1"]
    assert selected(case(*REGIONS, spec=spec, annotations=ON)) == ["eu0", "us0"]


def test_a_strict_constraint_rather_selects_fewer_and_explain_says_so() -> None:
    clusters = (*REGIONS[:4], cluster("none"))
    given = case(*clusters, spec=spread_spec(4, "DoNotSchedule"), annotations=ON)
    assert selected(given) == ["eu0", "eu1", "us0"]
    got = outcomes(given)
    assert got["none"].why == ("it has no label region to spread by",)
    assert got["eu2"].why == ("spreadPolicy (label region, maxSkew 1) allows no more clusters with eu",)


def test_a_soft_constraint_selects_as_many_as_wanted() -> None:
    given = case(*REGIONS[:4], spec=spread_spec(4, "ScheduleAnyway"), annotations=ON)
    assert selected(given) == ["eu0", "eu1", "eu2", "us0"]

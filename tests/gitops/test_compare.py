"""Whole comparisons, rule by rule (behaviours 33 to 39, 53, 68, 69, 72)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from tests.gitops.evaluating import ANSWERS

from syncline.apply.diff import DiffSettings
from syncline.argo.tracking import Tracking
from syncline.gitops.comparison import compare as comparing
from syncline.gitops.comparison.compare import Comparison, ComparisonInput, SyncCode, compare, live_refs
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import Obj, ObjectRef, ref_of
from syncline.kube.schema.resources import builtin_resources

KINDS = KindTable({info.gvk: info for info in builtin_resources()})
APP: Obj = {
    "metadata": {"name": "shop", "namespace": "argocd"},
    "spec": {"destination": {"server": "https://kubernetes.default.svc", "namespace": "web"}, "project": "default"},
}


def config(name: str, value: str = "1", **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"key": value},
    }


def owned(obj: Obj, app: str = "shop") -> Obj:
    placed = {**obj, "metadata": {**obj["metadata"], "namespace": "web"}}
    return Tracking().stamp(placed, app, "web")


def compared(targets: list[Obj], live: list[Obj], app: Obj = APP, project: Obj | None = None) -> Comparison:
    given = {ref_of(obj): obj for obj in live}
    return compare(ComparisonInput(app, tuple(targets), given, project or {}, KINDS, diff=DiffSettings(jq=ANSWERS)))


def statuses(found: Comparison) -> dict[str, str]:
    return {row["name"]: row.get("status", "") for row in found.resources}


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"annotations": {"a": 1}}, 'contains non-string value in the map under key "a": 1 is of the type int64'),
        ({"annotations": {"a": None}}, 'under key "a": <nil> is of the type <nil>, expected string'),
        ({"annotations": ["a"]}, "[]interface {} is of the type []interface {}, expected map[string]interface{}"),
    ],
)
def test_annotations_that_cannot_be_kept_beside_ours_are_an_error_and_are_not_lost(
    metadata: dict[str, Any], said: str
) -> None:
    found = compared([config("a", **metadata)], [])
    assert found.status is SyncCode.UNKNOWN
    (condition,) = found.conditions
    lead = "Failed to load target state: failed to set app instance tracking info on manifest: "
    assert condition.type == "ComparisonError" and condition.message.startswith(lead)
    assert "/v1, Kind=ConfigMap web/a: .metadata.annotations accessor error: " in condition.message
    assert said in condition.message
    assert found.pairs[0].target is not None and found.pairs[0].target["metadata"]["annotations"] is not None


def test_equal_objects_are_synced_and_may_be_left_out_of_a_selective_sync() -> None:
    found = compared([config("a")], [owned(config("a"))])
    assert found.status is SyncCode.SYNCED
    assert found.in_sync == {ObjectRef("", "ConfigMap", "web", "a")}


def test_missing_extra_and_changed_objects_are_out_of_sync() -> None:
    found = compared([config("missing"), config("changed")], [owned(config("changed", "2")), owned(config("extra"))])
    assert found.status is SyncCode.OUT_OF_SYNC
    assert set(statuses(found).values()) == {"OutOfSync"}
    assert [row["name"] for row in found.resources if row.get("requiresPruning")] == ["extra"]


def test_an_untracked_object_with_the_key_of_a_manifest_is_compared_not_missing_a035() -> None:
    found = compared([config("a")], [{**config("a"), "metadata": {"name": "a", "namespace": "web"}}])
    assert found.pairs[0].live is not None
    assert found.health.status == "Healthy"


def test_an_object_of_another_application_is_named_a036() -> None:
    found = compared([config("a")], [owned(config("a"), "other")])
    assert [c.message for c in found.conditions] == ["ConfigMap/a is part of applications argocd/shop and other"]


def test_a_copied_tracking_id_makes_nothing_ours_a037() -> None:
    copy = owned(config("a"))
    copy["metadata"]["name"] = "copy"
    found = compared([config("a")], [owned(config("a")), copy])
    assert found.status is SyncCode.SYNCED
    assert statuses(found)["copy"] == ""


def test_an_object_with_an_owner_is_no_extra_resource_a038() -> None:
    child = owned(config("child"))
    child["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "uid": "u"}]
    assert compared([], [child]).resources == ()


def test_the_last_of_two_manifests_with_one_key_counts_a033() -> None:
    found = compared([config("a", "1"), config("a", "2")], [owned(config("a", "2"))])
    assert found.status is SyncCode.SYNCED
    assert [c.type for c in found.conditions] == ["RepeatedResourceWarning"]


def test_an_extraneous_object_may_be_ignored_a053() -> None:
    extra = owned(config("x", annotations={"argocd.argoproj.io/compare-options": "IgnoreExtraneous"}))
    found = compared([], [extra])
    assert found.status is SyncCode.SYNCED
    assert statuses(found) == {"x": "OutOfSync"}


def test_what_the_project_does_not_permit_is_unknown_and_not_ours_a021() -> None:
    project = {"metadata": {"name": "p"}, "spec": {"namespaceResourceWhitelist": [{"group": "", "kind": "Secret"}]}}
    found = compared([config("a")], [owned(config("b"))], project=project)
    assert statuses(found) == {"a": "Unknown"}


def test_one_object_that_cannot_be_compared_makes_everything_unknown_a052() -> None:
    rule = {"group": "", "kind": "ConfigMap", "jqPathExpressions": [".data["]}
    app = {**APP, "spec": {**APP["spec"], "ignoreDifferences": [rule]}}
    found = compared([config("a")], [owned(config("a"))], app)
    assert found.status is SyncCode.UNKNOWN
    assert statuses(found) == {"a": "Unknown"}
    assert found.conditions[0].type == "ComparisonError"


def test_no_resources_are_healthy_and_nothing_live_is_missing_a068_a069() -> None:
    assert compared([], []).health.status == "Healthy"
    assert compared([config("a")], []).health.status == "Missing"


def _broken(name: str) -> Obj:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}}
    return {**owned(claim), "status": {"phase": "Lost"}}


def test_the_message_names_three_culprits_and_counts_the_rest_a072() -> None:
    found = compared([], [_broken(name) for name in "abcde"])
    assert found.health.status == "Degraded"
    assert found.health.message.endswith(" and 2 more")
    assert found.health.message.count("PersistentVolumeClaim") == 3


def test_a_resource_may_be_left_out_of_the_health_a070() -> None:
    broken = _broken("a")
    broken["metadata"]["annotations"]["argocd.argoproj.io/ignore-healthcheck"] = "true"
    assert compared([], [broken]).health.status == "Healthy"


def test_hooks_are_set_aside_and_deletion_hooks_take_no_part() -> None:
    hook = config("hook", annotations={"argocd.argoproj.io/hook": "PreSync"})
    last = config("last", annotations={"argocd.argoproj.io/hook": "PostDelete"})
    found = compared([hook, last], [])
    assert [ref_of(obj).name for obj in found.hooks] == ["hook"]
    assert (found.has_pre_delete_hooks, found.has_post_delete_hooks) == (False, True)
    assert found.pairs == ()


@pytest.mark.parametrize(("kind", "namespace"), [("ConfigMap", "web"), ("Namespace", "")])
def test_references_to_look_up_have_the_scope_of_their_kind_a034(kind: str, namespace: str) -> None:
    obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", **({"namespace": "n"} if not namespace else {})}}
    assert live_refs([obj], KINDS, "web") == [ObjectRef("", kind, namespace, "a")]


def test_images_are_those_of_what_runs() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "web:1"}]},
    }
    assert compared([], [owned(pod)]).images == {"web:1"}


def test_a_sync_keeps_ignored_live_values_only_if_asked_to_a048() -> None:
    rule = {"group": "", "kind": "ConfigMap", "jsonPointers": ["/data/key"]}
    spec = {**APP["spec"], "ignoreDifferences": [rule]}
    live = owned(config("a", "live"))
    plain = compared([config("a", "git")], [live], {**APP, "spec": spec})
    assert plain.status is SyncCode.SYNCED
    policy = {"syncOptions": ["RespectIgnoreDifferences=true"]}
    kept = compared([config("a", "git")], [live], {**APP, "spec": {**spec, "syncPolicy": policy}})
    targets = [found.pairs[0].target for found in (plain, kept)]
    assert [target["data"]["key"] for target in targets if target is not None] == ["git", "live"]


def _drawn(chance: random.Random) -> ComparisonInput:
    """Manifests of all sorts, some of them live: as wanted, changed, without marks, or left over."""
    app = {**APP, "spec": {**APP["spec"], "syncPolicy": {"syncOptions": chance.choice([[], ["Prune=confirm"]])}}}
    if chance.random() < 0.5:
        app["spec"]["ignoreDifferences"] = [{"kind": "ConfigMap", "jsonPointers": ["/data/key"]}]
        app["spec"]["syncPolicy"]["syncOptions"].append("RespectIgnoreDifferences=true")
    if chance.random() < 0.5:
        app["spec"]["syncPolicy"]["managedNamespaceMetadata"] = {"labels": {"a": "b"}}
    notes = [{}, {"argocd.argoproj.io/hook": "PreSync"}, {"argocd.argoproj.io/hook": "PostDelete"}]
    targets = [config(f"c{n}", annotations=dict(chance.choice(notes))) for n in range(6)]
    return ComparisonInput(app, tuple(targets), {}, {}, KINDS, diff=DiffSettings(jq=ANSWERS))


def _moved(given: ComparisonInput, chance: random.Random) -> ComparisonInput:
    """After something happened to one live object."""
    live = dict(given.live)
    made = owned(config(f"c{chance.randrange(9)}", chance.choice("12")), chance.choice(["shop", "shop", "other"]))
    if chance.random() < 0.2:
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}}
        made = Tracking().stamp(made, "shop", "web")
    made["metadata"] |= {"uid": f"u-{chance.randrange(9)}", "resourceVersion": str(chance.randrange(10**6))}
    if ref_of(made) in live and chance.random() < 0.5:
        del live[ref_of(made)]
    else:
        live[ref_of(made)] = made
    return replace(given, live=live)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_taken_over_from_the_comparison_before_changes_no_answer(seed: int) -> None:
    chance = random.Random(seed)
    given = _drawn(chance)
    last = compare(given)
    for _ in range(15):
        given = _moved(given, chance)
        last = compare(replace(given, before=last))
        assert last == compare(given)


def test_only_pairs_in_which_an_object_changed_are_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(5)]
    live = {ref_of(obj): obj for obj in (owned(config(name)) for name in names)}
    given = ComparisonInput(APP, tuple(map(config, names)), live, {}, KINDS)
    last, judged = compare(given), 0
    really = comparing.part_of

    def counted(*given: Any) -> Any:
        nonlocal judged
        judged += 1
        return really(*given)

    monkeypatch.setattr(comparing, "part_of", counted)
    changed = owned(config("c2", "2"))
    found = compare(replace(given, live={**live, ref_of(changed): changed}, before=last))
    assert (judged, statuses(found)["c2"], statuses(found)["c1"]) == (1, "OutOfSync", "Synced")

"""What Applications depend on, read from a cache: hostile texts, and a cost that grows with the fleet and no faster."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.fleet.order.test_drawn import counted

from syncline.control.cache import Cache
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import APPS, CLUSTERS, PROJECTS, SETS
from syncline.fleet.pull.observe import INDICES as PULL_INDICES
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, DEPENDS_ON
from syncline.fleet.pull.order.groups import INDICES, ROLLOUTS
from syncline.fleet.pull.order.observe import NEEDED, Reading
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef, owner_references

WALLED: Obj = {"metadata": {"name": "walled", "namespace": "argocd"}, "spec": {"destinations": []}}


def app(set_name: str, cluster: str, needs: str = "", wave: str = "0", project: str = "default") -> Obj:
    annotations = {names.CLUSTER: cluster, CLUSTER_WAVE: wave, **({DEPENDS_ON: needs} if needs else {})}
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "name": set_name, "uid": set_name}
    name = f"{set_name}-{cluster}"
    metadata: Obj = {"name": name, "namespace": "argocd", "uid": f"{name}-uid", "labels": {names.PULL: "true"}}
    metadata |= {"annotations": annotations, "ownerReferences": [{**owner, "controller": True}]}
    spec = {
        "project": project,
        "source": {"repoURL": "https://git.test/a", "path": "a"},
        "destination": {"name": cluster},
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}


def cache_of(*apps: Obj) -> Cache:
    made = Cache(Mapper(()), {**PULL_INDICES, **INDICES})
    for kind in NEEDED:
        made.mark_synced(kind)
    made.put(PROJECTS, WALLED)
    made.put(PROJECTS, {"metadata": {"name": "default", "namespace": "argocd"}, "spec": {"destinations": [ANY]}})
    for name in {one["name"] for each in apps for one in owner_references(each)}:
        made.put(SETS, {"metadata": {"name": name, "namespace": "argocd", "uid": name}, "spec": {}})
    for one in apps:
        made.put(APPS, one)
        cluster = one["metadata"]["annotations"][names.CLUSTER]
        available = {"type": "ManagedClusterConditionAvailable", "status": "True"}
        status = {"conditions": [available]}
        made.put(CLUSTERS, {"metadata": {"name": cluster}, "spec": {"hubAcceptsClient": True}, "status": status})
    return made


ANY = {"server": "*", "namespace": "*"}


def needs_in(cache: Cache, set_name: str = "web") -> Mapping[str, str]:
    """Return by name of Application what it waits for."""
    seen = Reading(PullSettings()).group(cache, ObjectRef(*ROLLOUTS, "argocd", set_name))
    assert seen is not None
    return {one.name: one.needs for one in seen.targets}


@pytest.mark.parametrize(
    ("needs", "why"),
    [
        ("appset/db/--1", "'appset/db/--1' ends with '--1'; allowed is the number of a step or wave"),
        ("appset/db/²", "ends with '²'; allowed is the number"),
        ("appset/db/" + "9" * 400, "allowed is the number of a step or wave"),
        ("appset/db/7", "waiting for appset/db/7, of which the project sees no Application"),
        ("appset/db/0", "waiting for appset/db/0: db-c1 on cluster c1: its cluster does not have its newest release"),
        ("appset/web/0", "waiting for appset/web/0, of which the project sees no Application"),
        ("a/b/c/d", "cannot read 'a/b/c/d'"),
        ("/db", "cannot read '/db'"),
        (", ,", ""),
        (",".join(f"a{number}" for number in range(51)), "found 51 names; at most 50"),
        ("web-c1", "goes in a circle: web-c1 -> web-c1"),
    ],
)
def test_what_a_dependency_says(needs: str, why: str) -> None:
    found = needs_in(cache_of(app("web", "c1", needs), app("db", "c1")))["web-c1"]
    assert why in found if why else found == ""


def test_a_circle_names_no_application_that_the_project_may_not_see() -> None:
    apps = app("web", "c1", "db-c1", project="walled"), app("db", "c1", "hidden-c1"), app("hidden", "c1", "web-c1")
    cache = cache_of(*apps)
    assert needs_in(cache)["web-c1"] == (
        f"{DEPENDS_ON} goes in a circle: web-c1 -> another Application -> another Application -> web-c1; "
        "take one of them out"
    )
    assert "hidden-c1 -> web-c1 -> db-c1 -> hidden-c1" in needs_in(cache, "hidden")["hidden-c1"]


def test_waves_count_in_circles() -> None:
    cache = cache_of(app("web", "c1", "late-c2"), app("late", "c1", "web-c1"), app("late", "c2", wave="1"))
    assert "late-c1 -> web-c1 -> late-c2" in needs_in(cache, "late")["late-c1"]


def test_a_set_waits_for_none_of_its_clusters_that_are_skipped() -> None:
    cache = cache_of(app("web", "c1", "appset/db"), app("db", "c1"), app("db", "c2"))
    rollout: Obj = {"metadata": {"namespace": "argocd", "name": "db", "uid": "r"}, "status": {"release": "aa"}}
    rollout["spec"] = {"skip": [{"cluster": "c1", "release": "aa"}, {"cluster": "c2", "release": "bb"}]}
    cache.put(ROLLOUTS, rollout)
    assert "db-c2 on cluster c2" in needs_in(cache)["web-c1"]
    rollout["spec"]["skip"][1]["release"] = "aa"
    assert needs_in(cache)["web-c1"] == ""


@pytest.mark.parametrize("needs", ["{}/db-{}", "appset/db", "appset/web", "appset/web/0", "appset/db/1, appset/db/0"])
def test_what_it_costs_to_judge_all_dependencies_of_a_set(needs: str) -> None:
    spent = []
    for count in (20, 80):
        clusters = [f"c{number}" for number in range(count)]
        web = (app("web", one, needs.format(one, one), wave=str(number)) for number, one in enumerate(clusters))
        cache = cache_of(*web, *(app("db", one, wave=str(number % 2)) for number, one in enumerate(clusters)))
        reading, ref = Reading(PullSettings()), ObjectRef(*ROLLOUTS, "argocd", "web")
        reading.group(cache, ref)  # indices
        with counted() as found:
            reading.group(cache, ref)
        spent.append(found[0])
    assert spent[1] <= 4.6 * spent[0], f"{spent}: four times as many clusters"

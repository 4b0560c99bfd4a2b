"""``syncline.dev/depends-on`` over clusters under running controllers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.fleet.order.stage import ROLLOUTS, WAVES, Stage, Story
from tests.fleet.test_pull_controllers import APPS

from syncline.fleet.pull import names
from syncline.fleet.pull.order.annotations import DEPENDS_ON, HEALTHY_FOR

Play = Callable[..., Story]
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
TWO = {"c1": 0, "c2": 1}


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("{{cluster}}/db-{{cluster}}", {"c1": ("c1",), "c2": ("c2",)}),
        ("db-{{cluster}}", {"c1": ("c1",), "c2": ("c2",)}),
        ("appset/db", {"c1": ("c1", "c2"), "c2": ("c1", "c2")}),
        ("appset/db/0", {"c1": ("c1",), "c2": ("c1",)}),
    ],
    ids=["the one on the same cluster", "the one of a name", "all of a set", "a wave of a set"],
)
def test_a_release_waits_for_what_it_depends_on(
    play: Play, stage: Stage, text: str, passed: dict[str, tuple[str, ...]]
) -> None:
    db = play("db", waves=TWO, healthy_for="30s")
    web = play("web", waves=dict.fromkeys(TWO, 0), annotations={DEPENDS_ON: text})
    db.create()
    web.create()
    stage.go(10)
    assert web.carried() == {}
    shown = text.replace("{{cluster}}", "c1")
    assert web.why("c1").startswith(f"waiting for {'' if 'appset' in shown else 'Application '}{shown}: ")
    web.until("Done")
    proved = {one: at for one, at in proofs(db).items() if at is not None}
    for cluster, before in passed.items():
        began = web.begun("v1")[cluster]
        last = max(proved[one] for one in before)
        assert 0 <= (began - last).total_seconds() <= 10, f"{cluster} began {began}, {before} were done {last}"
    db.push("v2", 10)
    web.push("v2", 5)
    assert web.carried()["c1"] == "v1", "a change of what it depends on is waited for, too"
    web.until("Done")
    assert web.begun("v2")["c1"] > db.begun("v2")[passed["c1"][-1]]


def proofs(story: Story) -> dict[str, object]:
    """Return when each cluster was done for the first time."""
    found: dict[str, object] = {}
    for at, status in story.said():
        if not status.get("total"):
            continue
        left = {one["cluster"] for one in status["clusters"]}
        for name in story.waves:
            if name not in left:
                found.setdefault(name, at)
    return found


def test_what_does_not_exist_is_waited_for_by_name_and_gone_on_with_when_it_comes(play: Play, stage: Stage) -> None:
    web = play("lone", waves={"c1": 0}, annotations={DEPENDS_ON: "late-c1"})
    web.create()
    stage.go(60)
    assert web.why("c1") == "waiting for Application late-c1, which does not exist"
    assert (web.carried(), web.phase) == ({}, "Waiting")
    play("late", waves={"c1": 0}).done()
    web.until("Done", seconds=60)


def test_an_application_of_no_set_has_a_roll_out_of_its_own(play: Play, stage: Stage) -> None:
    hub, path = stage.fleet.hub, f"{ROLLOUTS}/single.app"
    annotations = {names.CLUSTER: "c1", "argocd.argoproj.io/skip-reconcile": "true", HEALTHY_FOR: "30s"}
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/single", "path": "a", "targetRevision": "v1"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    metadata = {"name": "single", "labels": {names.PULL: "true"}, "annotations": annotations}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata}
    hub.send("POST", APPS.format("argocd"), {**kind, "spec": spec})
    web = play("after", waves={"c2": 0}, annotations={DEPENDS_ON: "c1/single"})
    web.create()
    stage.go(15)
    rollout = hub.get(path)
    assert rollout["spec"]["of"] == {"kind": "Application", "name": "single"}
    (entry,) = rollout["status"]["clusters"]
    assert entry["state"] == "Proving" and entry["until"]
    assert web.why("c2") == f"waiting for Application c1/single: it has to stay healthy until {entry['until']}"
    web.until("Done", seconds=90)
    assert hub.get(path)["status"]["phase"] == "Done"
    hub.send("DELETE", f"{APPS.format('argocd')}/single")
    stage.go(30)
    assert hub.absent(path), "it goes with its Application"


def test_a_circle_is_refused_by_its_names_until_it_is_broken(play: Play, stage: Stage) -> None:
    one = play("hen", waves={"c1": 0}, annotations={DEPENDS_ON: "appset/egg"})
    two = play("egg", waves={"c1": 0}, annotations={DEPENDS_ON: "c1/hen-c1"})
    one.create()
    two.create()
    stage.go(60)
    assert one.why("c1") == f"{DEPENDS_ON} goes in a circle: hen-c1 -> egg-c1 -> hen-c1; take one of them out"
    assert one.carried() == two.carried() == {}
    two.change(template={"metadata": {"annotations": {DEPENDS_ON: None}}})
    one.until("Done", seconds=120)


def test_what_the_project_may_not_see_is_like_what_does_not_exist(play: Play, stage: Stage) -> None:
    spec = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "default"}]}
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "walled"}}
    stage.fleet.hub.send("POST", PROJECTS, {**kind, "spec": spec})
    play("secret", waves={"c1": 0}).done()
    said = []
    try:
        for number, name in enumerate(("secret-c1", "appset/secret", "absent-c1", "appset/absent")):
            story = play(f"walled{number}", waves={"c1": 0}, project="walled", annotations={DEPENDS_ON: name})
            story.create()
            stage.go(20)
            assert story.carried() == {}
            said.append(story.why("c1").replace("secret", "NAME").replace("absent", "NAME"))
    finally:
        stage.fleet.hub.send("DELETE", f"{PROJECTS}/walled")
    assert said[:2] == said[2:], "it reveals nothing"
    assert "NAME-c1" in said[0]


def test_an_unreadable_dependency_says_what_is_allowed(play: Play, stage: Stage) -> None:
    story = play("odd", waves=dict(WAVES), annotations={DEPENDS_ON: "a/b/c"})
    story.create()
    stage.go(20)
    assert story.why("c1") == (
        f"{DEPENDS_ON}: cannot read 'a/b/c'; allowed are APP, CLUSTER/APP, appset/SET, appset/SET/STEP"
    )

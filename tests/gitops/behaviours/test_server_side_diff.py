"""Compare option ``ServerSideDiff=true``: the API server says what differs, by dry runs of a server-side apply."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.gitops.behaviours.sim import APPS, MAPS, Simulation, config

from syncline.apply.diff import Prediction
from syncline.apply.predicting import MAX_ASKED, Kept, Predict, PredictionCache, missing, question
from syncline.base.clock import VirtualClock
from syncline.kube.objects import Obj

GROUP = "/apis/admissionregistration.k8s.io/v1"
OPTIONS = "argocd.argoproj.io/compare-options"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
LABEL = "Object{metadata: Object.metadata{labels: {'added': 'yes'}}}"


def option(sim: Simulation, text: str) -> None:
    sim.patch(f"{APPS}/app", {"metadata": {"annotations": {OPTIONS: text}}})
    sim.driver.settle()


def policy(sim: Simulation, kind: str, **spec: object) -> None:
    made = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [RULE]}, **spec}
    sim.world.send("POST", f"{GROUP}/{kind}admissionpolicies", {"metadata": {"name": "rule"}, "spec": made})
    bound: Obj = {"policyName": "rule"} | ({"validationActions": ["Deny"]} if kind == "validating" else {})
    sim.world.send("POST", f"{GROUP}/{kind}admissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})
    sim.driver.settle()


def labelling(sim: Simulation) -> None:
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": LABEL}}
    policy(sim, "mutating", mutations=[mutation], reinvocationPolicy="Never")


def synced(*objects: Obj) -> Simulation:
    sim = Simulation(*(objects or (config("a"),)), nodes=0)
    assert sim.sync()["phase"] == "Succeeded"
    sim.driver.settle()
    return sim


def test_the_server_is_asked_only_where_an_application_wants_it() -> None:
    sim = synced()
    sim.refresh()
    assert (sim.sync_status(), sim.done("ask")) == ("Synced", [])
    option(sim, "ServerSideDiff=true")
    assert (sim.sync_status(), sim.done("ask")) == ("Synced", ["a"])


def test_what_mutating_admission_adds_counts_only_if_asked_for_a051() -> None:
    sim = synced()
    labelling(sim)
    option(sim, "ServerSideDiff=true")
    assert sim.done("ask") and sim.sync_status() == "Synced"
    option(sim, "ServerSideDiff=true,IncludeMutationWebhook=true")
    assert sim.sync_status() == "OutOfSync"
    assert "labels" not in sim.world.send("GET", f"{MAPS}/a")["metadata"], "a dry run changes nothing"


def test_an_answer_serves_until_the_object_the_manifest_or_a_refresh_changes() -> None:
    sim = synced(config("a"), config("b"))
    option(sim, "ServerSideDiff=true")
    assert sorted(sim.done("ask")) == ["a", "b"]
    sim.patch(f"{APPS}/app", {"metadata": {"labels": {"x": "y"}}})
    sim.driver.advance(30)
    assert len(sim.done("ask")) == 2, "nothing has changed"
    sim.patch(f"{MAPS}/a", {"data": {"k": "by hand"}})
    sim.driver.settle()
    assert sim.done("ask")[2:] == ["a"] and sim.sync_status() == "OutOfSync"
    sim.refresh()
    assert sorted(sim.done("ask")[3:]) == ["a", "b"]


def test_what_the_server_refuses_is_unknown_and_says_why_until_it_takes_it() -> None:
    sim = synced()
    policy(sim, "validating", validations=[{"expression": "false", "message": "not on a Friday"}])
    option(sim, "ServerSideDiff=true")
    assert sim.sync_status() == "Unknown"
    said = sim.conditions()["ComparisonError"]
    assert "error running server side apply in dryrun mode for resource ConfigMap/a" in said
    assert "not on a Friday" in said
    sim.world.send("DELETE", f"{GROUP}/validatingadmissionpolicybindings/b")
    sim.driver.advance(400)
    assert (sim.sync_status(), sim.conditions()) == ("Synced", {})


def test_new_objects_are_not_asked_about() -> None:
    sim = Simulation(config("a"), nodes=0)
    option(sim, "ServerSideDiff=true")
    assert (sim.sync_status(), sim.done("ask")) == ("OutOfSync", [])
    assert sim.sync()["phase"] == "Succeeded"
    sim.driver.settle()
    assert sim.sync_status() == "Synced"


def test_the_setting_of_the_controllers_is_that_of_every_application_that_says_nothing_else() -> None:
    sim = synced()
    name = {"name": "argocd-cmd-params-cm", "namespace": "argocd"}
    maps = "/api/v1/namespaces/argocd/configmaps"
    sim.world.send("POST", maps, {"metadata": name, "data": {"controller.diff.server.side": "true"}})
    sim.refresh()
    assert sim.done("ask") == ["a"]
    option(sim, "ServerSideDiff=false")
    sim.refresh()
    assert sim.done("ask") == ["a"]


# -- the plan of it ---------------------------------------------------------------------------------------------------

NOW = VirtualClock().now()


def pair(name: str, version: str = "1") -> tuple[Obj, Obj]:
    live = config(name) | {"metadata": {"name": name, "uid": name, "resourceVersion": version}}
    return config(name), live


def known(book: PredictionCache, one: tuple[Obj, Obj], *, error: str = "", about: str = "1") -> None:
    name = question(*one, "here")
    book.put(name, Kept(Prediction(name, b"" if error else b"{}", error), NOW, "1", about))


def test_one_pass_asks_no_more_than_its_share() -> None:
    pairs = [pair(str(number)) for number in range(MAX_ASKED + 50)]
    assert len(missing({}, pairs, "here", NOW).asked) == MAX_ASKED


@pytest.mark.parametrize(
    ("after_s", "error", "about", "now_at", "found"),
    [
        (30, "", "1", "1", "compared"),
        (30, "refused", "1", "1", "compared"),
        (61, "refused", "1", "1", "asked"),
        (1, "", "2", "1", "waits"),
        (6, "", "2", "1", "compared"),
        (1, "", "2", "2", "compared"),
        (1, "", "1", "2", "later"),
        (4, "", "1", "2", "asked"),
    ],
    ids=[
        "an answer is kept",
        "a refusal is kept for a minute",
        "then it is asked again",
        "an answer about a newer object waits for it to be seen",
        "but not for ever",
        "and holds once it is",
        "an object that changes again at once is compared by its last answer",
        "and asked about a moment later",
    ],
)
def test_when_the_server_is_asked_again(after_s: float, error: str, about: str, now_at: str, found: str) -> None:
    book = PredictionCache()
    known(book, pair("a"), error=error, about=about)
    made = missing(book.known(), [pair("a", now_at)], "here", NOW + timedelta(seconds=after_s))
    happens = "asked" if made.asked else "waits" if made.waits else "later" if made.later_s else "compared"
    assert happens == found


def test_objects_that_change_all_the_time_keep_no_application_from_being_compared() -> None:
    sim = synced(*(config(f"m{number}") for number in range(5)))
    option(sim, "ServerSideDiff=true")
    before = len(sim.done("ask"))
    for turn in range(40):
        for number in range(5):
            sim.patch(f"{MAPS}/m{number}", {"metadata": {"annotations": {"turn": str(turn)}}})
        sim.driver.advance(0.5)
    assert len(sim.done("ask")) - before < 5 * 40 / 4, "each is asked about every few seconds"
    sim.patch(f"{MAPS}/m0", {"data": {"k": "by hand"}})
    sim.driver.advance(10)
    assert sim.sync_status() == "OutOfSync"


@pytest.mark.parametrize(
    ("one", "place"), [(pair("b"), "here"), (pair("a"), "there")],
    ids=["another object", "another cluster, account or refresh"],
)  # fmt: skip
def test_an_answer_is_that_of_one_question(one: tuple[Obj, Obj], place: str) -> None:
    book = PredictionCache()
    known(book, pair("a"))
    assert missing(book.known(), [one], place, NOW).asked


def test_the_book_is_bounded_and_shows_no_object() -> None:
    book = PredictionCache(limit=2)
    for name in ("a", "b", "c"):
        known(book, pair(name))
    assert len(missing(book.known(), [pair("a"), pair("b"), pair("c")], "here", NOW).asked) == 1
    assert "soup" not in repr(Predict("q", {"data": {"soup": "leek"}}, "1"))
    assert "soup" not in repr(Prediction("q", b"soup"))

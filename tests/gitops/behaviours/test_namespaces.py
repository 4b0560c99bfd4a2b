"""Applications outside the control namespace: the installation enables namespaces, projects permit them."""

from __future__ import annotations

import pytest
from tests.gitops.behaviours.sim import MAPS, PROJECTS, Simulation, config

from syncline.argo.parameters import enables_namespace, parse_parameters
from syncline.assembly.inspection.preview import observed_application
from syncline.gitops.application.observing.observe import AppSettings
from syncline.gitops.application.problems import spec_problems
from syncline.kube.objects import Obj, dig, ref_of

CONFIG_MAPS = "/api/v1/namespaces/argocd/configmaps"
PARAMETERS = f"{CONFIG_MAPS}/argocd-cmd-params-cm"
TEAM = "/apis/argoproj.io/v1alpha1/namespaces/team/applications"


@pytest.mark.parametrize(
    ("listed", "namespace", "enabled"),
    [
        ("", "argocd", True),
        ("", "team", False),
        ("team", "team", True),
        ("team", "team-2", False),
        ("one, team ,two", "team", True),
        ("team-*", "team-2", True),
        ("team-*", "team", False),
        ("*", "anything", True),
        ("/^team-[0-9]+$/", "team-12", True),
        ("/^team-[0-9]+$/", "team-x", False),
        ("/team/", "my-team-2", True),
        ("/^((?!not-allowed).)*$/", "team", True),
        ("/^((?!not-allowed).)*$/", "not-allowed", False),
        ("/(/", "team", False),
        (",", "", False),
    ],
)
def test_namespaces_are_enabled_by_name_glob_or_expression(listed: str, namespace: str, enabled: bool) -> None:
    found = parse_parameters({"application.namespaces": listed}).application_namespaces
    assert enables_namespace(namespace, "argocd", found) is enabled


def team(listed: str | None = None, settings: AppSettings | None = None) -> Simulation:
    """An Application ``web`` in namespace ``team``, whose project takes Applications of any namespace."""
    sim = Simulation(config("one"), settings=settings)
    sim.world.send(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    )
    sim.patch(f"{PROJECTS}/default", {"spec": {"sourceNamespaces": ["*"]}})
    if listed is not None:
        enable(sim, listed)
    spec = dict(sim.app()["spec"]) | {"syncPolicy": {"automated": {}}}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web"}, "spec": spec}
    sim.world.send("POST", TEAM, app)
    sim.driver.advance(5)
    return sim


def enable(sim: Simulation, listed: str) -> None:
    data = {"data": {"application.namespaces": listed}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cmd-params-cm"}} | data
    if sim.get(PARAMETERS) is None:
        sim.world.send("POST", CONFIG_MAPS, body)
    else:
        sim.patch(PARAMETERS, data)
    sim.driver.advance(5)


def web(sim: Simulation) -> Obj:
    found: Obj = sim.world.send("GET", f"{TEAM}/web")
    return found


def test_without_the_setting_applications_live_in_the_control_namespace_alone() -> None:
    sim = team()
    assert "status" not in web(sim), "an Application of a namespace that is not enabled may be another installation's"
    assert sim.maps() == []
    sim.patch(f"{TEAM}/web", {"operation": {"sync": {}}})
    sim.driver.advance(5)
    assert web(sim)["operation"] == {"sync": {}} and sim.maps() == []


def test_the_setting_counts_when_it_changes() -> None:
    sim = team()
    enable(sim, "other, te*")
    status = web(sim)["status"]
    assert dig(status, "sync", "status") == "Synced"
    assert status["controllerNamespace"] == "argocd"
    annotations = sim.world.send("GET", f"{MAPS}/one")["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/tracking-id"] == "team_web:/ConfigMap:default/one"
    enable(sim, "other")
    version = web(sim)["metadata"]["resourceVersion"]
    sim.source.commit(config("one", "new"))
    sim.driver.advance(600)
    assert web(sim)["metadata"]["resourceVersion"] == version


def test_a_flag_of_the_process_wins_over_the_setting() -> None:
    assert "status" in web(team("other", AppSettings(application_namespaces=("team",))))
    assert "status" not in web(team("team", AppSettings(application_namespaces=())))


def test_an_enabled_namespace_needs_a_project_that_permits_it_too() -> None:
    sim = team()
    sim.patch(f"{PROJECTS}/default", {"spec": {"sourceNamespaces": ["other"]}})
    enable(sim, "team")
    told = {one["type"]: one["message"] for one in web(sim)["status"]["conditions"]}
    assert told["InvalidSpecError"] == "application 'web' in namespace 'team' is not permitted to use project 'default'"
    assert sim.maps() == []


def test_commands_say_of_an_application_that_no_controller_works_on_it() -> None:
    sim = team()
    world = sim.world
    observed = observed_application(
        world.gitops_actor.loop.cache, ref_of(web(sim)), sim.source, AppSettings(), world.clock.now()
    )
    assert observed is not None
    (told,) = spec_problems(observed)
    assert "namespace 'team' is not permitted: application.namespaces of argocd-cmd-params-cm" in told.message

"""ProjectService over the port of ``syncline up``: projects, tokens of their roles, and who may change them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from tests.web.installed import DENIED, INVALID, MISSING, UNKNOWN, Server, installation

from syncline.kube.client import Request
from syncline.kube.objects import Obj

PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
HERE = "https://kubernetes.default.svc"
RULES = "p, keeper, projects, update, team, allow\np, keeper, projects, get, team, allow"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with installation(tmp_path_factory.mktemp("projects"), RULES, "project.Project") as made:
        yield made


def project(name: str, **spec: Any) -> Obj:
    given = {"sourceRepos": ["*"], "destinations": [{"server": HERE, "namespace": "*"}]}
    return {"metadata": {"name": name}, "spec": given | spec}


def role(name: str, of: str = "team", **fields: Any) -> Obj:
    return {"name": name, "policies": [f"p,proj:{of}:{name}, applications,  get, {of}/*,allow"]} | fields


def made(server: Server, name: str, **spec: Any) -> Obj:
    found: Obj = server.ask("Create", {"project": project(name, **spec), "upsert": True})
    return found


def test_creating_twice_changes_nothing_unless_it_is_asked_for(server: Server) -> None:
    first = made(server, "twice")
    again = server.ask("Create", {"project": project("twice")})
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    other = project("twice", description="another")
    code, text = server.refused("Create", {"project": other})
    assert code is INVALID
    assert (
        text == 'existing project spec is different; use upsert flag to force update; difference in keys "Description"'
    )
    assert server.ask("Create", {"project": other, "upsert": True})["spec"]["description"] == "another"


def test_policies_are_normalized_and_problems_are_named(server: Server) -> None:
    found = made(server, "team", roles=[role("ci")])
    assert found["spec"]["roles"][0]["policies"] == ["p, proj:team:ci, applications, get, team/*, allow"]
    foreign = {"name": "ci", "policies": ["p, role:admin, applications, *, team/*, allow"]}
    code, text = server.refused("Create", {"project": project("bad", roles=[foreign])})
    assert code is INVALID
    assert text.startswith("error validating project: rpc error: code = InvalidArgument desc = invalid policy rule")
    found["spec"]["destinations"].append(found["spec"]["destinations"][0])
    assert server.refused("Update", {"project": found}) == (INVALID, f"destination '{HERE}/*' already added")


def test_an_update_is_of_the_version_that_its_author_saw(server: Server) -> None:
    seen = made(server, "versions")
    server.ask("Update", {"project": seen | {"spec": seen["spec"] | {"description": "first"}}})
    code, _ = server.refused("Update", {"project": seen | {"spec": seen["spec"] | {"description": "second"}}})
    assert code is grpc.StatusCode.ABORTED
    assert server.ask("Get", {"name": "versions"})["spec"]["description"] == "first"


def test_a_project_that_applications_use_keeps_what_they_need(server: Server) -> None:
    found = made(server, "used")
    source = {"repoURL": "https://git.example.invalid/a.git", "path": "app"}
    spec = {"project": "used", "source": source, "destination": {"server": HERE, "namespace": "default"}}
    app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "used"}, "spec": spec}
    server.client.send(Request("POST", PROJECTS.replace("appprojects", "applications"), body=app)).or_raise()
    narrow = {"sourceRepos": ["https://other.example.invalid/*"], "destinations": [{"server": HERE, "namespace": "x"}]}
    assert server.refused("Update", {"project": found | {"spec": narrow}}) == (
        INVALID,
        "as a result of project update 1 applications source became invalid and "
        "1 applications destination became invalid",
    )
    assert server.refused("Delete", {"name": "used"}) == (INVALID, "project is referenced by 1 applications")
    assert server.refused("Delete", {"name": "default"})[1] == "name 'default' is reserved and cannot be deleted"
    made(server, "unused")
    server.ask("Delete", {"name": "unused"})
    assert server.refused("Get", {"name": "unused"})[0] is MISSING


def test_a_token_of_a_role_may_what_the_role_may_until_it_is_deleted(server: Server) -> None:
    made(server, "team", roles=[role("ci")])
    asked = {"project": "team", "role": "ci", "id": "one", "expiresIn": 3600}
    token = server.ask("CreateToken", asked)["token"]
    found = server.ask("Get", {"name": "team"})
    (kept,) = found["status"]["jwtTokensByRole"]["ci"]["items"]
    assert (kept["id"], int(kept["exp"]) - int(kept["iat"])) == ("one", 3600)
    assert found["spec"]["roles"][0]["jwtTokens"] == [kept]
    stored = server.client.send(Request("GET", f"{PROJECTS}/team")).or_raise()
    assert token not in json.dumps(stored)
    assert server.ask("Get", {"name": "team"}, token)["metadata"]["name"] == "team"
    assert server.refused("Get", {"name": "default"}, token)[0] is DENIED
    assert server.refused("CreateToken", asked)[1].rstrip().endswith("Token id 'one' has been used.")
    server.ask("DeleteToken", {"project": "team", "role": "ci", "id": "one"})
    code, text = server.refused("Get", {"name": "team"}, token)
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert "does not exist in project 'team'" in text
    assert server.ask("DeleteToken", {"project": "team", "role": "ci", "id": "one"}) == {}
    assert server.refused("CreateToken", asked | {"role": "none"}) == (
        MISSING,
        "project 'team' does not have role 'none'",
    )


def test_who_may_change_a_project_may_not_widen_it_to_clusters_of_others(server: Server) -> None:
    found = made(server, "team", roles=[role("ci")])
    keeper, guest = server.login("keeper"), server.login("guest")
    described = server.ask("Update", {"project": found | {"spec": found["spec"] | {"description": "ours"}}}, keeper)
    for spec, right in (
        ({"destinations": [*found["spec"]["destinations"], {"server": "https://far", "namespace": "*"}]}, "clusters"),
        ({"sourceRepos": ["*", "https://far.example.invalid/*"]}, "repositories"),
        ({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}, "clusters"),
    ):
        code, text = server.refused("Update", {"project": described | {"spec": described["spec"] | spec}}, keeper)
        assert code is DENIED
        assert text.startswith(
            f"permission denied: {right}, update, http" if "cluster" in right else "permission denied: "
        )
    for name, asked in (
        ("Get", {"name": "team"}),
        ("Update", {"project": described}),
        ("Delete", {"name": "team"}),
        ("Create", {"project": project("mine")}),
        ("CreateToken", {"project": "team", "role": "ci"}),
        ("DeleteToken", {"project": "team", "role": "ci", "id": "one"}),
        ("GetDetailedProject", {"name": "team"}),
        ("GetGlobalProjects", {"name": "team"}),
        ("GetSyncWindowsState", {"name": "team"}),
        ("ListEvents", {"name": "team"}),
    ):
        assert server.refused(name, asked, guest)[0] is DENIED, name
    assert server.refused("ListLinks", {"name": "team"}, guest) == (UNKNOWN, "unauthorized access to project team")


def test_every_change_leaves_an_event_that_names_who_made_it(server: Server) -> None:
    made(server, "seen", roles=[role("ci", "seen")])
    server.ask("CreateToken", {"project": "seen", "role": "ci"})
    events = server.ask("ListEvents", {"name": "seen"})["items"]
    assert {(one["reason"], one["message"]) for one in events} == {
        ("ResourceCreated", "admin created project"),
        ("ResourceCreated", "admin created token"),
    }
    assert {one["source"]["component"] for one in events} == {"argocd-server"}


def test_windows_global_projects_and_scoped_entries_are_shown(server: Server) -> None:
    always = {"kind": "allow", "schedule": "* * * * *", "duration": "1h", "applications": ["*"]}
    never = always | {"schedule": "0 0 30 2 *"}
    made(server, "whole", description="for all", sourceRepos=["https://all.example.invalid/*"])
    part = project("part", syncWindows=[always, never])
    part["metadata"]["labels"] = {"team": "a"}
    server.ask("Create", {"project": part})
    server.keep(
        "argocd-cm", {"globalProjects": '[{"projectName": "whole", "labelSelector": {"matchLabels": {"team": "a"}}}]'}
    )
    assert [one["schedule"] for one in server.ask("GetSyncWindowsState", {"name": "part"})["windows"]] == ["* * * * *"]
    for _ in range(1000):
        found = server.ask("GetGlobalProjects", {"name": "part"}).get("items") or []
        if found:
            break
    assert [one["metadata"]["name"] for one in found] == ["whole"]
    whole = server.ask("GetDetailedProject", {"name": "part"})
    assert whole["project"]["spec"]["sourceRepos"] == ["*", "https://all.example.invalid/*"]


@pytest.mark.parametrize(
    "name", ["", "..", "../applications", "team?watch=1", "team/status", "team%2f..", "a#b", "a\nb"]
)
def test_a_name_leads_to_no_other_path(server: Server, name: str) -> None:
    for method, asked in (
        ("Get", {"name": name}),
        ("Delete", {"name": name}),
        ("Update", {"project": project(name)}),
        ("CreateToken", {"project": name, "role": "ci"}),
    ):
        code, text = server.refused(method, asked)
        assert code is INVALID
        assert text.startswith("invalid resource name ")

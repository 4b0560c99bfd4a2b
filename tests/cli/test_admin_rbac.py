"""``syncline admin settings rbac``: what argocd's command answers, and which line decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from syncline.cli.main import main

POLICY = """\
p, role:user, clusters, get, *, allow
p, role:user, logs, get, */*, allow
p, role:test, exec, create, shop/*, allow
p, my-org:qa, projects, update, shop, allow
p, blocked, logs, get, */*, deny
g, my-org:dev, role:user
"""
MAP = f"""\
apiVersion: v1
kind: ConfigMap
metadata: {{name: argocd-rbac-cm}}
data:
  policy.default: role:readonly
  policy.more.csv: p, more, applications, sync, */*, allow
  policy.csv: |
{"".join(f"    {line}{chr(10)}" for line in POLICY.splitlines())}
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    found = {"csv": tmp_path / "policy.csv", "map": tmp_path / "argocd-rbac-cm.yaml"}
    found["csv"].write_text(POLICY)
    found["map"].write_text(MAP)
    return {name: str(path) for name, path in found.items()}


@pytest.mark.parametrize(
    ("file", "asked", "code"),
    [
        ("csv", "role:user get clusters", 0),
        ("csv", "role:user get cluster *", 0),
        ("csv", "role:user get certificates", 1),
        ("csv", "role:user get certificates --default-role role:readonly", 0),
        ("csv", "role:user get certs --default-role role:readonly --use-builtin-policy=false", 1),
        ("csv", "role:user get logs", 0),
        ("csv", "role:user get logs shop/web", 0),
        ("csv", "role:test create exec shop/web", 0),
        ("csv", "role:test create exec", 1),
        ("csv", "my-org:dev get log *", 0),
        ("csv", "my-org:qa update proj shop", 0),
        ("csv", "blocked get logs --default-role role:user", 0),
        ("csv", "blocked get logs", 1),
        ("csv", "admin delete/apps/Deployment/web app shop/web", 0),
        ("map", "anyone get app", 0),
        ("map", "anyone sync app", 1),
        ("map", "more sync app", 0),
        ("map", "anyone fetch app", 2),
        ("map", "anyone sync/x app", 2),
        ("map", "anyone get apples", 2),
        ("map", "anyone get apples --strict=false", 1),
    ],
)
def test_a_role_may_do_what_its_lines_permit(
    files: dict[str, str], file: str, asked: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["admin", "settings", "rbac", "can", *asked.split(), "--policy-file", files[file]]) == code
    assert capsys.readouterr().out == {0: "Yes\n", 1: "No\n", 2: ""}[code]


def test_the_answer_names_the_line(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["admin", "settings", "rbac", "can", "role:user", "get", "cluster", "--policy-file", files["map"]])
    assert capsys.readouterr().err == "by: p, role:readonly, clusters, get, *, allow (built-in policy)\n"
    main(["admin", "settings", "rbac", "can", "-q", "role:user", "get", "cluster", "--policy-file", files["csv"]])
    assert capsys.readouterr() == ("", "")


def test_a_group_without_a_membership_is_named(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["admin", "settings", "rbac", "can", "my-org:qa", "update", "proj", "shop", "--policy-file", files["csv"]])
    assert "Add 'g, my-org:qa, ROLE' and give the permission to the role" in capsys.readouterr().err


def test_a_policy_is_validated(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["admin", "settings", "rbac", "validate", "--policy-file", files["map"]]) == 0
    assert capsys.readouterr() == ("Policy is valid.\n", "")
    broken = tmp_path / "broken.csv"
    broken.write_text("g, a, role:b\np, a\n")
    assert main(["admin", "settings", "rbac", "validate", "--policy-file", str(broken)]) == 20
    assert "argocd-rbac-cm line 2: invalid RBAC policy: p, a" in capsys.readouterr().err
    broken.write_text("g, a, role:b\n")
    assert main(["admin", "settings", "rbac", "validate", "--policy-file", str(broken)]) == 0
    assert "role:b has members and no permission" in capsys.readouterr().err
    assert main(["admin", "settings", "rbac", "validate"]) == 2

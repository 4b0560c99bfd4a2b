"""Collections and roles of a requirements.yml: each is pinned, from where it says, and what it says."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server

from syncline.sources.ansible.collecting import collect
from syncline.sources.ansible.requirements import Origin, Requirement, requirements
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import GitSettings
from syncline.sources.remote.credentials import credential_store
from syncline.sources.sourcing import Sources

COMMIT = "a1" * 20
CANARY = "c4n4ry-p4ssw0rd"
BASIC = "Basic Ym90OmM0bjRyeS1wNHNzdzByZA=="
INSIDE = "/project"


def read(*lines: str, roles: bool = False) -> tuple[Requirement, ...]:
    text = f"{'roles' if roles else 'collections'}:\n" + "".join(f"  - {{{line}}}\n" for line in lines)
    return requirements(text.encode(), "requirements.yml")


@pytest.mark.parametrize(
    ("line", "origin", "name", "source", "version"),
    [
        ("name: a.b, version: 1.2.3", Origin.GALAXY, "a.b", "https://galaxy.ansible.com", "1.2.3"),
        ("name: a.b, version: ==1.2.3, source: 'https://hub/api/'", Origin.GALAXY, "a.b", "https://hub/api/", "1.2.3"),
        (f"name: 'git@h:o/r.git#/x/,{COMMIT}'", Origin.GIT, "", "git@h:o/r.git", COMMIT),
        (f"name: a.b, source: 'git+https://h/r', version: {COMMIT}", Origin.GIT, "a.b", "https://h/r", COMMIT),
        (f"name: 'https://h/r', type: git, version: {COMMIT}", Origin.GIT, "", "https://h/r", COMMIT),
        (f"name: 'https://h/a.tar.gz', sha256: {'a' * 64}", Origin.ADDRESS, "", "https://h/a.tar.gz", ""),
        ("name: ./archives/a-b-1.0.0.tar.gz", Origin.FILE, "", "archives/a-b-1.0.0.tar.gz", ""),
        ("name: a.b, source: ours/b/, type: dir", Origin.FOLDER, "a.b", "ours/b", ""),
        ("source: ours, type: subdirs", Origin.FOLDERS, "", "ours", ""),
    ],
)
def test_forms_are_those_of_ansible(line: str, origin: Origin, name: str, source: str, version: str) -> None:
    (found,) = read(line)
    assert (found.origin, found.name, found.source, found.version) == (origin, name, source, version)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("name: a.b", "a.b has no version: name one, as version: 1.2.3"),
        ("name: a.b, version: '>=1.0'", "a.b with version '>=1.0' is not pinned: name one"),
        (
            "name: 'https://h/r', type: git",
            "it names no version: name the commit, 40 digits (`git ls-remote https://h/r`",
        ),
        ("name: 'git+https://h/r,v1.0'", "version 'v1.0' can move: name the commit"),
        ("name: 'https://h/a.tar.gz'", "the archive at https://h/a.tar.gz can change: add sha256:"),
        ("name: a.b, version: 1.0.0, sha256: abc", "sha256 has 64 hexadecimal digits"),
        ("name: ../b, type: dir", "'../b' is not below the playbook's folder: give other folders by --collections"),
        ("name: /srv/b", "'/srv/b' is not below the playbook's folder"),
        ("name: a.b, type: hg", "type 'hg' is none of galaxy, git, url, file, dir, subdirs"),
        ("name: a.b/../c, source: x, type: dir", "is no name of a collection: write namespace.name"),
        ("name: {a: b}", "name is no text"),
    ],
)
def test_what_is_not_pinned_is_refused_with_its_place_and_fix(line: str, sentence: str) -> None:
    with pytest.raises(SourceError) as error:
        read("name: x.y, version: 1.0.0", line)
    assert "requirements.yml: collections[1]: " in str(error.value) and sentence in str(error.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("src: geerlingguy.ntp, version: 1.0.0", "is not from Git: write src: its repository, scm: git"),
        (f"src: 'https://h/r', scm: git, version: {COMMIT}, name: ../x", "is no name of a role"),
        ("src: 'https://h/r.tar.gz'", "can change: add sha256:"),
        ("include: other.yml", "include is not followed"),
    ],
)
def test_roles_come_from_git_or_an_archive(line: str, sentence: str) -> None:
    (one,) = read(f"src: 'https://h/o/ansible-role.git', scm: git, version: {COMMIT}, name: chrony", roles=True)
    assert (one.origin, one.name, one.role) == (Origin.GIT, "chrony", True)
    with pytest.raises(SourceError) as error:
        read(line, roles=True)
    assert sentence in str(error.value)


def test_a_file_that_is_none_is_one_sentence() -> None:
    for text in ("collections: a\n", "galaxy: []\n", "a: [", "- " * 300 + "x", "collections:\n" + "- a.b:1\n" * 101):
        with pytest.raises(SourceError, match=r"requirements\.yml"):
            requirements(text.encode(), "requirements.yml")


# -- where they come from --------------------------------------------------------------------------------------------


def manifest(name: str, version: str = "1.0.0", **dependencies: str) -> str:
    namespace, short = name.split(".")
    needs = {one.replace("__", "."): fits for one, fits in dependencies.items()}
    info = {"namespace": namespace, "name": short, "version": version, "dependencies": needs}
    return json.dumps({"collection_info": info})


def archive(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o755 if name.endswith(".sh") else 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return made.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def host(tmp_path: Path, upstream: Upstream) -> Iterator[Server]:
    """A private mirror: a Git repository, an archive and a Galaxy server, for those who show a password."""
    web = tmp_path / "web"
    packed = archive({"MANIFEST.json": manifest("mirrored.tool", "2.1.0"), "roles/r/files/run.sh": "#!/bin/sh\n"})
    answer = {"download_url": "/a/mirrored-tool-2.1.0.tar.gz", "artifact": {"sha256": digest(packed)}}
    files = {
        "a/mirrored-tool-2.1.0.tar.gz": packed,
        "a/role.tar.gz": archive({"role-1/tasks/main.yml": "[]", "role-1/meta/main.yml": "{}"}),
        "api/index.html": json.dumps({"available_versions": {"v3": "v3/"}}).encode(),
        "api/v3/collections/mirrored/tool/versions/2.1.0/index.html": json.dumps(answer).encode(),
    }
    for name, content in files.items():
        (web / name).parent.mkdir(parents=True, exist_ok=True)
        (web / name).write_bytes(content)
    upstream.run("clone", "--bare", "--quiet", str(upstream.path), str(web / "private.git"), inside=False)
    upstream.run("-C", str(web / "private.git"), "update-server-info", inside=False)
    server = Server(web, BASIC)
    yield server
    server.close()


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream(tmp_path / "upstream")
    made.commit(
        {"deep/galaxy.yml": "namespace: private\nname: net\nversion: 3.0.0\n", "deep/roles/r/tasks/main.yml": "[]"}
    )
    return made


class World:
    def __init__(self, folder: Path, *secrets: dict[str, Any]) -> None:
        self.project, self.top = folder / "project", folder / "top"
        self.project.mkdir()
        self.top.mkdir()
        sources = Sources(GitSettings(folder / "mirrors"))
        sources.learn(credential_store(secrets, []))
        self.remote = sources.remote("default")

    def collect(self, *lines: str, roles: bool = False) -> list[str]:
        found = collect(read(*lines, roles=roles), self.top, self.project, INSIDE, self.remote)
        assert found.collections or found.roles
        return sorted(str(one.relative_to(self.top)) for one in self.top.rglob("*") if not one.is_dir())


def secret(url: str) -> dict[str, Any]:
    labels = {"argocd.argoproj.io/secret-type": "repo-creds"}
    data = {"url": url, "username": "bot", "password": CANARY}
    coded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"metadata": {"name": "mirror", "labels": labels}, "data": coded}


def test_a_private_repository_a_mirror_and_an_archive_give_their_files(
    tmp_path: Path, host: Server, upstream: Upstream
) -> None:
    commit = upstream.run("rev-parse", "HEAD").strip()
    world = World(tmp_path, secret(host.url))
    files = world.collect(
        f"name: private.net, type: git, source: '{host.url}/private.git#/deep', version: {commit}",
        f"name: mirrored.tool, version: 2.1.0, source: '{host.url}'",
    )
    assert files == [
        "ansible_collections/mirrored/tool/MANIFEST.json",
        "ansible_collections/mirrored/tool/roles/r/files/run.sh",
        "ansible_collections/private/net/galaxy.yml",
        "ansible_collections/private/net/roles/r/tasks/main.yml",
    ]
    assert (world.top / files[1]).stat().st_mode & 0o111 and not (world.top / files[0]).stat().st_mode & 0o111
    packed = digest((tmp_path / "web/a/role.tar.gz").read_bytes())
    world.top = tmp_path / "roles"
    world.top.mkdir()
    assert world.collect(f"src: '{host.url}/a/role.tar.gz', name: r, sha256: {packed}", roles=True) == [
        "roles/r/meta/main.yml",
        "roles/r/tasks/main.yml",
    ]


def test_without_its_password_a_private_mirror_is_one_sentence(tmp_path: Path, host: Server) -> None:
    with pytest.raises(SourceError, match="401 Unauthorized") as error:
        World(tmp_path).collect(f"name: mirrored.tool, version: 2.1.0, source: '{host.url}'")
    assert CANARY not in str(error.value)


def test_folders_of_the_playbook_are_linked_where_the_play_sees_them(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("b", "c"):
        (world.project / "ours" / name).mkdir(parents=True)
        (world.project / "ours" / name / "galaxy.yml").write_text(f"namespace: a\nname: {name}\nversion: 1.0.0\n")
    world.collect("source: ours, type: subdirs")
    assert [str((world.top / "ansible_collections/a" / one).readlink()) for one in "bc"] == [
        "/project/ours/b",
        "/project/ours/c",
    ]


@pytest.mark.parametrize(
    ("files", "line", "sentence"),
    [
        ({"MANIFEST.json": manifest("a.b")}, "name: a.c, source: x.tgz, type: file", "it holds 'a.b', not a.c"),
        ({"MANIFEST.json": manifest("a.b")}, "name: ./x.tgz, version: 2.0.0", "it holds a.b 1.0.0, 2.0.0 was pinned"),
        ({"MANIFEST.json": manifest("a.b")}, f"name: ./x.tgz, sha256: {'a' * 64}", "the archive's sha256 is "),
        ({"README": ""}, "name: ./x.tgz", "x.tgz has no readable MANIFEST.json or galaxy.yml; give the folder of one"),
        ({"galaxy.yml": "namespace: ..\nname: x\n"}, "name: ./x.tgz", "it holds '...x', not a collection"),
        ({"../out": ""}, "name: ./x.tgz", "the name '../out' leads out of the archive"),
        (
            {"MANIFEST.json": manifest("a.b", c__d=">=1.0.0,<2.0.0")},
            "name: ./x.tgz",
            "a.b needs c.d >=1.0.0,<2.0.0, which is not named; add it with its version",
        ),
        ({}, "name: ./x.tgz, type: dir", "has no readable MANIFEST.json"),
        ({}, "name: ./gone.tgz", "there is no gone.tgz in the playbook's folder"),
        ({}, "name: link", "there is no link in the playbook's folder"),
    ],
)
def test_what_is_not_what_was_pinned_is_refused(
    tmp_path: Path, files: dict[str, str], line: str, sentence: str
) -> None:
    world = World(tmp_path)
    if files:
        (world.project / "x.tgz").write_bytes(archive(files))
    else:
        (world.project / "x.tgz").mkdir()
    (world.project / "link").symlink_to("/etc")
    with pytest.raises(SourceError) as error:
        world.collect(line)
    assert sentence in str(error.value)


def test_versions_that_do_not_fit_each_other_are_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.project / "x.tgz").write_bytes(archive({"MANIFEST.json": manifest("a.b", c__d=">=2.0.0")}))
    (world.project / "y.tgz").write_bytes(archive({"MANIFEST.json": manifest("c.d", "1.5.0")}))
    with pytest.raises(
        SourceError, match=r"a\.b needs c\.d >=2\.0\.0, and requirements\.yml: collections\[1\] has 1\.5\.0"
    ):
        world.collect("name: ./x.tgz", "name: ./y.tgz")

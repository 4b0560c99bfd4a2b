"""Charts and artifacts from repositories and registries: what is fetched, what is believed, who sees credentials."""

from __future__ import annotations

import base64
import importlib.util
import io
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.charthttp import ChartRepository, OciRegistry
from tests.sources.conftest import Upstream

from syncline.assembly.sources.reading import GitSourceReader
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.helm.charts import archive_url, chart_versions, choose_version, index_url
from syncline.sources.remote.credentials import credential_store
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.sourcing import SourceRules

helm = pytest.importorskip("helm_python", reason="pip install 'syncline[helm]'")
assert importlib.util.find_spec("helm_python")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod")
TEMPLATE = """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Chart.Name }}"}
data: {version: "{{ .Chart.Version }}", color: "{{ .Values.color }}"}
"""
CANARY = "c4n4ry-p4ssw0rd"


def chart(folder: Path, name: str, version: str, more: str = "", **files: str) -> Path:
    """A chart as people write it, in ``folder/name``."""
    place = folder / name
    (place / "templates").mkdir(parents=True, exist_ok=True)
    (place / "Chart.yaml").write_text(f"apiVersion: v2\nname: {name}\nversion: {version}\n{more}")
    (place / "values.yaml").write_text("color: blue\n")
    (place / "templates" / "map.yaml").write_text(TEMPLATE)
    for path, text in files.items():
        (place / path).write_text(text)
    return place


def published(folder: Path, scratch: Path, name: str, *versions: str) -> None:
    """Packed by Helm itself, with the index that Helm writes."""
    folder.mkdir(exist_ok=True)
    for version in versions:
        helm.package(chart(scratch, name, version), destination=folder)
    helm.repo_index_generate(folder)


@pytest.fixture
def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "cache", allow_local=True)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[ChartRepository]:
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0")
    published(tmp_path / "repo", tmp_path / "scratch", "other", "0.1.0")
    served = ChartRepository(tmp_path / "repo")
    yield served
    served.close()


@pytest.fixture
def registry() -> Iterator[OciRegistry]:
    served = OciRegistry()
    yield served
    served.close()


def secret(secret_name: str, /, **data: str) -> Obj:
    return {
        "metadata": {"name": secret_name, "labels": {"argocd.argoproj.io/secret-type": "repository"}},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def read(reader: GitSourceReader, source: Obj, revision: str = "", context: RenderContext = CONTEXT) -> Any:
    return reader.read((source,), (revision or str(source.get("targetRevision") or ""),), NOW, context)


def source(url: str, wanted: str, chart: str = "demo", **helm: Any) -> Obj:
    return {"repoURL": url, "chart": chart, "targetRevision": wanted, "helm": helm}


# -- chart repositories ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "version"),
    [
        ("1.1.0", "1.1.0"),
        ("1.x", "1.1.0"),
        (">=1.0.0 <2.0.0", "1.1.0"),
        ("*", "2.0.0"),
        (">=1.1.0-0 <2.0.0", "1.2.0-rc.1"),
    ],
)
def test_a_version_or_the_highest_of_a_range_is_rendered(
    reader: GitSourceReader, repository: ChartRepository, wanted: str, version: str
) -> None:
    found = read(reader, source(repository.url, wanted, valuesObject={"color": "red"}))
    assert (found.error, found.revisions, found.source_types) == ("", (version,), ("Helm",))
    assert found.objects[0]["data"] == {"version": version, "color": "red"}


def test_an_exact_version_is_fetched_once_and_then_needs_no_network(
    reader: GitSourceReader, repository: ChartRepository, tmp_path: Path
) -> None:
    read(reader, source(repository.url, "1.1.0"))
    assert repository.asked() == ["/index.yaml", "/demo-1.1.0.tgz"]
    again = GitSourceReader(tmp_path / "cache", allow_local=True)
    repository.close()
    assert read(again, source(repository.url, "1.1.0")).objects[0]["data"]["version"] == "1.1.0"


def test_a_range_asks_only_whether_the_index_changed(
    reader: GitSourceReader, repository: ChartRepository, tmp_path: Path
) -> None:
    read(reader, source(repository.url, "1.x"))
    repository.asked()
    read(reader, source(repository.url, "1.x"))
    assert [(path, code) for path, _, code in repository.observed] == [("/index.yaml", 304)]
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.9.0")
    assert read(reader, source(repository.url, "1.x")).revisions == ("1.9.0",)


@pytest.mark.parametrize(
    ("wanted", "chart", "words"),
    [
        ("9.x", "demo", "version matching constraint '9.x' not found in 4 versions"),
        ("9.9.9", "demo", "version matching constraint '9.9.9' not found"),
        ("latest", "demo", "'latest' is neither a version that it has nor a range"),
        ("1.x", "nothing", "chart 'nothing' not found in index"),
        ("1.x", "../demo", "is no name of a chart"),
        ("", "demo", "spec.source.targetRevision is required if the manifest source is a helm chart"),
    ],
)
def test_5_what_the_repository_has_not_is_one_sentence(
    reader: GitSourceReader, repository: ChartRepository, wanted: str, chart: str, words: str
) -> None:
    assert words in read(reader, source(repository.url, wanted, chart)).error


def test_an_archive_that_is_not_what_the_index_says_is_refused(
    reader: GitSourceReader, repository: ChartRepository
) -> None:
    (repository.folder / "demo-1.1.0.tgz").write_bytes((repository.folder / "demo-1.0.0.tgz").read_bytes())
    assert "the archive's digest is" in read(reader, source(repository.url, "1.1.0")).error
    assert read(reader, source(repository.url, "1.0.0")).error == ""


def test_credentials_go_to_the_repository_and_to_no_other_host(reader: GitSourceReader, tmp_path: Path) -> None:
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.0.0")
    elsewhere = ChartRepository(tmp_path / "repo")
    private = ChartRepository(tmp_path / "private", f"me:{CANARY}")
    private.folder.mkdir()
    helm.repo_index_generate(tmp_path / "repo", base_url=elsewhere.url)
    (tmp_path / "repo" / "index.yaml").rename(private.folder / "index.yaml")
    assert "401 Unauthorized" in read(reader, source(private.url, "1.0.0")).error
    given = secret("s", url=private.url, type="helm", username="me", password=CANARY)
    reader.learn(credential_store([given], []))
    assert read(reader, source(private.url, "1.0.0")).error == ""
    assert [one[1] for one in elsewhere.observed] == [""], "the archive lies at another host"
    other = GitSourceReader(tmp_path / "other", allow_local=True)
    other.learn(credential_store([given], []))
    elsewhere.observed.clear()
    read(other, source(private.url, "1.0.0", passCredentials=True))
    assert [one[1].partition(" ")[0] for one in elsewhere.observed] == ["Basic"], "unless passCredentials says so"
    for served in (private, elsewhere):
        served.close()


def test_credentials_do_not_follow_a_redirect(reader: GitSourceReader, tmp_path: Path) -> None:
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.0.0")
    elsewhere = ChartRepository(tmp_path / "repo")
    private = ChartRepository(tmp_path / "repo", f"me:{CANARY}", redirect=elsewhere.url)
    reader.learn(credential_store([secret("s", url=private.url, type="helm", username="me", password=CANARY)], []))
    found = read(reader, source(private.url, "1.0.0", passCredentials=True))
    assert (found.error, [one[1] for one in elsewhere.observed]) == ("", [""])
    for served in (private, elsewhere):
        served.close()


def test_a_password_is_in_no_message(reader: GitSourceReader, tmp_path: Path) -> None:
    given = secret("s", url="http://127.0.0.1:9", type="helm", username="me", password=CANARY, project="default")
    reader.learn(credential_store([given], []))
    error = read(reader, source("http://127.0.0.1:9", "1.0.0")).error
    assert "127.0.0.1:9" in error
    assert CANARY not in error
    assert CANARY not in read(reader, source(f"http://me:{CANARY}@127.0.0.1:9", "1.0.0")).error


INDEX = b"""apiVersion: v1
entries:
  "a-b":
  - {version: 9.0.0, urls: [x]}
  a:
  - version: 1.0.0
    description: |
      a:
      - version: 8.0.0
    urls:
    - a-1.0.0.tgz
    digest: 00ff
  - version: "1.10"
    urls: [https://other.example.com/a-1.10.tgz]
  # z:
  b: []
generated: now
"""


def test_only_the_lines_of_the_chart_are_read() -> None:
    found = chart_versions(INDEX, "a", "r")
    assert [(one.version, one.urls, one.digest) for one in found] == [
        ("1.0.0", ("a-1.0.0.tgz",), "00ff"),
        ("1.10", ("https://other.example.com/a-1.10.tgz",), ""),
    ]
    assert [one.version for one in chart_versions(INDEX, "a-b", "r")] == ["9.0.0"]
    assert chart_versions(INDEX, "b", "r") == ()
    for absent in ("z", "version", "generated", "description"):
        with pytest.raises(SourceError, match=f"chart '{absent}' not found in index"):
            chart_versions(INDEX, absent, "r")
    assert chart_versions(b'{"entries": {"a": [{"version": "1"}]}}', "a", "r")[0].version == "1"
    broken = b"entries:\n  a:\n  - version: [\n"
    with pytest.raises(SourceError, match="error decoding index"):
        chart_versions(broken, "a", "r")


def test_addresses_are_made_as_helm_makes_them() -> None:
    assert index_url("https://h/x/?t=1") == "https://h/x/index.yaml?t=1"
    assert archive_url("https://h/x", "a.tgz") == "https://h/x/a.tgz"
    assert archive_url("https://h/x?t=1", "charts/a.tgz") == "https://h/x/charts/a.tgz?t=1"
    assert archive_url("https://h/x", "https://o/a.tgz") == "https://o/a.tgz"
    assert choose_version("v1.0", ["0.9.0", "1.0.0"], "l", "f") == "1.0.0"


# -- registries -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("basic", [False, True])
@pytest.mark.parametrize("private", [False, True])
def test_a_chart_that_helm_pushed_is_rendered(
    reader: GitSourceReader, tmp_path: Path, basic: bool, private: bool
) -> None:
    registry = OciRegistry(f"me:{CANARY}" if private else "", basic=basic)
    with helm.RegistryClient(plain_http=True, credentials_file=tmp_path / "login") as client:
        if private:
            client.login(registry.host, "me", CANARY, plain_http=True)
        for version in ("1.0.0", "1.1.0", "1.2.0+build.1", "2.0.0"):
            packed = helm.package(chart(tmp_path / "scratch", "demo", version), destination=tmp_path)
            client.push(packed, f"oci://{registry.host}/team", plain_http=True)
    credentials = {"username": "me", "password": CANARY} if private else {}
    for number, url in enumerate((f"{registry.host}/team", f"oci://{registry.host}/team")):
        given = secret("s", url=url, type="helm", enableOCI="true", insecureOCIForceHttp="true", **credentials)
        reader.learn(credential_store([given], []))
        found = read(reader, source(url, "1.x"))
        assert (found.error, found.revisions) == ("", ("1.2.0+build.1",)), number
        assert read(reader, source(url, "1.1.0")).objects[0]["data"]["version"] == "1.1.0"
    registry.close()


def test_a_registry_that_wants_credentials_says_so_without_them(reader: GitSourceReader) -> None:
    registry = OciRegistry(f"me:{CANARY}")
    given = secret(
        "s", url=f"oci://{registry.host}/team", type="oci", insecureOCIForceHttp="true", username="me", password="no"
    )
    reader.learn(credential_store([given], []))
    error = read(reader, source(f"oci://{registry.host}/team", "1.0.0")).error
    assert "no token from" in error
    assert "401 Unauthorized" in error
    registry.close()


def packed(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def plain(reader: GitSourceReader, registry: OciRegistry) -> str:
    url = f"oci://{registry.host}/team/app"
    reader.learn(credential_store([secret("s", url=url, type="oci", insecureOCIForceHttp="true")], []))
    return url


def test_an_artifact_is_a_folder_of_manifests(reader: GitSourceReader, registry: OciRegistry) -> None:
    url = plain(reader, registry)
    first = registry.artifact("team/app", "1.0.0", (LAYER, packed({"a.yaml": MAP % "a", "sub/b.yaml": MAP % "b"})))
    second = registry.artifact("team/app", "1.4.0", (LAYER, packed({"a.yaml": MAP % "new"})))
    registry.tags["team/app"]["latest"] = second
    for wanted, path, digest, name in [
        ("1.0.0", ".", first, "a"),
        ("1.0.0", "sub", first, "b"),
        (first, ".", first, "a"),
        ("1.x", ".", second, "new"),
        ("", ".", second, "new"),
    ]:
        found = read(reader, {"repoURL": url, "path": path, "targetRevision": wanted})
        assert (found.error, found.revisions) == ("", (digest,))
        assert [obj["metadata"]["name"] for obj in found.objects] == [name]
    assert "app path does not exist" in read(reader, {"repoURL": url, "path": "no", "targetRevision": first}).error
    assert (
        "cannot get digest for revision 3.0.0"
        in read(reader, {"repoURL": url, "path": ".", "targetRevision": "3.0.0"}).error
    )


def test_a_digest_that_is_here_needs_no_network(reader: GitSourceReader, registry: OciRegistry) -> None:
    url = plain(reader, registry)
    digest = registry.artifact("team/app", "1.0.0", (LAYER, packed({"a.yaml": MAP % "a"})))
    read(reader, {"repoURL": url, "path": ".", "targetRevision": digest})
    registry.close()
    assert read(reader, {"repoURL": url, "path": ".", "targetRevision": digest}).error == ""


def test_a_chart_as_an_artifact_is_a_chart(reader: GitSourceReader, registry: OciRegistry, tmp_path: Path) -> None:
    packed_chart = helm.package(chart(tmp_path, "demo", "1.0.0"), destination=tmp_path)
    helm.push(packed_chart, f"oci://{registry.host}/team", plain_http=True)
    url = f"oci://{registry.host}/team/demo"
    reader.learn(credential_store([secret("s", url=url, type="oci", insecureOCIForceHttp="true")], []))
    found = read(reader, {"repoURL": url, "path": ".", "targetRevision": "1.0.0"})
    assert (found.error, found.source_types) == ("", ("Helm",))
    assert found.revisions[0].startswith("sha256:")


def test_content_that_is_not_what_its_digest_says_is_refused(reader: GitSourceReader, registry: OciRegistry) -> None:
    url = plain(reader, registry)
    digest = registry.artifact("team/app", "1.0.0", (LAYER, packed({"a.yaml": MAP % "a"})))
    registry.damage = set(registry.blobs)
    assert "the content of sha256:" in read(reader, {"repoURL": url, "path": ".", "targetRevision": "1.0.0"}).error
    kind, content = registry.manifests["team/app", digest]
    registry.manifests["team/app", digest] = (kind, content + b" ")
    assert "the content of sha256:" in read(reader, {"repoURL": url, "path": ".", "targetRevision": "1.0.0"}).error


def test_an_artifact_has_one_content_layer(reader: GitSourceReader, registry: OciRegistry) -> None:
    url = plain(reader, registry)
    layer = (LAYER, packed({"a.yaml": MAP % "a"}))
    registry.artifact("team/app", "two", layer, (LAYER, packed({"b.yaml": MAP % "b"})))
    registry.artifact("team/app", "many", *[("text/plain", bytes([n])) for n in range(11)])
    registry.artifact("team/app", "attested", layer, ("application/vnd.in-toto+json", b"{}"))
    errors = [
        read(reader, {"repoURL": url, "path": ".", "targetRevision": tag}).error for tag in ("two", "many", "attested")
    ]
    assert "expected only a single oci content layer, got 2" in errors[0]
    assert "expected no more than 10 oci layers, got 11" in errors[1]
    assert errors[2] == ""


@pytest.mark.parametrize(
    "url",
    ["oci://", "oci://host", "oci://host/UPPER", "oci://ho st/x", "oci://host/x:1", "oci://host/../x", "oci://-/x?y"],
)
def test_an_address_of_no_registry_is_refused(reader: GitSourceReader, url: str) -> None:
    assert "is not an address of a registry" in read(reader, {"repoURL": url, "path": ".", "targetRevision": "1"}).error


# -- dependencies ---------------------------------------------------------------------------------------------------

NEEDS = "dependencies:\n- name: demo\n  version: {version}\n  repository: {url}\n  alias: inner\n"


def in_git(upstream: Upstream, version: str, url: str, more: str = "") -> Obj:
    chart(upstream.path, "app", "0.1.0", NEEDS.format(version=version, url=url) + more)
    upstream.commit({})
    return {"repoURL": str(upstream.path), "path": "app", "targetRevision": "main"}


def versions(found: Any) -> dict[str, str]:
    assert found.error == ""
    return {obj["metadata"]["name"]: obj["data"]["version"] for obj in found.objects}


def test_dependencies_are_fetched_as_helm_dependency_build_does(
    reader: GitSourceReader, repository: ChartRepository, upstream: Upstream
) -> None:
    found = read(reader, in_git(upstream, "1.x", repository.url))
    assert versions(found) == {"app": "0.1.0", "inner": "1.1.0"}
    repository.asked()
    upstream.commit({"README.md": "another commit"})
    assert versions(read(reader, in_git(upstream, "1.x", repository.url))) == {"app": "0.1.0", "inner": "1.1.0"}
    assert repository.observed == [], "one chart renders one way"


def test_a_lock_file_decides_and_must_fit_the_chart(
    reader: GitSourceReader, repository: ChartRepository, upstream: Upstream, tmp_path: Path
) -> None:
    source = in_git(upstream, '">=1.0.0 <2.0.0"', repository.url, "annotations: {a: b}\n")
    helm.dependency_update(upstream.path / "app")
    lock = (upstream.path / "app" / "Chart.lock").read_text()
    for packed in (upstream.path / "app" / "charts").iterdir():
        packed.unlink()
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.9.0")
    upstream.commit({})
    assert "version: 1.1.0" in lock
    assert versions(read(reader, source))["inner"] == "1.1.0", "the lock that Helm wrote is honoured"
    upstream.commit({"app/Chart.yaml": (upstream.path / "app/Chart.yaml").read_text().replace("<2", "<3")})
    assert "the lock file (Chart.lock) is out of sync with the dependencies file" in read(reader, source).error


def test_dependencies_come_from_registries_and_from_declared_names(
    reader: GitSourceReader, repository: ChartRepository, registry: OciRegistry, upstream: Upstream, tmp_path: Path
) -> None:
    packed_chart = helm.package(chart(tmp_path, "demo", "3.1.0"), destination=tmp_path)
    helm.push(packed_chart, f"oci://{registry.host}/team", plain_http=True)
    reader.learn(
        credential_store(
            [
                secret(
                    "a", url=f"oci://{registry.host}/team", type="helm", enableOCI="true", insecureOCIForceHttp="true"
                ),
                secret("b", url=repository.url, type="helm", name="stable"),
            ],
            [],
        )
    )
    assert versions(read(reader, in_git(upstream, "3.x", f"oci://{registry.host}/team")))["inner"] == "3.1.0"
    assert versions(read(reader, in_git(upstream, "1.x", '"@stable"')))["inner"] == "1.1.0"
    assert versions(read(reader, in_git(upstream, "2.x", "alias:stable")))["inner"] == "2.0.0"
    assert "no repository is declared under the name 'no'" in read(reader, in_git(upstream, "2.x", '"@no"')).error


def test_repositories_that_the_project_does_not_list_get_no_credentials(
    reader: GitSourceReader, upstream: Upstream, tmp_path: Path
) -> None:
    published(tmp_path / "repo", tmp_path / "scratch", "demo", "1.0.0")
    private = ChartRepository(tmp_path / "repo", f"me:{CANARY}")
    reader.learn(credential_store([secret("s", url=private.url, type="helm", username="me", password=CANARY)], []))
    source = in_git(upstream, "1.x", private.url)
    reader.learn_rules(SourceRules(permits=lambda _project, url: url != private.url))
    assert f"helm repos {private.url} are not permitted in project 'default'" in read(reader, source).error
    assert {given for _, given, _ in private.observed} == {""}
    reader.learn_rules(SourceRules())
    assert versions(read(reader, source))["inner"] == "1.0.0"
    private.close()


def test_values_files_may_be_addresses_of_allowed_schemes(
    reader: GitSourceReader, repository: ChartRepository, upstream: Upstream
) -> None:
    (repository.folder / "v.yaml").write_text("color: green\n")
    chart(upstream.path, "app", "0.1.0")
    upstream.commit({})
    source = {"repoURL": str(upstream.path), "path": "app", "helm": {"valueFiles": [f"{repository.url}/v.yaml"]}}
    assert read(reader, source).objects[0]["data"]["color"] == "green"
    (repository.folder / "v.yaml").write_text("color: red\n")
    assert read(reader, source).objects[0]["data"]["color"] == "red", "what it holds is part of what is read"
    by_parameter = {"fileParameters": [{"name": "color", "path": f"{repository.url}/v.yaml"}]}
    assert "color: red" in read(reader, {**source, "helm": by_parameter}).objects[0]["data"]["color"]
    missing = {"valueFiles": [f"{repository.url}/no.yaml"]}
    assert "404 Not Found" in read(reader, {**source, "helm": missing}).error
    reader.learn_rules(SourceRules(schemes=("https",)))
    assert "the URL scheme 'http' is not allowed" in read(reader, source).error


def test_values_of_a_chart_come_from_another_source(
    reader: GitSourceReader, repository: ChartRepository, upstream: Upstream
) -> None:
    sha = upstream.commit({"env/prod.yaml": "color: gold\n"})
    sources = (
        source(repository.url, "1.0.0", valueFiles=["$values/env/prod.yaml"]),
        {"repoURL": str(upstream.path), "targetRevision": "main", "ref": "values"},
    )
    found = reader.read(sources, ("1.0.0", "main"), NOW, CONTEXT)
    assert (found.error, found.revisions) == ("", ("1.0.0", sha))
    assert found.objects[0]["data"]["color"] == "gold"
    lent = ({**sources[0], "ref": "values", "path": ""}, {"repoURL": str(upstream.path), "path": "env"})
    assert "has a `chart` field" in reader.read(lent, ("1.0.0", "main"), NOW, CONTEXT).error

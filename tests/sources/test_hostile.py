"""Repositories that mean harm: each form costs its own Application one clear sentence, and nobody else anything."""

from __future__ import annotations

import gzip
import importlib.util
import io
import os
import subprocess
import tarfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import IDENTITY, Upstream

from syncline.assembly.sources.reading import GitSourceReader
from syncline.sources.archive import ArchiveLimits, unpack
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm import rendering as helm
from syncline.sources.rendering import jsonnet
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod")
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
CHART = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
KIND = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n"
WITHIN_S, LONGEST_S = 30.0, 300.0
"""No form takes longer: of our own processor time, since workers have limits of theirs, and however busy the machine
is."""

needs_helm = pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="syncline[helm]")


class Place:
    """One repository for all forms, since what harms one folder must not harm another."""

    def __init__(self, folder: Path) -> None:
        self.upstream = Upstream(folder / "upstream")
        self.reader = GitSourceReader(folder / "cache", allow_local=True)
        (folder / "secret.yaml").write_text(MAP % "stolen")

    def holds(self, folder: str, files: dict[str, str], links: dict[str, str] | None = None) -> None:
        for name, text in files.items():
            place = self.upstream.path / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        for name, target in (links or {}).items():
            place = self.upstream.path / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            os.symlink(target, place)

    def error(self, path: str, **block: Any) -> str:
        self.upstream.commit({})
        source = {"repoURL": str(self.upstream.path), "path": path, "targetRevision": "main", **block}
        begun, used = time.monotonic(), time.process_time()
        found = self.reader.read((source,), ("main",), NOW, CONTEXT)
        assert time.process_time() - used < WITHIN_S and time.monotonic() - begun < LONGEST_S
        assert "stolen" not in repr(found)
        assert len(found.error) < 1500
        return found.error


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    made.holds("good", {"a.yaml": MAP % "good"})
    yield made
    assert made.error("good") == "", "others are unaffected"


# -- ways out of the repository -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["..", "../x", "a/../../x", "/etc", "//etc", "./../x", "a/..", "..\\x", "C:\\x", "a\x00b", "a\nb", "x" * 5000],
)
def test_paths_of_applications_stay_inside(place: Place, path: str) -> None:
    assert "leaves the repository" in place.error(path).replace("\\n", "")


@pytest.mark.parametrize(
    ("link", "folder_link"),
    [
        ("/etc/passwd", False),
        ("../../secret.yaml", False),
        ("../../../../../../../../etc/passwd", False),
        ("a.yaml", False),
        ("../.git/config", False),
        ("../../", True),
        ("/", True),
    ],
)
def test_symbolic_links_stay_inside(place: Place, link: str, folder_link: bool) -> None:
    name = "sub" if folder_link else "a.yaml"
    place.holds("app", {"z.yaml": MAP % "z"}, {name: link})
    block = {"directory": {"recurse": True}}
    error = place.error("app", **block)
    if folder_link or ".git" in link:
        assert error == "", "what is no file of the commit is no manifest"
    else:
        assert "symbolic link" in error
    place.holds("kustomized", {"kustomization.yaml": f"resources: [{name}]\n"}, {name: link})
    assert place.error("kustomized") != ""


def test_folders_behind_links_stay_inside(place: Place) -> None:
    place.holds("", {}, {"way": "..", "loop": "loop", "far": "/etc"})
    for path in ("way", "loop", "far", "way/cache"):
        assert place.error(path).startswith(f"{path}: app path does not exist")


@needs_helm
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"valueFiles": ["../../secret.yaml"]}, "resolved to outside repository root"),
        ({"valueFiles": ["/../secret.yaml"]}, "resolved to outside repository root"),
        ({"valueFiles": ["a/../../../secret.yaml"]}, "resolved to outside repository root"),
        ({"valueFiles": ["file:///etc/passwd"]}, "the URL scheme 'file' is not allowed"),
        ({"valueFiles": ["$x/../secret.yaml"]}, "is not one of the available sources"),
        ({"valueFiles": ["../../*.yaml"]}, "resolved to outside repository root"),
        ({"valueFiles": ["/link.yaml"]}, "the symbolic link leaves the repository"),
        ({"fileParameters": [{"name": "a", "path": "../../secret.yaml"}]}, "resolved to outside repository root"),
        ({"releaseName": "../../x"}, "release name '../../x' is invalid"),
        ({"values": BOMB}, "alias"),
    ],
)
def test_values_of_a_chart_stay_inside(place: Place, block: dict[str, Any], words: str) -> None:
    place.holds("chart", {"Chart.yaml": CHART, "templates/a.yaml": MAP % "a"})
    place.holds("", {}, {"link.yaml": "../secret.yaml"})
    assert words in place.error("chart", helm=block)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"kustomization.yaml": "resources: [../../secret.yaml]\n"}, "no such file"),
        ({"kustomization.yaml": "resources: [/etc/passwd]\n"}, "/etc/passwd"),
        ({"kustomization.yaml": "resources: [../good/a.yaml]\n"}, "security; file 'good/a.yaml' is not in or below"),
        ({"kustomization.yaml": "resources: [../../]\n"}, "no such file"),
        ({"kustomization.yaml": "configMapGenerator: [{name: a, files: [../../secret.yaml]}]\n"}, "no such file"),
        ({"kustomization.yaml": "patches: [{path: ../../secret.yaml}]\n"}, "no such file"),
        ({"kustomization.yaml": "resources: [https://127.0.0.1:9/x.yaml]\n"}, "Connection refused"),
        ({"kustomization.yaml": "resources: ['git::ext::sh']\n"}, "repository"),
        ({"kustomization.yaml": "helmCharts: [{name: a}]\n"}, "helm"),
        ({"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "kind: Exec\n"}, "g.yaml"),
        ({"kustomization.yaml": "resources: [.]\n"}, "cycle"),
        ({"kustomization.yaml": BOMB}, "alias"),
    ],
)
def test_kustomizations_stay_inside(place: Place, files: dict[str, str], words: str) -> None:
    place.holds("app", files)
    assert words in place.error("app")


@pytest.mark.skipif(importlib.util.find_spec("rjsonnet") is None, reason="syncline[jsonnet]")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("importstr '../../secret.yaml'", "no such file in the repository"),
        ("importstr '/etc/passwd'", "no such file in the repository"),
        ("importbin '../app/../../secret.yaml'", "no such file in the repository"),
        ("local f(x) = f(x + 1); f(0)", "stack"),
        ("std.foldl(function(a, b) a + a, std.range(1, 40), 'x')", "main.jsonnet"),
    ],
)
def test_programs_stay_inside_and_end(place: Place, program: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = RenderWorkers(WorkerLimits(wall_s=20, cpu_s=10, memory_bytes=600 * 1024**2))
    monkeypatch.setattr(jsonnet, "shared_workers", lambda: workers)
    place.holds("app", {"main.jsonnet": program})
    error = place.error("app")
    workers.close()
    assert words in error or "render worker died" in error or "was ended" in error, error


def test_libraries_of_programs_stay_inside(place: Place) -> None:
    place.holds("app", {"main.jsonnet": "{}"})
    assert "a library lies outside the repository" in place.error("app", directory={"jsonnet": {"libs": ["../x"]}})


@needs_helm
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("{name: d, version: 1.0.0, repository: 'file://../../x'}", "resolved to outside repository root"),
        ("{name: d, version: 1.0.0, repository: 'file:///etc'}", "chart"),
        ("{name: ../../d, version: 1.0.0, repository: 'file://../good'}", "chart"),
        ("{name: d, version: 1.0.0, repository: 'ftp://h/x'}", "uses ftp://; http, https and ssh are allowed"),
        ("{name: ../d, version: 1.0.0, repository: 'http://127.0.0.1:9'}", "chart"),
    ],
)
def test_dependencies_stay_inside(place: Place, more: str, words: str) -> None:
    place.holds("chart", {"Chart.yaml": f"{CHART}dependencies: [{more}]\n", "templates/a.yaml": MAP % "a"})
    assert words in place.error("chart")


def test_the_name_of_an_application_names_no_other_file(place: Place) -> None:
    place.holds("app", {"a.yaml": MAP % "a"})
    context = RenderContext("x/../../good/a", "default", "prod")
    place.upstream.commit({})
    source = {"repoURL": str(place.upstream.path), "path": "app"}
    assert place.reader.read((source,), ("main",), NOW, context).error == ""


@pytest.mark.parametrize(
    "revision", ["--upload-pack=touch /tmp/x", "-x", "a\nb", "refs/heads/../../x", "main:../..", "@{-1}", "x" * 2000]
)
def test_revisions_are_names_and_nothing_else(place: Place, revision: str) -> None:
    place.upstream.commit({})
    source = {"repoURL": str(place.upstream.path), "path": "good"}
    assert "unable to resolve" in place.reader.read((source,), (revision,), NOW, CONTEXT).error


# -- too much -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.yaml", f"{KIND}data:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines()), "alias"),
        ("a.yaml", KIND + "data: " + "[" * 20_000, "Failed to unmarshal"),
        ("a.yaml", KIND + "data: " + "{a: " * 20_000, "Failed to unmarshal"),
        ("a.json", '{"apiVersion":"v1","kind":"ConfigMap","metadata":' + '{"a":' * 20_000, "Failed to unmarshal"),
        ("a.yaml", KIND + "a: &a {b: *a}\n", "Failed to unmarshal"),
        ("a.yaml", KIND + "<<: [*x]\n", "Failed to unmarshal"),
        (".argocd-source.yaml", BOMB, "alias"),
    ],
)
def test_texts_that_grow_when_they_are_read(place: Place, name: str, text: str, words: str) -> None:
    place.holds("app", {name: text, "b.yaml": MAP % "b"})
    assert words in place.error("app")


@pytest.mark.parametrize(
    ("files", "block", "words"),
    [
        ({"big.yaml": ""}, {}, "exceeded max combined manifest file size"),
        ({"big.jsonnet": ""}, {}, "20000000 bytes"),
        ({"kustomization.yaml": "resources: [big.yaml]\n", "big.yaml": ""}, {}, "50000000 bytes"),
        ({"Chart.yaml": CHART, "big.txt": ""}, {}, "100000000 bytes"),
        ({".argocd-source.yaml": "", "a.yaml": MAP % "a"}, {}, "is larger than"),
    ],
)
def test_files_of_more_than_a_hundred_megabytes(
    place: Place, files: dict[str, str], block: dict[str, Any], words: str
) -> None:
    place.holds("app", files)
    for name, text in files.items():
        if not text:
            with (place.upstream.path / "app" / name).open("wb") as stream:
                stream.truncate(101_000_000)
    assert words in place.error("app", **block)


def test_a_hundred_thousand_files(place: Place) -> None:
    place.upstream.commit({})

    def git(*arguments: str, given: str = "") -> str:
        asked = ["git", *IDENTITY, "-C", str(place.upstream.path), *arguments]
        return subprocess.run(asked, input=given, capture_output=True, check=True, text=True).stdout.strip()

    blob = git("hash-object", "-w", "--stdin", given=MAP % "a")
    folder = git("mktree", given="".join(f"100644 blob {blob}\t{n:04}.yaml\n" for n in range(1000)))
    whole = git("mktree", given="".join(f"040000 tree {folder}\t{n:03}\n" for n in range(100)))
    git("update-ref", "refs/heads/many", git("commit-tree", whole, "-m", "many"))
    for path, block in ((".", {"directory": {"recurse": True}}), ("007", {})):
        source = {"repoURL": str(place.upstream.path), "path": path, **block}
        found = place.reader.read((source,), ("many",), NOW, CONTEXT)
        if path == ".":
            assert "100000 manifest files, at most 10000 are read" in found.error
        else:
            assert (found.error, len(found.objects)) == ("", 1000)


@needs_helm
@pytest.mark.parametrize(
    "template",
    [
        "{{ range $i := until 1000000000 }}x{{ end }}",
        '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}',
        '{{ $x := "x" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}{{ $x }}',
        "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
        '{{ tpl (repeat 100000 "{{ tpl . . }}") . }}',
    ],
)
def test_templates_that_never_end(place: Place, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = RenderWorkers(WorkerLimits(wall_s=12, cpu_s=5))
    monkeypatch.setattr(helm, "shared_workers", lambda: workers)
    place.holds("chart", {"Chart.yaml": CHART, "templates/a.yaml": template})
    assert place.error("chart").startswith("chart: ")
    workers.close()


# -- archives -------------------------------------------------------------------------------------------------------


def archive(*members: tuple[str, bytes | str, bytes], **more: Any) -> bytes:
    """Entries of (name, content or target of a link, type)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        for name, content, kind in members:
            one = tarfile.TarInfo(name)
            one.type = kind
            if isinstance(content, str):
                one.linkname = content
            else:
                one.size = len(content)
            for key, value in more.items():
                setattr(one, key, value)
            made.addfile(one, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


FILE, LINK, HARD, FIFO, DEVICE = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE
SMALL = ArchiveLimits(files=20, bytes=100_000, links=5)


def bomb() -> bytes:
    return archive(("c/a", bytes(5_000_000), FILE))


def long_header() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT) as made:
        one = tarfile.TarInfo("c/a")
        one.pax_headers = {"comment": "x" * 5_000_000}
        made.addfile(one)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (archive(("../a", b"x", FILE)), Problem.REFUSED),
        (archive(("c/../../a", b"x", FILE)), Problem.REFUSED),
        (archive(("/etc/a", b"x", FILE)), Problem.REFUSED),
        (archive(("c\\..\\a", b"x", FILE)), Problem.REFUSED),
        (archive(("C:/a", b"x", FILE)), Problem.REFUSED),
        (archive(("c/" + "a" * 5000, b"x", FILE)), Problem.REFUSED),
        (archive(("c/a", "/etc/passwd", LINK)), Problem.REFUSED),
        (archive(("c/a", "../../x", LINK)), Problem.REFUSED),
        (archive(("c/a", "../../etc/passwd", HARD)), Problem.REFUSED),
        (archive(("c/a", b"", FIFO)), Problem.REFUSED),
        (archive(("c/a", b"", DEVICE)), Problem.REFUSED),
        (bomb(), Problem.TOO_LARGE),
        (long_header(), Problem.TOO_LARGE),
        (archive(*((f"c/{n}", b"", FILE) for n in range(21))), Problem.TOO_LARGE),
        (archive(*((f"c/{n}", "x", LINK) for n in range(6))), Problem.TOO_LARGE),
        (archive(("c/f", bytes(60_000), FILE), ("c/g", "f", LINK)), Problem.TOO_LARGE),
        (gzip.compress(b"no archive at all" * 100), Problem.INVALID),
        (archive(("c/a", b"x" * 5000, FILE))[:-200], Problem.INVALID),
        (b"\x1f\x8b broken", Problem.INVALID),
    ],
    ids=lambda value: value.name if isinstance(value, Problem) else "archive",  # an archive says when it was made
)
def test_archives_stay_inside_and_small(content: bytes, problem: Problem) -> None:
    with pytest.raises(SourceError) as caught:
        unpack(content, "chart c 1.0.0", SMALL)
    assert caught.value.problem is problem
    assert str(caught.value).startswith("chart c 1.0.0: ")


def test_links_inside_an_archive_stand_for_what_they_end_at() -> None:
    content = archive(
        ("c/a", b"1", FILE),
        ("c/b", "a", LINK),
        ("c/d/e", "../b", LINK),
        ("c/folder", "d", LINK),
        ("c/gone", "nowhere", LINK),
        ("c/round", "round", LINK),
        ("c/hard", "c/a", HARD),
    )
    assert unpack(content, "x") == dict.fromkeys(("c/a", "c/b", "c/d/e", "c/folder/e", "c/hard"), b"1")

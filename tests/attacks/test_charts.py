"""Charts that look for what is not theirs: files of this machine, a cluster, the network, a program, endless time."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.attacks.crafted import CHART, MAP, packed
from tests.sources.charthttp import ChartRepository

from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm import rendering as helm
from syncline.sources.helm.charts import chart_versions
from syncline.sources.remote.artifacts import Artifacts
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.revision import Version, parse_constraint
from syncline.sources.tree import MemoryTree
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits

needs_helm = pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="syncline[helm]")
BASE = {"Chart.yaml": CHART.encode(), "templates/a.yaml": (MAP % "a").encode(), "values.yaml": b"a: 1\n"}


def rendered(files: dict[str, bytes]) -> str:
    """What comes out, as text. Raises SourceError."""
    from syncline.sources.helm.rendering import chart_files, parse_helm, render_chart
    from syncline.sources.lookup import Lookup

    lookup = Lookup(MemoryTree(files))
    options = parse_helm({"releaseName": "x", "namespace": "n"})
    options = options.completed(RenderContext("x", "p", "n"), {})
    return json.dumps([one.obj for one in render_chart(lookup, "", chart_files(lookup, "", options), options).objects])


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[RenderWorkers]:
    made = RenderWorkers(WorkerLimits(workers=1, wall_s=60, cpu_s=1))
    monkeypatch.setattr(helm, "shared_workers", lambda: made)
    yield made
    made.close()


# -- schemas name files ---------------------------------------------------------------------------------------------


def schemas(secret: Path) -> dict[str, dict[str, bytes]]:
    way = b'"$ref": "file://%s"' % str(secret).encode()
    chart = {"d/Chart.yaml": CHART.replace("name: c", "name: d").encode(), "d/values.yaml": b"a: 1\n"}
    inner = packed({**chart, "d/values.schema.json": b"{%s}" % way})
    return {
        "a reference": {"values.schema.json": b"{%s}" % way},
        "a reference beside bytes that are no text": {"values.schema.json": b'{"title": "\xff", %s}' % way},
        "a reference beside a long number": {"values.schema.json": b'{"default": %s, %s}' % (b"1" * 9000, way)},
        "a reference below deep lists": {
            "values.schema.json": b'{"default": %s%s, %s}' % (b"[" * 3000, b"]" * 3000, way)
        },
        "a reference by escapes": {"values.schema.json": b"{%s}" % way.replace(b"$ref", b"\\u0024ref")},
        "a reference by case": {"values.schema.json": b"{%s}" % way.replace(b"file:", b"FiLe:")},
        "a reference by a base": {
            "values.schema.json": b'{"$id": "file://%s/", "$ref": "secret.json"}' % str(secret.parent).encode()
        },
        "a dynamic reference": {"values.schema.json": b"{%s}" % way.replace(b"$ref", b"$dynamicRef")},
        "a schema of schemas": {"values.schema.json": b"{%s}" % way.replace(b"$ref", b"$schema")},
        "a subchart": {
            "charts/d/Chart.yaml": chart["d/Chart.yaml"],
            "charts/d/values.yaml": b"a: 1\n",
            "charts/d/values.schema.json": b"{%s}" % way,
        },
        "a packed subchart": {"charts/d-1.0.0.tgz": inner},
        "a packed subchart of another name": {"charts/x.tgz": inner},
        "a subchart packed in a packed one": {
            "charts/e-1.0.0.tgz": packed(
                {"e/Chart.yaml": CHART.replace("name: c", "name: e").encode(), "e/charts/d-1.0.0.tgz": inner}
            )
        },
        "a subchart packed in a folder of one": {
            "charts/e/Chart.yaml": CHART.replace("name: c", "name: e").encode(),
            "charts/e/charts/d.tgz": inner,
        },
    }


@needs_helm
@pytest.mark.parametrize("way", schemas(Path("/")))
def test_no_schema_reads_a_file_of_this_machine(way: str, tmp_path: Path) -> None:
    """The words of a schema that fails tell what another file holds."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"properties": {"a": {"const": "stolen"}}}')
    with pytest.raises(SourceError) as caught:
        rendered({**BASE, **schemas(secret)[way]})
    assert "stolen" not in str(caught.value)
    assert "names a file outside the repository" in str(caught.value) or "nested too deep" in str(caught.value)


@needs_helm
def test_a_chart_that_is_packed_in_itself_too_often_is_refused() -> None:
    chart = packed({"d/Chart.yaml": CHART.encode()})
    for _ in range(10):
        chart = packed({"d/Chart.yaml": CHART.encode(), "d/charts/d.tgz": chart})
    with pytest.raises(SourceError, match="packed more than 8 deep"):
        rendered({**BASE, "charts/d.tgz": chart})


@needs_helm
def test_a_packed_bomb_is_refused_before_helm_sees_it() -> None:
    bomb = packed({"d/Chart.yaml": CHART.encode(), "d/big": bytes(101_000_000)})
    with pytest.raises(SourceError, match=r"charts/d\.tgz: the archive"):
        rendered({**BASE, "charts/d.tgz": bomb})


# -- functions ------------------------------------------------------------------------------------------------------

NOTHING = {
    "a lookup": 'lookup "v1" "Secret" "" ""',
    "a lookup of one": '(lookup "v1" "Secret" "kube-system" "x").data',
    "a host": 'getHostByName "localhost"',
    "a file above": '.Files.Get "../../../../../etc/passwd"',
    "a file of the root": '.Files.Get "/etc/passwd"',
    "files of the root": '(.Files.Glob "/etc/*").AsSecrets | fromYaml',
    "files above": '(.Files.Glob "../**").AsConfig | fromYaml',
    "lines of a file above": '.Files.Lines "../../etc/passwd"',
}


@needs_helm
@pytest.mark.parametrize("function", NOTHING)
def test_a_function_that_looks_beyond_the_chart_finds_nothing(function: str) -> None:
    template = f"{MAP % 'b'}data:\n  found: {{{{ {NOTHING[function]} | toJson | quote }}}}\n"
    _, found = json.loads(rendered({**BASE, "templates/b.yaml": template.encode()}))
    assert not json.loads(found["data"]["found"])


REFUSED = {
    "the environment": ('{{ env "PATH" }}', 'function "env" not defined'),
    "the environment in a text": ('{{ expandenv "$PATH" }}', 'function "expandenv" not defined'),
    "a list of a billion": ("{{ until 1000000000 | len }}", "render worker died"),
    "a text of gigabytes": ('{{ repeat 2000000000 "x" | len }}', "render worker died"),
    "authorities without end": ('{{ range until 10000 }}{{ $x := genCA "x" 1 }}{{ end }}', "processor time"),
}


@needs_helm
@pytest.mark.parametrize("function", REFUSED)
def test_a_function_that_takes_what_is_not_its_own_costs_its_render_alone(
    function: str, workers: RenderWorkers
) -> None:
    template, words = REFUSED[function]
    with pytest.raises(SourceError, match=words) as caught:
        rendered({**BASE, "templates/b.yaml": template.encode()})
    assert len(str(caught.value)) < 1500
    assert "'a'" in rendered(BASE).replace('"', "'"), "the next chart is rendered"


def test_a_release_is_never_an_option_of_a_helm_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kustomize takes release names as they stand, and ``--post-renderer`` starts a program."""
    from syncline.sources.helm.task import render_with_binary

    program = tmp_path / "helm"
    program.write_text('#!/bin/sh\nfor one; do echo "- $one"; done\n')
    program.chmod(0o755)
    (tmp_path / "chart").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    payload = {"scratch": str(tmp_path), "chart": str(tmp_path / "chart"), "values": "{}", "skip_crds": False}
    payload |= {"name": "--post-renderer=sh", "namespace": "--debug", "kube_version": "", "api_versions": []}
    ((_, text),) = render_with_binary(payload)
    given = [line.removeprefix("- ") for line in text.splitlines()]
    assert given[given.index("--") :] == ["--", "--post-renderer=sh", str(tmp_path / "chart")]
    assert given[given.index("--debug") - 1] == "--namespace", "the value of an option"


# -- what repositories of charts answer -------------------------------------------------------------------------------

INDEXES = {
    "JSON with lists of other charts": (
        b'{"entries": {"b": [%s1], "a": [{"version": "1.0.0"}]}}' % (b"[]," * 3 * 10**6),
        1,
    ),
    "JSON of much about the chart": (b'{"entries": {"a": [%s1]}}' % (b"[]," * 7 * 10**6), "has more than"),
    "JSON nested deep": (b'{"entries": {"a": %s}}' % (b"[" * 10**6), "error decoding index"),
    "JSON that lists no charts": (b'{"entries": [1]}', "error decoding index"),
    "YAML that lists no charts": (b"entries: [1]\n", "it is no mapping"),
    "YAML nested deep": (b"entries: " + b"[" * 10**5, "error decoding index"),
    "versions that are no texts": (b"entries:\n  a:\n  - {version: [1], urls: {a: b}}\n", 1),
    "a version of many digits": (b"entries:\n  a:\n  - version: 1.%s.0\n" % (b"9" * 9000), 1),
}


@pytest.mark.parametrize("index", INDEXES)
def test_an_index_costs_what_is_asked_of_it(index: str) -> None:
    content, found = INDEXES[index]
    if isinstance(found, int):
        assert len(chart_versions(content, "a", "repository")) == found
        return
    with pytest.raises(SourceError, match=found):
        chart_versions(content, "a", "repository")


def test_a_version_of_any_length_is_compared_or_is_none() -> None:
    long = "9" * 9000
    assert Version.parse(f"1.{long}.0") is None and parse_constraint(f">={long}") is None
    assert parse_constraint("1" * 10**6) is None, "at once: its terms were looked for from every digit on"
    given = ["1.0.0-9", f"1.0.0-{long}", "1.0.0-rc.9", "1.0.0-rc.10", "1.0.0"]
    found = [one for one in map(Version.parse, given) if one is not None]
    assert all(one < other for one, other in pairwise(found))
    assert Version.parse("٣.0.0") is None, "digits of other scripts are none of a version"


@pytest.mark.parametrize("body", [b"\x1f\x8b\x08\x00rubbish", b"entries: {}", b""])
def test_an_answer_that_is_not_packed_as_it_says_is_an_error_of_the_repository(body: bytes, tmp_path: Path) -> None:
    from tests.sources import charthttp

    class Lying(charthttp._Quiet):
        def do_GET(self) -> None:
            self.answer(200, body, content_encoding="gzip")

    served = charthttp._Served(Lying)
    try:
        with pytest.raises(SourceError) as caught:
            Artifacts(tmp_path).chart(served.url, "a", "1.0.0")
        assert caught.value.problem in (Problem.UNREACHABLE, Problem.REVISION_UNKNOWN, Problem.INVALID)
    finally:
        served.close()


NAMES = ["../c", "/etc/c", "a/../c", "c\n", "..", "", "a/.."]


@pytest.mark.parametrize("name", NAMES)
def test_a_chart_has_no_name_that_leaves_its_repository(name: str, tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    served = ChartRepository(tmp_path / "served")
    try:
        with pytest.raises(SourceError, match="no name of a chart"):
            Artifacts(tmp_path / "store").chart(served.url, name, "1.0.0")
        assert served.observed == []
    finally:
        served.close()


@needs_helm
def test_an_index_of_twenty_megabytes_and_a_provenance_file_cost_one_render(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "c-1.0.0.tgz").write_bytes(packed({f"c/{name}": body for name, body in BASE.items()}))
    (folder / "c-1.0.0.tgz.prov").write_bytes(b"-----BEGIN PGP SIGNED MESSAGE-----\n" * 100)
    filler = b"".join(b"  n%06d:\n  - {version: 1.0.0, urls: [%s]}\n" % (n, b"u" * 900) for n in range(20_000))
    index = b"apiVersion: v1\nentries:\n" + filler + b"  c:\n  - version: 1.0.0\n    urls: [c-1.0.0.tgz]\n"
    (folder / "index.yaml").write_bytes(index)
    served = ChartRepository(folder)
    try:
        version, tree = Artifacts(tmp_path / "store").chart(served.url, "c", "1.x")
    finally:
        served.close()
    assert version == "1.0.0" and [entry.path for entry in tree.entries] == sorted(BASE)
    assert [path for path, _, _ in served.observed] == ["/index.yaml", "/c-1.0.0.tgz"]

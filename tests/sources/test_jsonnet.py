"""Jsonnet in directory sources: what it may read, what it gives, and how it fails."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from syncline.sources.errors import Problem, SourceError
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import Rendered, parse_source, render_tree
from syncline.sources.tree import MemoryTree

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("rjsonnet") is None, reason="rjsonnet is not installed: pip install 'syncline[jsonnet]'"
)

MAP = "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'a'}, data: %s}"
CONTEXT = RenderContext("shop", "default", "prod")


def rendered(
    files: dict[str, str], path: str = "app", jsonnet: dict[str, Any] | None = None, cache: RenderCache | None = None
) -> Rendered:
    tree = MemoryTree({name: text.encode() for name, text in files.items()}).folder(path)
    spec = parse_source({"repoURL": "u", "path": path, "directory": {"jsonnet": jsonnet or {}}}, CONTEXT)
    return render_tree(spec, tree, "f" * 40, cache=cache)


def data(found: Rendered) -> Any:
    (obj,) = found.manifests
    return obj["data"]


def test_a_program_gives_an_object_or_a_list_between_plain_manifests() -> None:
    files = {
        "app/a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: first}\n",
        "app/b.jsonnet": f"[{MAP % '{}'}, {MAP % '{}'}]",
        "app/c.json": '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"last"}}',
    }
    assert [obj["kind"] for obj in rendered(files).manifests] == ["Secret", "ConfigMap", "ConfigMap", "Secret"]


def test_imports_are_found_beside_the_file_then_in_libraries_last_first_then_in_the_folder() -> None:
    files = {
        "app/main.jsonnet": MAP % "{x: import 'x.libsonnet', y: importstr 'y.txt', z: import 'lib/z.libsonnet'}",
        "app/y.txt": "folder",
        "app/lib/z.libsonnet": "import 'x.libsonnet'",
        "app/lib/x.libsonnet": "'beside z'",
        "one/x.libsonnet": "'one'",
        "two/x.libsonnet": "'two'",
    }
    found = rendered(files, jsonnet={"libs": ["one", "two"]})
    assert data(found) == {"x": "two", "y": "folder", "z": "beside z"}


def test_a_relative_import_may_name_any_file_of_the_repository_and_none_outside() -> None:
    files = {"app/main.jsonnet": MAP % "import '../shared/d.libsonnet'", "shared/d.libsonnet": "{k: 'v'}"}
    assert data(rendered(files)) == {"k": "v"}
    for name in ("../../etc/passwd", "/etc/passwd", "missing.libsonnet"):
        with pytest.raises(SourceError, match=r"app/main\.jsonnet.*couldn't open import"):
            rendered({"app/main.jsonnet": MAP % f"importstr '{name}'"})


def test_variables_are_text_or_code_and_know_the_application() -> None:
    jsonnet = {
        "extVars": [{"name": "app", "value": "$ARGOCD_APP_NAME"}],
        "tlas": [{"name": "count", "value": "1 + 1", "code": True}],
    }
    program = "function(count) " + MAP % "{app: std.extVar('app'), count: count}"
    assert data(rendered({"app/main.jsonnet": program}, jsonnet=jsonnet)) == {"app": "shop", "count": 2}


def test_whole_numbers_stay_whole() -> None:
    assert data(rendered({"app/a.jsonnet": MAP % "{n: 1.0, f: 1.5, big: 1000000}"})) == {
        "n": 1,
        "f": 1.5,
        "big": 1000000,
    }


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("{a:", r"app/a\.jsonnet: syntax error.*at app/a\.jsonnet:1:4"),
        ("error 'no'", r"app/a\.jsonnet: runtime error: no at app/a\.jsonnet:1:1"),
        ("local f(x) = f(x + 1); f(0)", "stack overflow"),
        ("{kind: 'ConfigMap'}", "Object 'ApiVersion' is missing"),
        ("'text'", "a manifest is a mapping"),
    ],
)
def test_a_program_that_fails_is_named_with_its_place(program: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        rendered({"app/a.jsonnet": program})
    assert "\n" not in str(caught.value)


def test_a_marked_program_is_passed_over() -> None:
    files = {"app/a.jsonnet": "// +argocd:skip-file-rendering\nerror 'never'", "app/b.jsonnet": MAP % "{}"}
    assert len(rendered(files).manifests) == 1


def test_a_library_outside_the_repository_is_refused() -> None:
    with pytest.raises(SourceError, match="outside the repository") as caught:
        rendered({"app/a.jsonnet": MAP % "{}"}, jsonnet={"libs": ["../.."]})
    assert caught.value.problem is Problem.REFUSED


def test_the_cache_knows_what_is_imported_and_nothing_else() -> None:
    cache = RenderCache()
    files = {"app/a.jsonnet": MAP % "import '../lib/x.libsonnet'", "lib/x.libsonnet": "{k: 1}", "other/y": "1"}
    assert not rendered(files, cache=cache).cached
    assert rendered(files | {"other/y": "2", "lib/z.libsonnet": "{}"}, cache=cache).cached
    assert not rendered(files | {"lib/x.libsonnet": "{k: 2}"}, cache=cache).cached
    assert not rendered(files, jsonnet={"extVars": [{"name": "a", "value": "b"}]}, cache=cache).cached

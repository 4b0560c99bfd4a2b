"""Hostile sets, repositories and answers: an error, never a crash and never without end."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.appset.generating.test_behaviours import (
    GO_TEMPLATE,
    PROJECT,
    TEMPLATE,
    directories,
    elements,
    error,
    files,
    made,
    matrix,
    names,
    rows,
)

from syncline.appset.generation import Generated
from syncline.appset.generators.context import MAX_ROWS
from syncline.appset.generators.generate import generate
from syncline.appset.questions import Answer, DirectoriesQuestion, Facts, GitPaths
from syncline.appset.rendering.kept import Rendered, RenderedApplications
from syncline.kube.objects import Obj, name_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def appset(*generators: Any, go: bool = False, **spec: Any) -> Obj:
    template = GO_TEMPLATE if go else TEMPLATE
    fields = {"goTemplate": go, "generators": [*generators], "template": template, **spec}
    return {"metadata": {"name": "set", "namespace": "argocd", "uid": "u"}, "spec": fields}


@pytest.mark.parametrize(
    "spec",
    [
        None,
        [],
        "x",
        {"generators": {}},
        {"generators": ["x"]},
        {"generators": [{"list": "x"}]},
        {"generators": [{"list": {"elements": {}}}]},
        {"generators": [{"git": {"directories": [3]}}]},
        {"generators": [{"git": {"files": [{"path": 3}]}}]},
        {"generators": [{"clusters": {"selector": {"matchLabels": []}}}]},
        {"generators": [{"clusters": {"selector": {"matchExpressions": 3}}}]},
        {"generators": [{"clusters": {"values": {"a": 3}}}]},
        {"generators": [{"matrix": {"generators": [None, []]}}]},
        {"generators": [{"merge": {"mergeKeys": [3], "generators": [elements(), elements()]}}]},
        {"generators": [{"plugin": {"configMapRef": "x"}}]},
        {"generators": [{"clusterDecisionResource": {"configMapRef": ["x"]}}]},
        {"generators": [elements({"a": "b"})], "template": []},
        {"generators": [elements({"a": "b"})], "template": {"metadata": "x"}},
        {"generators": [elements({"a": "b"})], "template": {"metadata": {"name": 3}}},
        {"generators": [elements({"a": "b"})], "goTemplateOptions": "missingkey=error"},
    ],
)
def test_a_set_of_wrong_types_is_an_error_or_makes_nothing(spec: Any) -> None:
    found = generate({"metadata": {"name": "set"}, "spec": spec}, Facts())
    assert found.made == () and (found.failures or not spec)


def test_rows_are_bounded() -> None:
    wide = elements(*({"a": str(index)} for index in range(400)))
    other = elements(*({"b": str(index)} for index in range(400)))
    assert f"more than {MAX_ROWS} rows" in error(made(matrix(wide, other)))


def test_an_application_that_cannot_be_stored_is_an_error() -> None:
    template = {
        "metadata": {"name": "a", "annotations": {f"k{index}": '{{ repeat 900000 "x" }}' for index in range(2)}}
    }
    found = made(elements({"name": "a"}), go=True, template={**GO_TEMPLATE, **template})
    assert "at most 1500000 can be stored" in error(found)


@pytest.mark.parametrize(
    "text",
    [
        '{{ repeat 100000000 "x" }}',
        "{{ range until 1000000000 }}x{{ end }}",
        '{{ define "t" }}{{ template "t" }}{{ end }}{{ template "t" }}',
    ],
)
def test_a_template_that_would_not_end_is_an_error(text: str) -> None:
    found = made(elements({"name": "a"}), go=True, template={**GO_TEMPLATE, "metadata": {"name": text}})
    assert found.made == () and found.failures[0].reason == "RenderTemplateParamsError"


@pytest.mark.parametrize(
    "text",
    [
        "[" * 5_000,
        "a: " * 5_000,
        "x" * 3_000_000,
        "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9) if n else 'x'}]\n" for n in range(12)),
    ],
)
def test_a_file_that_would_grow_is_an_error(text: str) -> None:
    found = made(files("f"), given={"tree": {"f": text}})
    assert found.made == () and "unable to p" in error(found)


def test_what_cannot_be_read_is_not_absent() -> None:
    unread = Facts(unread={"AppProject/default": "appprojects is forbidden"})
    found = generate(appset(directories("*")), unread)
    assert error(found) == "error getting project default: appprojects is forbidden"


def test_unanswered_questions_are_asked_all_at_once() -> None:
    both = {"merge": {"mergeKeys": ["path"], "generators": [directories("*"), files("*")]}}
    found = generate(appset(both, directories("*", requeueAfterSeconds=20)), Facts(projects=frozenset({"default"})))
    assert found.made == () and found.failures == ()
    assert [type(one).__name__ for one in found.missing] == ["DirectoriesQuestion", "FilesQuestion"]
    assert dict(found.asked)[found.missing[0]] == 20 and found.requeue_s == 20


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (Facts(scm_enabled=False), "scm providers are disabled"),
        (
            Facts(allowed_scm=("https://a", "https://b")),
            'scm provider not allowed: scm provider "https://c" not allowed, must use one of the following: '
            "https://a, https://b",
        ),
    ],
)
def test_hosts_that_the_administrator_does_not_allow_are_not_asked(facts: Facts, text: str) -> None:
    provider = {"github": {"organization": "o", "owner": "o", "repo": "r", "api": "https://c"}}
    for kind, prefix in (("scmProvider", ""), ("pullRequest", "failed to select pull request service provider: ")):
        found = generate(appset({kind: provider}), facts)
        assert found.missing == () and error(found) == prefix + text


def test_a_host_that_was_not_asked_says_why() -> None:
    provider = {"github": {"owner": "o", "repo": "r"}}
    missing = generate(appset({"pullRequest": provider}), Facts()).missing
    facts = Facts(answers={missing[0]: Answer(NOW, error='secrets "t" not found', unasked=True)})
    text = 'failed to select pull request service provider: error fetching Secret token: secrets "t" not found'
    assert error(generate(appset({"pullRequest": provider}), facts)) == text


def test_an_element_without_a_known_generator_is_a_warning() -> None:
    found = made({"lists": {"elements": []}})
    assert found.failures == () and "no generator that Argo CD knows" in found.warnings[0]


# --- what is kept -------------------------------------------------------------------------------------------------


def of_directories(paths: list[str], kept: RenderedApplications, **spec: Any) -> Generated:
    template = {**GO_TEMPLATE, "metadata": {"name": "{{ .path.basename }}"}}
    question = DirectoriesQuestion("r", "HEAD", "default", trusted=True)
    facts = Facts(projects=frozenset({name_of(PROJECT)}), answers={question: Answer(NOW, GitPaths("c", tuple(paths)))})
    return generate(appset(directories("*"), go=True, **{"template": template, **spec}), facts, kept)


def test_only_rows_that_changed_are_rendered() -> None:
    kept = RenderedApplications()
    first = of_directories([f"a{index}" for index in range(100)], kept)
    second = of_directories([*(f"a{index}" for index in range(99)), "new"], kept)
    shared = {id(one.app) for one in first.made} & {id(one.app) for one in second.made}
    assert (len(shared), len(kept)) == (99, 101)
    assert of_directories(["a1", "new"], RenderedApplications()).made == of_directories(["a1", "new"], kept).made


def test_a_changed_template_renders_every_row() -> None:
    kept = RenderedApplications()
    of_directories(["a", "b"], kept)
    of_directories(["a", "b"], kept, templatePatch="metadata:\n  labels: {x: z}\n")
    of_directories(["a", "b"], kept, syncPolicy={"preserveResourcesOnDeletion": True})
    assert len(kept) == 6


def test_what_shows_time_or_chance_is_not_kept() -> None:
    kept = RenderedApplications()
    template = {**GO_TEMPLATE, "metadata": {"name": '{{ .path.basename }}-{{ now | date "2006" }}-{{ randNumeric 3 }}'}}
    found = of_directories(["a"], kept, template=template)
    assert len(kept) == 0 and "is not known here" in error(found)


def test_templates_see_the_moment_and_the_seed_of_the_facts() -> None:
    template = {**GO_TEMPLATE, "metadata": {"name": '{{ now | date "2006" }}-{{ randNumeric 9 }}'}}
    one = appset(elements({"a": "b"}), go=True, template=template)
    facts = Facts(now=NOW, seed="s")
    drawn = [names(generate(one, each))[0] for each in (facts, facts, replace(facts, seed="t"))]
    assert drawn[0] == drawn[1] != drawn[2] and drawn[0].startswith("2026-")


def test_a_template_that_writes_changes_neither_the_row_nor_another_one() -> None:
    template = {**GO_TEMPLATE, "metadata": {"name": '{{ $x := set . "name" "b" }}{{ .name }}'}}
    found = made(elements({"name": "a"}), go=True, template=template)
    assert (names(found), rows(found)) == (["b"], [{"name": "a"}])


def test_what_is_kept_is_bounded_in_number_and_bytes() -> None:
    kept = RenderedApplications(count=3, size=100)
    for index in range(5):
        kept.put(bytes([index]), Rendered({}, 10))
    assert [kept.get(bytes([index])) is not None for index in range(5)] == [False, False, True, True, True]
    kept.put(b"large", Rendered({}, 95))
    kept.put(b"too large", Rendered({}, 101))
    assert len(kept) == 1 and kept.get(b"too large") is None

"""Which sets an event of a Git host concerns."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.appset.pushes import sets_of_pull_requests, sets_of_pushes
from syncline.appset.questions import FilesQuestion
from syncline.argo.webhooks import Push
from syncline.kube.objects import Obj

URL = "https://git.example/team/fleet.git"
MAIN = Push(("https://git.example/team/fleet",), "refs/heads/main", touched_head=True)
SIDE = Push(("git@git.example:team/fleet.git",), "refs/heads/side", touched_head=False)


def a_set(name: str, *generators: Any) -> Obj:
    metadata = {"name": name, "namespace": "argocd"}
    spec = {"generators": list(generators)}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": metadata, "spec": spec}


def git(revision: str = "main", url: str = URL) -> Obj:
    return {"git": {"repoURL": url, "revision": revision, "directories": [{"path": "apps/*"}]}}


def touched(generator: Any, *pushes: Push, asked: tuple[FilesQuestion, ...] = ()) -> bool:
    return bool(sets_of_pushes([a_set("one", generator)], pushes, asked))


@pytest.mark.parametrize(
    ("generator", "by_main", "by_side"),
    [
        (git("main"), True, False),
        (git("HEAD"), True, False),
        (git(""), True, False),
        (git("refs/heads/side"), False, True),
        (git("side", "ssh://git@git.example/team/fleet"), False, True),
        (git("main", "https://git.example/team/other.git"), False, False),
        ({"list": {"elements": []}}, False, False),
        ({"plugin": {"configMapRef": {"name": "p"}}}, True, True),
        ({"matrix": {"generators": [{"clusters": {}}, git("main")]}}, True, False),
        ({"merge": {"generators": [{"matrix": {"generators": [git("side")]}}], "mergeKeys": ["a"]}}, False, True),
    ],
)
def test_b59_a_push_refreshes_sets_that_read_its_revision_whatever_it_changed(
    generator: Any, by_main: bool, by_side: bool
) -> None:
    assert (touched(generator, MAIN), touched(generator, SIDE)) == (by_main, by_side)


def test_a_templated_address_is_judged_by_what_was_really_asked() -> None:
    templated = git("main", "https://git.example/{{repo}}.git")
    known = FilesQuestion(URL, "main", "default", ("*.yaml",))
    assert not touched(templated, MAIN)
    assert touched(templated, MAIN, asked=(known,))
    assert not touched(templated, SIDE, asked=(known,))


@pytest.mark.parametrize("wrong", [None, "text", [], {"git": None}, {"git": "text"}, {"matrix": {"generators": "x"}}])
def test_what_is_no_generator_concerns_nothing(wrong: Any) -> None:
    assert not touched(wrong, MAIN)
    assert (
        sets_of_pushes([{"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {}}], [MAIN]) == ()
    )


def test_pull_requests_are_matched_at_any_depth() -> None:
    pull = {"pullRequest": {"github": {"owner": "o", "repo": "r"}}}
    sets = [a_set("a", {"matrix": {"generators": [{"list": {}}, pull]}}), a_set("b", git())]
    found = sets_of_pull_requests(sets, lambda spec: spec["github"]["repo"] == "r")
    assert [ref.name for ref in found] == ["a"]

"""Renders that use up what they may have are not begun at each look: policy of the rests, and the whole way to them."""

from __future__ import annotations

import importlib.util
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from syncline.base.entropy import Entropy
from syncline.sources.errors import Problem, SourceError
from syncline.sources.kustomize.engine import KustomizeEngine
from syncline.sources.kustomize.loader import Limits
from syncline.sources.remote.rests import FIRST_REST_S, LONGEST_REST_S, SPREAD, TRIES, Rests
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.renderer import (
    DirectoryRenderer,
    KustomizeRenderer,
    RenderContext,
    SourceSpec,
    render_tree,
)
from syncline.sources.tree import MemoryTree
from syncline.sources.workers.pool import RenderWorkers, WorkerLimits
from syncline.sources.workers.read_scope import ReadScope, read_scope

START = datetime(2026, 1, 1, tzinfo=UTC)
SHORTEST = FIRST_REST_S * (1 - SPREAD) - 1
LONGEST = FIRST_REST_S * (1 + SPREAD) + 1
WHERE = ("renders", "team", "app")


class Renders:
    """Work that runs out, until it is told otherwise."""

    def __init__(self) -> None:
        self.rests = Rests(Entropy("test"))
        self.begun = 0
        self.problem: Problem | None = Problem.EXHAUSTED

    def at(self, seconds: float, content: str = "a", *, asked: bool = True) -> str:
        """What is said at a time."""
        here = ReadScope(START + timedelta(seconds=seconds), "team", "r", asked=asked)
        try:
            with read_scope(here), self.rests.guard(WHERE, lambda: content):
                self.begun += 1
                if self.problem is not None:
                    raise SourceError(self.problem, "took too long", field="spec.source.path", fix="split it")
        except SourceError as error:
            return str(error)
        return ""


@pytest.mark.parametrize("asked", [False, True], ids=["a poll", "somebody asks"])
def test_what_ran_out_rests_and_says_the_same_meanwhile(asked: bool) -> None:
    renders = Renders()
    first = renders.at(0)
    assert "took too long (begun at 2026-01-01T00:00:00Z; it rests until 2026-01-01T00:0" in first
    assert first.endswith("split it")
    assert renders.at(SHORTEST, asked=asked) == first and renders.begun == 1
    second = renders.at(LONGEST, asked=asked)
    assert renders.begun == 2 and "rests after 2 times in a row until" in second


def test_rests_grow_to_an_hour_and_differ() -> None:
    renders, now, pauses = Renders(), 0.0, list[float]()
    for _ in range(12):
        begun = renders.begun
        while renders.begun == begun:
            now += 5
            renders.at(now)
        pauses.append(now)
    waited = [later - earlier for earlier, later in pairwise(pauses)]
    assert waited[0] < waited[2] < waited[4] and max(waited) <= LONGEST_REST_S * (1 + SPREAD) + 5
    assert len({round(one / waited[-1], 3) for one in waited[-4:]}) > 1, "jitter"


def test_other_content_is_tried_at_once_but_not_for_ever() -> None:
    renders = Renders()
    for number in range(30):
        renders.at(number, f"commit {number}")
    assert renders.begun == TRIES
    renders.at(TRIES + LONGEST, "commit 31")
    assert renders.begun == TRIES + 1


@pytest.mark.parametrize("outcome", [None, Problem.INVALID, Problem.UNREACHABLE])
def test_what_does_not_run_out_does_not_rest(outcome: Problem | None) -> None:
    renders = Renders()
    renders.problem = outcome
    for second in range(5):
        renders.at(second)
    assert renders.begun == 5


def test_success_ends_the_count() -> None:
    renders = Renders()
    renders.at(0)
    renders.problem = None
    assert renders.at(LONGEST) == ""
    renders.problem = Problem.EXHAUSTED
    assert "in a row" not in renders.at(LONGEST + 1)


def test_only_so_many_are_remembered_and_nothing_without_an_application() -> None:
    rests = Rests(Entropy("test"))
    for number in range(5_000):
        with pytest.raises(SourceError), read_scope(ReadScope(START)), rests.guard((str(number),), lambda: "a"):
            raise SourceError(Problem.EXHAUSTED, "no")
    assert len(rests._rests) < 5_000
    renders = Renders()
    for _ in range(3):
        with pytest.raises(SourceError, match=r"^no$"), renders.rests.guard(WHERE, lambda: "a"):
            raise SourceError(Problem.EXHAUSTED, "no")


# -- the tools -----------------------------------------------------------------------------------------------------

SPEC = SourceSpec("https://example.com/r.git", context=RenderContext(application="app", project="team"))


def many(count: int) -> bytes:
    documents = (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{number}}}\n" for number in range(count))
    return "---\n".join(documents).encode()


def rendered(files: dict[str, bytes], cache: RenderCache, second: float, *tools: object) -> str:
    renderers = (*tools, DirectoryRenderer())
    try:
        with read_scope(ReadScope(START + timedelta(seconds=second), "team", SPEC.repo_url)):
            render_tree(SPEC, MemoryTree(files), "f" * 40, cache=cache, renderers=renderers)  # type: ignore[arg-type]
    except SourceError as error:
        return str(error)
    return ""


def test_a_kustomization_that_computes_for_long_is_ended_and_rests() -> None:
    tool = KustomizeRenderer(KustomizeEngine(Limits(cpu_s=0.05)))
    files = {"kustomization.yaml": b"resources: [a.yaml]\nnamePrefix: x-\n", "a.yaml": many(3000)}
    cache = RenderCache()
    said = rendered(files, cache, 0, tool)
    assert "the build took more than 0.05 seconds of processor time and was ended" in said
    assert rendered(files, cache, SHORTEST, tool) == said, "begun once"
    assert "after 2 times" in rendered(files, cache, LONGEST + 60, tool)
    assert rendered({"kustomization.yaml": b"resources: []\n"}, cache, LONGEST + 61, tool) == ""


@pytest.mark.skipif(importlib.util.find_spec("rjsonnet") is None, reason="rjsonnet is not installed")
def test_jsonnet_that_uses_its_whole_budget_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = RenderWorkers(WorkerLimits(workers=1, wall_s=0.5))
    monkeypatch.setattr("syncline.sources.rendering.jsonnet.shared_workers", lambda: workers)
    files = {"a.jsonnet": b"std.foldl(function(a, b) a + b, std.range(0, 2000000000), 0)"}
    cache = RenderCache()
    try:
        said = rendered(files, cache, 0)
        assert "and was ended" in said and "it rests until" in said
        assert rendered(files, cache, SHORTEST) == said and workers.started == 1
        assert "after 2 times" in rendered(files, cache, LONGEST + 60) and workers.started == 2
    finally:
        workers.close()

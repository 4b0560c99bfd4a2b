"""Small decisions as Argo CD makes them: excluded kinds, the order of deletion, the normal form of a spec."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases, judge

from syncline.argo.excluded import ResourceFilter
from syncline.argo.typed import normalized_spec
from syncline.gitops.application.deletion import deletion_rounds
from syncline.kube.objects import ref_of


@pytest.mark.parametrize("case", cases("resource-filter"), ids=lambda case: case["id"])
def test_the_kinds_that_upstream_excludes_are_not_looked_at(case: dict[str, Any]) -> None:
    given = case["input"]
    found = ResourceFilter.parse(given.get("exclusions") or [], given.get("inclusions") or [])
    got = {"excluded": found.excludes(given["group"], given["kind"], given["cluster"])}
    judge(case, got == case["expect"], got)


@pytest.mark.parametrize("case", cases("delete-order"), ids=lambda case: case["id"])
def test_the_highest_wave_is_deleted_first(case: dict[str, Any]) -> None:
    rounds = [sorted(str(ref_of(obj)) for obj in one) for one in deletion_rounds(case["input"]["objects"])]
    judge(case, rounds == [sorted(one) for one in case["expect"]["rounds"]], rounds)


@pytest.mark.parametrize("case", cases("normalize-spec"), ids=lambda case: case["id"])
def test_a_spec_has_one_normal_form(case: dict[str, Any]) -> None:
    got = normalized_spec(case["input"]["spec"])
    judge(case, got == case["expect"]["spec"], got)

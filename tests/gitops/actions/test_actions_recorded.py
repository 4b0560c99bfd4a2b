"""Resource actions as Argo CD's scripts do them (``resource-action.jsonl``, ``resource-action-discovery.jsonl``)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.gitops.recordings import cases, judge, without_nulls

from syncline.apply.lua import Guarded
from syncline.base.clock import parse_time
from syncline.gitops.resource_actions.available import offered_actions, run_action
from syncline.gitops.resource_actions.model import ActionFailed
from syncline.kube.patching.typedvalues import same_json


def _loose(value: Any) -> Any:
    """Empty maps as empty lists, null as absent."""
    value = without_nulls(value)
    if isinstance(value, dict):
        return {key: _loose(item) for key, item in value.items()} or []
    return [_loose(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", cases("resource-action-discovery"), ids=lambda c: c["id"])
def test_an_object_offers_what_it_offers_upstream(case: dict[str, Any]) -> None:
    got = [offer.to_obj() for offer in offered_actions(case["input"]["object"], {}, Guarded())]
    expect = sorted(case["expect"]["actions"], key=lambda one: one["name"])
    judge(case, sorted(got, key=lambda one: one["name"]) == expect, got)


@pytest.mark.parametrize("case", cases("resource-action"), ids=lambda c: c["id"])
def test_an_action_does_what_it_does_upstream(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    before = deepcopy(given["object"])
    try:
        effects = run_action(
            given["object"], given["action"], given["parameters"], {}, Guarded(), parse_time(given["now"])
        )
    except ActionFailed as error:
        judge(case, str(error) == expect.get("error"), str(error))
        return
    assert given["object"] == before, "the live object is not changed"
    got = [{"operation": str(one.verb), "object": one.obj} for one in effects]
    judge(case, same_json(_loose(got), _loose(expect.get("resources"))), got)

"""Policies and objects that are made to harm: what they may cost, and that values of Secrets stay where they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.fleet.world import Fleet, Member
from tests.patterns.policies.test_evaluating import _post, config
from tests.patterns.policies.world import CONFIGURATION, GROUP, made, namespace

from syncline.kube.objects import Obj
from syncline.patterns.policies.cluster.comparing import MOST_PAIRS, compare
from syncline.patterns.policies.cluster.differing import IN_STATUS, MOST_COMPARED, recorded
from syncline.patterns.policies.cluster.evaluating import MOST_TEMPLATES

SECRET = "hunter two!"
SHOWN = '{{ fromSecret "default" "sealed" "word" | base64dec }}'


def holder(listed: list[Any]) -> Obj:
    return {**made("example.com/v1", "Holder", "one", "default"), "spec": {"listed": listed}}


def test_long_lists_of_maps_are_not_compared_for_ever() -> None:
    wanted, live = ([{"a": number, side: number} for number in range(600)] for side in ("wanted", "live"))
    found = compare(holder(wanted), holder(live), only=False, metadata_only=False)
    assert f"more than {MOST_PAIRS} pairs" in found.error


@pytest.mark.parametrize("most", [300, 20_000])
def test_lists_of_plain_values_are_compared_by_what_they_are(most: int) -> None:
    live = [f"v{number}" for number in range(most)]
    found = compare(holder(["v7", "v3"]), holder(live), only=False, metadata_only=False)
    assert (found.differs, found.error) == (False, "")
    found = compare(holder(["v7", "new", *live]), holder(live), only=False, metadata_only=False)
    assert found.differs and sorted(found.merged["spec"]["listed"]) == sorted(["v7", "new", *live])


def test_a_difference_of_very_long_objects_is_not_made() -> None:
    live, updated = (holder([side] * MOST_COMPARED) for side in ("a", "b"))
    assert recorded(IN_STATUS, live, updated).startswith("# The difference is not recorded: the object has ")


REFUSED: dict[str, Obj] = {
    "a label that the API refuses": {**config("a"), "metadata": {**config("a")["metadata"], "labels": {"a": SHOWN}}},
    "a function that fails": config("b", v='{{ fail (fromSecret "default" "sealed" "word" | base64dec) }}'),
    "a text that is not YAML": config("c", v='{{ printf "*%s" (fromSecret "default" "sealed" "word") | toLiteral }}'),
    "an update that the API refuses": {
        **config("there"),
        "metadata": {**config("there")["metadata"], "labels": {"a": SHOWN}},
    },
}


@pytest.fixture(scope="module")
def cluster() -> Member:
    fleet = Fleet("c1")
    fleet.time.advance(2)
    member = fleet.members["c1"]
    _post(member, namespace("c1"))
    _post(member, config("there"))
    _post(member, {**made("v1", "Secret", "sealed", "default"), "stringData": {"word": SECRET}})
    policies = {f"refused-{at}": [one] for at, one in enumerate(REFUSED.values())}
    policies["many"] = [config("there")] * (MOST_TEMPLATES + 1)
    for name, wanted in policies.items():
        listed = [{"complianceType": "musthave", "objectDefinition": one} for one in wanted]
        spec = {"remediationAction": "enforce", "object-templates": listed}
        _post(member, {**made(f"{GROUP}/v1", "ConfigurationPolicy", name, "c1"), "spec": spec})
    fleet.time.advance(30)
    return member


@pytest.mark.parametrize("what", REFUSED)
def test_no_message_shows_what_comes_from_a_secret(cluster: Member, what: str) -> None:
    found = cluster.get(f"{CONFIGURATION.format('c1')}/refused-{list(REFUSED).index(what)}")["status"]
    assert found["compliant"] == "NonCompliant"
    text = json.dumps(found)
    assert "hunter" not in text and "aHVudGVy" not in text


def test_a_policy_with_too_many_templates_is_violated_and_says_so(cluster: Member) -> None:
    found = cluster.get(f"{CONFIGURATION.format('c1')}/many")["status"]
    said = f"the policy has {MOST_TEMPLATES + 1} object templates; at most {MOST_TEMPLATES} are evaluated: split it"
    assert (found["compliant"], found["history"][0]["message"]) == ("NonCompliant", f"NonCompliant; violation - {said}")

"""Copies of policies are spelled as upstream's propagator spells them (docs/policies.md)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.patterns.policies.world import binding, policy, template

from syncline.base.clock import VirtualClock
from syncline.kube.objects import Obj
from syncline.patterns.policies.hub.binding import Bound, decide
from syncline.patterns.policies.hub.replicating import replicated
from syncline.patterns.policies.templates.resolving import Rules, Unresolved, resolve
from syncline.patterns.policies.templates.text import HUB

V1 = "policy.open-cluster-management.io/v1"


def bound(*bindings: Obj) -> Bound:
    return Bound(bindings, {}, {"all": ("c1", "c2"), "some": ("c2",)}, frozenset({"all", "some"}))


@pytest.mark.parametrize(
    ("own", "given", "made"),
    [(None, "Enforce", "Enforce"), ("inform", "enforce", "enforce"), ("Enforce", "enforce", "Enforce")],
)
def test_the_action_of_a_binding_is_copied_as_it_is_written(own: str | None, given: str, made: str) -> None:
    root = policy("p", template("p"), **({"remediationAction": own} if own else {}))
    some = binding("b", "p", placement="some", subFilter="restricted", bindingOverrides={"remediationAction": given})
    chosen = decide(root, bound(binding("a", "p"), some)).clusters
    assert chosen == {"c1": "", "c2": given}
    assert replicated(root, "c2", chosen["c2"], {})["spec"]["remediationAction"] == made


def test_what_says_nothing_is_left_out_of_a_copy() -> None:
    depends = {"apiVersion": V1, "compliance": "Compliant", "name": "x", "namespace": ""}
    entry = {"objectDefinition": template("p"), "ignorePending": False, "extraDependencies": []}
    root = policy("p", entry, dependencies=[{**depends, "kind": kind} for kind in ("ConfigurationPolicy", "Policy")])
    spec = replicated(root, "c1", "", {})["spec"]
    assert list(spec["policy-templates"][0]) == ["objectDefinition"]
    assert [(one["name"], "namespace" in one) for one in spec["dependencies"]] == [("x", False), ("policies.x", False)]


def hub(text: str, **metadata: Any) -> str:
    context = {"PolicyMetadata": {"labels": {}, "annotations": {}, **metadata}, "ManagedClusterName": "c1"}
    return str(resolve({"v": text}, context, Rules(HUB, skipping=False), {}, VirtualClock().now()).value["v"])


def test_what_a_policy_does_not_have_is_empty_in_its_hub_templates() -> None:
    assert hub('{{hub index .PolicyMetadata.annotations "note" | default "none" hub}}') == "none"


def test_errors_of_hub_templates_name_their_data_and_lines_as_upstream() -> None:
    with pytest.raises(Unresolved, match="field Nothing in type propagator\\.templateCtx"):
        hub("{{hub .Nothing hub}}")
    with pytest.raises(Unresolved, match="JSON: yaml: mapping values are not allowed in this context"):
        hub('{{hub "a: b" | toLiteral hub}}')

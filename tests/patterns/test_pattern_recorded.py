"""What the patterns operator was recorded to make of a Pattern and of its settings: ours is the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recorded import Case, cases_of

from syncline.patterns.installing.application import parent_application
from syncline.patterns.installing.argocd import argo_instance
from syncline.patterns.installing.checkout import Checkout
from syncline.patterns.installing.config import OperatorConfig, Places
from syncline.patterns.installing.pattern import Pattern
from syncline.patterns.installing.subscription import gitops_subscription

CASES = [case for case in cases_of("patterns", "operators") if case["kind"] == "operator"]


def made(case: Case) -> Any:
    given = case["input"]
    known = {
        "operator_namespace": given.get("operatorNamespace"),
        "argo_namespace": given.get("argoNamespace"),
        "argo_name": given.get("argoName"),
    }
    places = Places(**{key: value for key, value in known.items() if value})
    config = OperatorConfig(given.get("config") or {})
    if case["family"] == "operator-application":
        checkout = Checkout.of({path: text.encode() for path, text in (given.get("files") or {}).items()})
        return parent_application(Pattern(given["pattern"]), checkout, places)
    if case["family"] == "operator-subscription":
        disable = bool(given.get("disableDefaultInstance"))
        return gitops_subscription(config, places, disable_default=disable)
    return argo_instance(config, places)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_operator_wants_what_was_recorded(case: Case) -> None:
    found, wanted = made(case), case["expect"]
    typed = {key: found[key] for key in ("apiVersion", "kind")}  # Go's objects of known types say it by their type
    assert found == {**typed, **wanted}

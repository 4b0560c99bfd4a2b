"""Waits and rewritten messages as Argo CD has them (``conformance/gitops/{retry,augment-message}.jsonl``)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.recordings import cases

from syncline.gitops.sync.messages import augment_message
from syncline.gitops.sync.retry import RetryError, retry_after
from syncline.kube.objects import ObjectRef, ResourceInfo


@pytest.mark.parametrize("case", cases("retry"), ids=lambda c: c["id"])
def test_the_wait_before_the_next_attempt_grows_as_upstream_has_it(case: dict[str, Any]) -> None:
    given, expect = case["input"], case["expect"]
    if "error" in expect:
        with pytest.raises(RetryError) as caught:
            retry_after(given["retry"], given["retryCount"])
        assert str(caught.value) == expect["error"]
    else:
        assert retry_after(given["retry"], given["retryCount"]).total_seconds() == expect["waitSeconds"]


@pytest.mark.parametrize("case", cases("augment-message"), ids=lambda c: c["id"])
def test_a_message_is_rewritten_to_say_what_to_do(case: dict[str, Any]) -> None:
    given = case["input"]
    ref = ObjectRef(given["group"], given["kind"], given["namespace"], given["name"])
    kinds = [ResourceInfo(k["group"], k["version"], k["kind"], k["plural"], k["namespaced"]) for k in given["kinds"]]
    assert augment_message(given["message"], ref, given["version"], kinds) == case["expect"]["message"]


def test_a_kind_that_an_installed_group_does_not_have_names_its_definition_too() -> None:
    ref = ObjectRef("shop.example.org", "Basket", "shop", "main")
    kinds = [ResourceInfo("shop.example.org", "v1", "Order", "orders", namespaced=True)]
    told = augment_message('Basket.shop.example.org "" not found', ref, "v1", kinds)
    assert told == (
        "The Kubernetes API could not find shop.example.org/Basket for requested resource shop/main. "
        'Make sure the "Basket" CRD is installed on the destination cluster.'
    )
    other = 'Order.shop.example.org "o" not found'
    assert augment_message(other, ref, "v1", kinds) == other


def test_an_annotation_that_is_too_long_has_its_hint_in_the_words_of_newer_servers_too() -> None:
    told = 'ConfigMap "a" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes'
    hinted = augment_message(told, ObjectRef("", "ConfigMap", "shop", "a"), "v1", [])
    assert hinted.startswith(told) and "Consider using Server-side apply" in hinted
    assert augment_message(hinted, ObjectRef("", "ConfigMap", "shop", "a"), "v1", []) == hinted

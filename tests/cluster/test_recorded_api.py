"""The API answers as a Kubernetes control plane answered, conversation by conversation."""

from __future__ import annotations

import pytest

from .conversing import conversation

CONVERSATIONS = (
    "apply-basics",
    "apply-conflicts",
    "apply-lists",
    "apply-migration",
    "apply-status-and-custom",
    "auth-reviews",
    "auth-tokens",
    "concurrency-dry-run",
    "crd-cel",
    "crd-columns-subresources",
    "crd-lifecycle",
    "crd-refused",
    "crd-schema",
    "crd-versions",
    "delete-collection",
    "delete-finalizers",
    "delete-owners",
    "delete-pods",
    "delete-propagation",
    "discovery-core",
    "discovery-groups",
    "errors-bodies",
    "errors-metadata",
    "errors-requests",
    "events",
    "field-validation",
    "list-metadata-only",
    "list-paging",
    "list-selectors",
    "list-tables",
    "namespaces",
    "patch-json",
    "patch-merge",
    "patch-strategic",
    "sub-binding",
    "sub-eviction",
    "sub-scale",
    "sub-status",
    "watch-changes",
    "watch-protocol",
)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_every_step_of_a_recorded_conversation_is_answered_alike(name: str) -> None:
    wrong, compared = conversation(name)
    assert compared > 0
    assert not wrong, "\n".join(wrong)

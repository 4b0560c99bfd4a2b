"""Fields of custom resources that settings call types of Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.diff.known_types import spelled
from syncline.apply.diff.model import KnownTypeField

LIST = (KnownTypeField("spec.limits", "core/v1/ResourceList"),)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"cpu": "1000m", "memory": "1024Mi"}, {"cpu": "1", "memory": "1Gi"}),
        ({"cpu": 2, "nvidia.com/gpu": "1k"}, {"cpu": "2", "nvidia.com/gpu": "1k"}),
        ([{"cpu": "0.5"}, {"cpu": "2000m"}], [{"cpu": "500m"}, {"cpu": "2"}]),
        ({"cpu": "much"}, {"cpu": "much"}),
        ("1000m", "1000m"),
    ],
    ids=["quantities of both kinds", "numbers", "every item of a list", "what is no quantity", "what is no map"],
)
def test_a_resource_list_is_spelled_as_kubernetes_spells_it(written: Any, meant: Any) -> None:
    assert spelled({"spec": {"limits": written}}, LIST) == {"spec": {"limits": meant}}

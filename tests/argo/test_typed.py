"""Applications in the form of upstream's types: what is written, and what counts as equal."""

from __future__ import annotations

import pytest

from syncline.argo.typed import normalized_spec, typed_application, typed_spec
from syncline.kube.objects import Obj

BARE: Obj = {"destination": {"server": "s"}, "project": "p"}


@pytest.mark.parametrize(
    ("spec", "typed"),
    [
        pytest.param({}, {"destination": {}, "project": ""}, id="destination and project are always written"),
        pytest.param({**BARE, "extra": 1}, BARE, id="an unknown field is dropped"),
        pytest.param({**BARE, "sources": [], "info": []}, BARE, id="an empty list is dropped"),
        pytest.param(
            {**BARE, "syncPolicy": {"automated": {"prune": False, "enabled": None}, "syncOptions": []}},
            {**BARE, "syncPolicy": {"automated": {"prune": False}}},
            id="a pointer to false stays and a null goes",
        ),
        pytest.param(
            {**BARE, "source": {"helm": {"skipCrds": False, "valuesObject": {"a": False, "b": {}}}}},
            {**BARE, "source": {"repoURL": "", "helm": {"valuesObject": {"a": False, "b": {}}}}},
            id="false is dropped but for values, which are raw",
        ),
        pytest.param(
            {**BARE, "source": {"repoURL": "r", "kustomize": {}, "directory": {"jsonnet": {"libs": []}}}},
            {**BARE, "source": {"repoURL": "r", "kustomize": {}, "directory": {}}},
            id="an empty block of a tool stays",
        ),
        pytest.param(
            {**BARE, "revisionHistoryLimit": 0, "source": {"repoURL": "r", "kustomize": {"replicas": [{"name": "w"}]}}},
            {
                **BARE,
                "revisionHistoryLimit": 0,
                "source": {"repoURL": "r", "kustomize": {"replicas": [{"name": "w", "count": 0}]}},
            },
            id="a history limit of zero stays and a count is written",
        ),
    ],
)
def test_a_spec_is_written_as_upstreams_types_write_it(spec: Obj, typed: Obj) -> None:
    assert typed_spec(spec) == typed


@pytest.mark.parametrize(
    ("source", "normal"),
    [
        pytest.param({"kustomize": {}, "helm": {}, "plugin": {}}, {"plugin": {}}, id="empty blocks go, a plugin stays"),
        pytest.param({"kustomize": {"forceCommonLabels": True}}, {}, id="a flag of labels alone says nothing"),
        pytest.param(
            {"directory": {"exclude": "x", "recurse": False}}, {"directory": {"exclude": "x"}}, id="exclude counts"
        ),
        pytest.param({"helm": {"valuesObject": {}}}, {"helm": {"valuesObject": {}}}, id="values count even if empty"),
    ],
)
def test_a_source_is_compared_without_empty_blocks(source: Obj, normal: Obj) -> None:
    made = normalized_spec({**BARE, "source": {"repoURL": "r", **source}, "syncPolicy": {"syncOptions": []}})
    assert made == {**BARE, "source": {"repoURL": "r", **normal}}
    several = normalized_spec({"destination": {}, "project": "", "sources": [{"repoURL": "r", **source}]})
    assert several == {"destination": {}, "project": "default", "sources": [{"repoURL": "r", **normal}]}


def test_empty_metadata_is_left_out() -> None:
    app = {"metadata": {"name": "a", "labels": {}, "finalizers": []}, "spec": BARE, "operation": {}}
    assert typed_application(app) == {"metadata": {"name": "a"}, "spec": BARE, "operation": {}}

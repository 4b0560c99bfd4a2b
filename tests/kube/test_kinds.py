"""The definitions of the kinds that Syncline serves are ones that Kubernetes accepts."""

from __future__ import annotations

import pytest

from syncline.kube.kinds.applicationfleet import gitops_cluster_crd, report_crd
from syncline.kube.kinds.applicationset import application_set_crd
from syncline.kube.kinds.argoproj import crds
from syncline.kube.kinds.clusterextensions import extension_crds
from syncline.kube.kinds.klusterlets import klusterlet_crd
from syncline.kube.kinds.managedaddons import addon_crds
from syncline.kube.kinds.managedclusters import cluster_claim_crd, hub_cluster_crds
from syncline.kube.kinds.manifestworks import applied_work_crd, manifest_work_crd, replica_set_crd
from syncline.kube.kinds.operatorlifecycle import operator_crds
from syncline.kube.kinds.syncline import budget_crd, hold_crd
from syncline.kube.objects import Obj
from syncline.kube.schema.custom.schemacheck import check_schema

WORKS = (manifest_work_crd(), applied_work_crd(), replica_set_crd())
FLEET = (report_crd(), gitops_cluster_crd(), klusterlet_crd(), *addon_crds())
OURS = (hold_crd(), budget_crd())
OLM = (*operator_crds(), *extension_crds())
ALL = (*crds(), application_set_crd(), *OURS, *hub_cluster_crds(), cluster_claim_crd(), *WORKS, *FLEET, *OLM)


@pytest.mark.parametrize("definition", ALL, ids=lambda crd: crd["spec"]["names"]["kind"])
def test_a_definition_is_sound_and_says_what_its_kind_is_for(definition: Obj) -> None:
    assert check_schema(definition) == []
    for version in definition["spec"]["versions"]:
        assert version["schema"]["openAPIV3Schema"]["description"]


def test_every_kind_is_defined_once() -> None:
    names = [crd["metadata"]["name"] for crd in ALL]
    assert len(set(names)) == len(names)

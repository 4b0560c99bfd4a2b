"""The picture of the console's link: the cluster's own stays where a render has a dot in its place."""

from __future__ import annotations

import pytest

from syncline.clustergroup.objects.argocd import ICON
from syncline.clustergroup.pictures import MOST, with_pictures
from syncline.gitops.comparison.pairs import arrange, pair_arranged
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.objects import Obj, ref_of

LOGO = "data:image/png;base64,AAAA"


def link(picture: str, text: str = "Hub ArgoCD") -> Obj:
    spec = {"applicationMenu": {"section": "OpenShift GitOps", "imageURL": picture}, "text": text}
    metadata = {"name": "hub-gitops-link"}
    return {"apiVersion": "console.openshift.io/v1", "kind": "ConsoleLink", "metadata": metadata, "spec": spec}


def policy(picture: str) -> Obj:
    entry = {"objectDefinition": {"spec": {"object-templates": [{"objectDefinition": link(picture)}]}}}
    spec = {"policy-templates": [entry]}
    api = "policy.open-cluster-management.io/v1"
    return {"apiVersion": api, "kind": "Policy", "metadata": {"name": "p", "namespace": "n"}, "spec": spec}


@pytest.mark.parametrize("made", [link, policy])
def test_the_picture_of_the_cluster_stays_in_place_of_the_dot(made: object) -> None:
    assert callable(made)
    assert with_pictures(made(ICON), made(LOGO)) == made(LOGO)


@pytest.mark.parametrize("picture", ["https://example.com/x.png", "", f"data:image/{'x' * MOST}"])
def test_what_is_no_picture_is_not_kept(picture: str) -> None:
    target = link(ICON)
    assert with_pictures(target, link(picture)) is target


def test_a_picture_that_the_chart_gives_wins() -> None:
    target = link(LOGO)
    assert with_pictures(target, link("data:image/png;base64,BBBB")) is target


def test_other_fields_are_compared_and_synced_as_ever() -> None:
    assert with_pictures(link(ICON, "new"), link(LOGO, "old")) == link(LOGO, "new")


def test_a_comparison_pairs_the_manifest_with_the_picture_of_the_cluster() -> None:
    live = link(LOGO) | {"metadata": {"name": "hub-gitops-link", "uid": "1"}}
    arranged = arrange([link(ICON)], "", KindTable({}))
    (pair,) = pair_arranged(arranged, {ref_of(live): live}, {})
    assert pair.target == link(LOGO)

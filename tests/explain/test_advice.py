"""Kubernetes' and Argo CD's own sentences, and what a person is told to do about each."""

from __future__ import annotations

import pytest

from syncline.apply.causes.advice import advice

SENTENCES = [
    (
        'admission webhook "policy.example.org" denied the request: no latest tags',
        "do what webhook policy.example.org asks for, or ask its owner for an exception",
    ),
    (
        'Internal error occurred: failed calling webhook "gate.example.org": failed to call webhook: Post '
        '"https://gate.default.svc:443/x?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused',
        "get the service behind webhook gate.example.org to answer, or take the webhook away",
    ),
    (
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'no-a' with binding 'everywhere' denied request: no",
        "do what ValidatingAdmissionPolicy no-a asks for, or change it",
    ),
    (
        'pods "web-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
        "meet the Pod Security level of the namespace, or change its label",
    ),
    (
        'services is forbidden: User "system:serviceaccount:openshift-gitops:'
        'openshift-gitops-argocd-application-controller" '
        'cannot create resource "services" in API group "" in the namespace "guestbook"',
        "label the namespace, unless it has the label: "
        "kubectl label namespace guestbook argocd.argoproj.io/managed-by=openshift-gitops",
    ),
    (
        'deployments.apps is forbidden: User "system:serviceaccount:argocd:syncline" cannot create resource',
        "grant the right to that user, or let the sync run as another",
    ),
    (
        'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: .spec.replicas',
        "take the field over with server-side apply and force, or leave it to its manager",
    ),
    (
        "resource apps:Deployment is not permitted in project shop",
        "allow it in project shop, or take it out of the source",
    ),
    (
        "application repo https://x is not permitted in project 'shop'",
        "allow it in project shop, or take it out of the source",
    ),
    ("something that nobody has seen before", ""),
]


@pytest.mark.parametrize(("sentence", "step"), SENTENCES)
def test_a_known_sentence_has_its_next_step(sentence: str, step: str) -> None:
    assert advice(sentence) == step

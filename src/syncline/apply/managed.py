"""Namespaces that an Argo CD instance manages, by the label of the OpenShift GitOps operator; pure.

With ``--rights managed-by`` the controllers may write only in namespaces with the label. Source: the Argo CD operator
(``controllers/argocd/role.go``) and the OpenShift GitOps operator (``controllers/argocd/openshift``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from syncline.kube.objects import Obj, labels_of

LABEL: Final = "argocd.argoproj.io/managed-by"
"""Label of a Namespace; its value is the namespace of the Argo CD instance that manages it."""
ACCOUNT: Final = "openshift-gitops-argocd-application-controller"
"""Service account of the application controller of OpenShift's default instance, in the control namespace."""
_COMPONENT: Final = "argocd-application-controller"
"""End of the account's name in any instance, after the name of its ``ArgoCD`` object."""
_REFUSAL: Final = re.compile(
    r'is forbidden: User "system:serviceaccount:(?P<control>[^:"]{1,63}):(?P<account>[^"]{1,253})" cannot \S+ '
    r'resource "[^"]*" in API group "[^"]*" in the namespace "(?P<namespace>[^"]{1,63})"'
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A namespace in which an application controller may not write."""

    namespace: str
    control: str
    """The namespace of the controller's instance."""
    account: str

    @property
    def command(self) -> str:
        """The command that lets the controller write there, for the cluster's administrator."""
        return f"kubectl label namespace {self.namespace} {LABEL}={self.control}"


def refused_namespace(message: str) -> Refused | None:
    """Return the namespace in which Kubernetes refuses an application controller's write, from its first such sentence
    in ``message``; None: it says nothing of the kind."""
    for found in _REFUSAL.finditer(message):
        if found["account"].endswith(_COMPONENT):
            return Refused(found["namespace"], found["control"], found["account"])
    return None


def manager_of(namespace: Obj) -> str:
    """Return the namespace of the instance that manages a Namespace; empty: none does."""
    return labels_of(namespace).get(LABEL, "")

"""Whether upstream's OLM is on a cluster: then nothing here works on its objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, namespace_of

PACKAGES: Final = "v1.packages.operators.coreos.com"
DEPLOYMENTS: Final = frozenset(("olm-operator", "catalog-operator"))
HOMES: Final = frozenset(("olm", "openshift-operator-lifecycle-manager", "operator-lifecycle-manager"))
"""Where upstream and OpenShift install it: a Deployment of its name elsewhere may be anybody's."""


def upstream_manager(deployments: Iterable[Obj], services: Iterable[Obj]) -> str:
    """Return what shows that upstream's OLM is here; "" if nothing does. ``services``: the APIServices."""
    for one in services:
        served = dig(one, "spec", "service", default=None)
        if name_of(one) == PACKAGES and served and not is_terminating(one):
            return f"APIService {PACKAGES} is served by {served.get('namespace')}/{served.get('name')}"
    for one in deployments:
        named = name_of(one) in DEPLOYMENTS and labels_of(one).get("app") == name_of(one)
        if named and namespace_of(one) in HOMES and not is_terminating(one):
            return f"Deployment {namespace_of(one)}/{name_of(one)} is there"
    return ""

"""Restrict admin access to devices in use to claims in namespaces labelled for it.

The admission chain calls it. Source: Kubernetes ``pkg/registry/resource`` (``AuthorizedForAdmin``), where it is part of
validation.
"""

from __future__ import annotations

from syncline.cluster.admission.attempt import Attempt
from syncline.cluster.storage.store import Key, Store
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig, labels_of

LABEL = "resource.kubernetes.io/admin-access"


def admin_access_causes(store: Store, attempt: Attempt, obj: Obj) -> list[FieldCause]:
    """Return the errors of a claim, or claim template, that requests admin access without permission. Specs are
    immutable, so only new objects are checked."""
    if attempt.concerns("resource.k8s.io/resourceclaims"):
        requests = dig(obj, "spec", "devices", "requests", default=[])
    elif attempt.concerns("resource.k8s.io/resourceclaimtemplates"):
        requests = dig(obj, "spec", "spec", "devices", "requests", default=[])
    else:
        return []
    wanted = [index for index, one in enumerate(requests) if dig(one, "exactly", "adminAccess") is True]
    namespace = store.get(Key("/namespaces", "", attempt.namespace))
    if not wanted or (namespace is not None and labels_of(namespace.obj).get(LABEL) == "true"):
        return []
    why = f"Forbidden: admin access to devices requires the `{LABEL}: true` label on the containing namespace"
    return [FieldCause("FieldValueForbidden", why, f"spec.devices.requests[{wanted[0]}].adminAccess")]

"""The admission chain: which plug-ins see which write, in Kubernetes' order.

Called by the write verbs: ``admit_*`` may change the new object in place (the request owns it), ``check_*`` only
refuse. Reads the store; the counts of quotas are the one thing it writes (``quota.py``).
"""

from __future__ import annotations

from syncline.cluster.admission import certificates, devices, grants, limits, namespaces, pods, quota, storage
from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.services import ServiceAddresses
from syncline.cluster.authz import Authorizer
from syncline.cluster.store import Store
from syncline.kube.objects import Obj

__all__ = ["Admission"]


class Admission:
    """One per cluster; holds the service address pool."""

    def __init__(self, store: Store, authorizer: Authorizer) -> None:
        self._store = store
        self._authorizer = authorizer
        self.addresses = ServiceAddresses(store)

    def admit_create(self, attempt: Attempt, obj: Obj) -> None:
        namespaces.require_living(self._store, attempt)
        if attempt.subresource:
            return
        if attempt.resource.custom is not None and attempt.resource.custom.terminating:
            raise forbid(attempt, "create not allowed while custom resource definition is terminating")
        grants.check(self._authorizer, attempt, obj, None)
        if attempt.concerns("/pods"):
            pods.admit(self._store, attempt, obj)
        elif attempt.concerns("/nodes"):
            pods.taint_new_node(obj)
        elif attempt.concerns("/services"):
            self.addresses.assign(attempt, obj, None)
        else:
            storage.admit(self._store, attempt, obj)
        limits.admit(self._store, attempt, obj)

    def check_create(self, attempt: Attempt, obj: Obj) -> None:
        if attempt.subresource:
            return
        certificates.check_create(attempt, obj)
        devices.check_admin_access(self._store, attempt, obj)
        limits.check(self._store, attempt, obj)
        quota.check(self._store, attempt, obj, None)

    def admit_update(self, attempt: Attempt, new: Obj, old: Obj) -> None:
        if not attempt.subresource:
            grants.check(self._authorizer, attempt, new, old)
        if attempt.concerns("/services"):
            self.addresses.assign(attempt, new, old)
        elif attempt.concerns("/pods") and not attempt.subresource:
            pods.tolerate_short_failures(new.setdefault("spec", {}))

    def check_update(self, attempt: Attempt, new: Obj, old: Obj) -> None:
        certificates.check_update(self._authorizer, attempt, new, old)
        if attempt.subresource:
            return
        if attempt.concerns("/persistentvolumeclaims"):
            storage.check_growth(self._store, attempt, new, old)
        quota.check(self._store, attempt, new, old)

    def check_delete(self, attempt: Attempt) -> None:
        namespaces.refuse_immortal(attempt)

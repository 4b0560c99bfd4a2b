"""The admission chain: it calls the plug-ins for each write, in Kubernetes' order.

The write verbs call it: ``admit_*`` may mutate the new object (the request owns it), ``check_*`` only refuse. In
between, the verbs call webhooks and policies (``dynamic``). The chain reads the store; it writes only the usage of
quotas (``quota.py``), which therefore run last.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.admission import (
    certificates,
    devices,
    grants,
    limits,
    namespaces,
    parametergrants,
    podlevels,
    pods,
    quota,
    storage,
)
from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.dynamic.configured import Configured
from syncline.cluster.admission.services import ServiceAddresses
from syncline.cluster.resources.registry import Resource
from syncline.cluster.storage.store import Store
from syncline.kube.errors import FieldCause
from syncline.kube.objects import GVK, Obj


class Admission:
    """One per cluster; it has the service address pool and the configured webhooks and policies."""

    def __init__(self, store: Store, authorizer: Authorizer, kinds: Callable[[GVK], Resource | None]) -> None:
        self._kinds = kinds
        self._store = store
        self._authorizer = authorizer
        self.addresses = ServiceAddresses(store)
        self.configured = Configured(store)

    def require_living(self, attempt: Attempt) -> None:
        """Raise if the namespace does not exist or is terminating."""
        namespaces.require_living(self._store, attempt)

    def admit_create(self, attempt: Attempt, obj: Obj) -> None:
        self.require_living(attempt)
        if attempt.subresource:
            return
        if attempt.resource.custom is not None and attempt.resource.custom.terminating:
            raise forbid(attempt, "create not allowed while custom resource definition is terminating")
        grants.check(self._authorizer, attempt, obj, None)
        if attempt.concerns("/pods"):
            pods.admit(self._store, attempt, obj)
        elif attempt.concerns("/nodes"):
            pods.taint_new_node(obj)
        else:
            storage.admit(self._store, attempt, obj)
        limits.admit(self._store, attempt, obj)

    def allocate(self, attempt: Attempt, new: Obj, old: Obj | None) -> None:
        """Allocate what a kind's registry assigns, once the object is final."""
        if attempt.concerns("/services"):
            self.addresses.assign(attempt, new, old)

    def causes_of_create(self, attempt: Attempt, obj: Obj) -> list[FieldCause]:
        """Return validation errors that depend on other objects; they are reported with the others."""
        return [] if attempt.subresource else devices.admin_access_causes(self._store, attempt, obj)

    def check_create(self, attempt: Attempt, obj: Obj) -> None:
        if attempt.subresource:
            return
        certificates.check_create(attempt, obj)
        limits.check(self._store, attempt, obj)
        podlevels.check_create(self._store, attempt, obj)
        parametergrants.check(self._store, self._authorizer, self._kinds, attempt, obj, None)

    def count(self, attempt: Attempt, new: Obj, old: Obj | None) -> None:
        """Check quotas, as the last step."""
        if not attempt.subresource:
            quota.check(self._store, attempt, new, old)

    def admit_update(self, attempt: Attempt, new: Obj, old: Obj) -> None:
        if not attempt.subresource:
            grants.check(self._authorizer, attempt, new, old)
        if attempt.concerns("/pods"):
            pods.tolerate_short_failures(new.setdefault("spec", {}))

    def check_update(self, attempt: Attempt, new: Obj, old: Obj) -> None:
        certificates.check_update(self._authorizer, attempt, new, old)
        podlevels.check_update(self._store, attempt, new, old)
        if attempt.subresource:
            return
        if attempt.concerns("/persistentvolumeclaims"):
            storage.check_growth(self._store, attempt, new, old)
        parametergrants.check(self._store, self._authorizer, self._kinds, attempt, new, old)

    def check_delete(self, attempt: Attempt) -> None:
        namespaces.refuse_immortal(attempt)

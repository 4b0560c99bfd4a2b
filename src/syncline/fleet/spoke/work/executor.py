"""What the executor of a work must be allowed before one of its manifests is applied, as data.

The agent asks its API server the reviews in order and stops at the first refusal. Rules: ``pkg/work/spoke/auth/basic``
of upstream (reference ocm-pull-model §6.7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.objects import Obj, dig

RETRY_S: Final = 60
"""A refused manifest is tried again after this time; only a change of rights on the spoke can help."""
_RBAC: Final = frozenset({"roles", "rolebindings", "clusterroles", "clusterrolebindings"})


class ExecutorError(ValueError):
    """An executor that no review can be asked for; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Target:
    """The object that a manifest is about."""

    group: str
    version: str
    resource: str
    namespace: str
    name: str

    @property
    def refusal(self) -> str:
        """Why the manifest is not applied: the executor lacks a right."""
        what = f"{self.group} {self.resource}, {self.namespace} {self.name}"
        return f"not allowed to apply the resource {what}, will try again in 1m0s"

    @property
    def escalation(self) -> str:
        """Why the manifest is not applied: it would grant rights that the executor does not have."""
        what = f"{self.group} {self.resource}, {self.namespace} {self.name}"
        return f"not allowed to apply the resource {what}, error: permission escalation, will try again in 1m0s"

    @property
    def grants(self) -> bool:
        """Whether the object grants rights: then a creation as a dry run, impersonating the executor, is asked too."""
        return self.group == "rbac.authorization.k8s.io" and self.resource in _RBAC


def executor_name(executor: Obj) -> tuple[str, str]:
    """Return namespace and name of the service account. Raises :class:`ExecutorError`."""
    if dig(executor, "subject", "type") != "ServiceAccount":
        raise ExecutorError("only support ServiceAccount type for the executor")
    account = dig(executor, "subject", "serviceAccount")
    if not isinstance(account, dict):
        raise ExecutorError("the executor service account is nil")
    return str(account.get("namespace") or ""), str(account.get("name") or "")


def reviews(executor: Obj | None, target: Target, *, owned: bool) -> tuple[dict[str, Any], ...]:
    """Return the specs of the SubjectAccessReviews to ask, in order; none without an executor.

    An ``owned`` object is deleted with the work, so the right to delete is asked before it exists. Raises
    :class:`ExecutorError`.
    """
    if executor is None:
        return ()
    namespace, name = executor_name(executor)
    attributes = {
        "namespace": target.namespace,
        "group": target.group,
        "version": target.version,
        "resource": target.resource,
        "name": target.name,
    }
    verbs = ("create", "update", "patch", "get", *(("delete",) if owned else ()))
    groups = ["system:serviceaccounts", "system:authenticated", f"system:serviceaccounts:{namespace}"]
    user = f"system:serviceaccount:{namespace}:{name}"
    return tuple({"resourceAttributes": {**attributes, "verb": verb}, "user": user, "groups": groups} for verb in verbs)

"""What the API refuses of Patterns, as the webhook of upstream's operator: :func:`pattern_admission`; pure.

A policy looks at the Patterns of the namespace of the new one. Of Patterns in two namespaces the controllers act on the
older. Upstream's webhook also refuses to delete a Pattern without its annotation ``prune``; here it may go, and leaves
all that it made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from syncline.kube.kinds.validatedpatterns import PATTERN
from syncline.kube.objects import Obj

SINGLE: Final = "single-pattern.syncline.dev"
NAMED: Final = "named-pattern.syncline.dev"
_VERSION: Final = "admissionregistration.k8s.io/v1"


def pattern_admission() -> list[Obj]:
    """Return the ValidatingAdmissionPolicies with their bindings."""
    other = "params.metadata.name == object.metadata.name"
    given = " || ".join(
        f"(has(object.spec.{one}) && object.spec.{one} != '')" for one in ("variant", "clusterGroupName")
    )
    known = {"paramKind": {"apiVersion": PATTERN.api_version, "kind": PATTERN.kind}}
    all_of_them = {"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}}
    return [
        *_policy(SINGLE, ("CREATE",), other, "only one Pattern resource is allowed", known, all_of_them),
        *_policy(
            NAMED,
            ("CREATE", "UPDATE"),
            f"has(object.spec) && ({given})",
            "one of spec.variant or spec.clusterGroupName must be set",
            {},
            {},
        ),
    ]


def _policy(
    name: str,
    operations: Iterable[str],
    holds: str,
    message: str,
    spec: Mapping[str, Any] = {},
    bound: Mapping[str, Any] = {},
) -> tuple[Obj, Obj]:
    rule = {
        "apiGroups": [PATTERN.group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": ["patterns"],
        "scope": "*",
    }
    policy = {
        **spec,
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [rule],
        },
        "validations": [{"expression": holds, "message": message, "reason": "Forbidden"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"], **bound}
    metadata = {"name": name}
    return (
        {"apiVersion": _VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata, "spec": policy},
        {"apiVersion": _VERSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata, "spec": binding},
    )

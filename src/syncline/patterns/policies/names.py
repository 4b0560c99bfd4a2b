"""Names that upstream gives to what belongs to policies, and how its texts are read."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from syncline.kube.kinds.governance import GROUP

ROOT_LABEL: Final = f"{GROUP}/root-policy"
"""On a replicated policy: NAMESPACE.NAME of the policy that it is a copy of."""
CLUSTER_NAME: Final = f"{GROUP}/cluster-name"
CLUSTER_NAMESPACE: Final = f"{GROUP}/cluster-namespace"
PARENT: Final = f"{GROUP}/policy"
"""On the object of a template: the policy that it came with."""
IV: Final = f"{GROUP}/encryption-iv"
"""Annotation: the initialization vector of encrypted values, Base64."""
HUB_ERROR: Final = f"{GROUP}/hub-templates-error"
"""Annotation on a template: why its hub templates could not be resolved."""
DISABLE_TEMPLATES: Final = f"{GROUP}/disable-templates"
TRIGGER: Final = f"{GROUP}/trigger-update"
IGNORED_BY_ARGO: Final = ("argocd.argoproj.io/compare-options", "IgnoreExtraneous")
KEY_SECRET: Final = "policy-encryption-key"
"""Secret with the AES key of a cluster, in its namespace on the hub and in the namespace of that name there."""
PRUNE_FINALIZER: Final = f"{GROUP}/delete-related-objects"
"""Finalizer of a ConfigurationPolicy whose objects go with it."""
MOST_HISTORY: Final = 10


class State(StrEnum):
    """Compliance of a policy, a template or an object."""

    COMPLIANT = "Compliant"
    NON_COMPLIANT = "NonCompliant"
    PENDING = "Pending"
    TERMINATING = "Terminating"
    UNKNOWN = ""


def state_of_message(message: str) -> State:
    """Return the compliance with which a message of a policy controller begins."""
    start = message.removeprefix("(combined from similar events):").strip().lower()
    if start.startswith("compliant"):
        return State.COMPLIANT
    return State.PENDING if start.startswith("pending") else State.NON_COMPLIANT


def is_enforced(action: object) -> bool:
    return str(action or "").lower() == "enforce"


def is_true_text(text: str) -> bool:
    """Read a text as Go's ``strconv.ParseBool``; what it refuses is false."""
    return text in ("1", "t", "T", "TRUE", "true", "True")

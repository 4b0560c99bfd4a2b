"""Default values of the chart (acm 0.2.8)."""

from __future__ import annotations

from typing import Final

from syncline.kube.objects import Obj

CHANNEL: Final = "gitops-1.21"
CATALOGUE: Final = "redhat-operators"
ARGO_NAMESPACE: Final = "openshift-gitops"
RETRIES: Final = 20
DEFAULTS: Final[Obj] = {
    "main": {"gitops": {"channel": CHANNEL}},
    "global": {
        "extraValueFiles": [],
        "pattern": "none",
        "vpArgoNamespace": ARGO_NAMESPACE,
        "repoURL": "none",
        "targetRevision": "main",
        "options": {"applicationRetryLimit": RETRIES},
        "secretStore": {"backend": "vault"},
    },
    "clusterGroup": {"subscriptions": {"acm": {"source": CATALOGUE}}, "managedClusterGroups": {}},
    "acm": {
        "mch_spec": {},
        "extraResourceHealthChecks": [],
        "mce_operator": {"source": CATALOGUE, "channel": None},
        "spokeGitops": {"source": CATALOGUE, "channel": CHANNEL},
    },
    "secretStore": {"name": "vault-backend", "kind": "ClusterSecretStore"},
}

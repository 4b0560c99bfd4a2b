"""Default values of the chart (clusterGroup 0.9.55, vp-rbac 0.1.2), and how values are laid over them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from syncline.clustergroup.errors import RenderFailed
from syncline.kube.objects import Obj, copied

RBAC: Final = "vp-rbac"
"""Key of the values of the chart's dependency."""
UNBOUND_CLAIMS: Final = """hs = {}
if obj.status ~= nil then
  if obj.status.phase ~= nil then
    if obj.status.phase == "Pending" then
      hs.status = "Healthy"
      hs.message = obj.status.phase
      return hs
    elseif obj.status.phase == "Bound" then
      hs.status = "Healthy"
      hs.message = obj.status.phase
      return hs
    end
  end
end
hs.status = "Progressing"
hs.message = "Waiting for PVC"
return hs
"""
"""Health of a PersistentVolumeClaim: one that nothing uses yet does not hold up its wave."""
_EXCLUDED: Final = "- apiGroups:\n  - tekton.dev\n  kinds:\n  - TaskRun\n  - PipelineRun\n"
_IMAGE: Final = "quay.io/validatedpatterns/imperative-container:v1"
DEFAULTS: Final[Obj] = {
    "global": {
        "singleArgoCD": False,
        "extraValueFiles": [],
        "pattern": "common",
        "vpArgoNamespace": "openshift-gitops",
        "secretLoader": {"disabled": False},
        "secretStore": {"backend": "vault"},
        "targetRevision": "main",
        "options": {
            "useCSV": True,
            "syncPolicy": "Automatic",
            "installPlanApproval": "Automatic",
            "applicationRetryLimit": 20,
        },
    },
    "clusterGroup": {
        "name": "example",
        "targetCluster": "in-cluster",
        "sharedValueFiles": [],
        "argoCD": {
            "initContainers": [],
            "env": [],
            "rbac": {},
            "volumes": [],
            "volumeMounts": [],
            "configManagementPlugins": [],
            "resourceTrackingMethod": "annotation",
            "resourceHealthChecks": [{"kind": "PersistentVolumeClaim", "check": UNBOUND_CLAIMS}],
            "resourceActions": [],
            "resourceExclusions": _EXCLUDED,
        },
        "imperative": {
            "jobs": [],
            "image": _IMAGE,
            "ansibleDevMode": {
                "enabled": False,
                "requirementsFile": "requirements.yml",
                "requirementsContent": "",
                "ansibleCfgFile": "ansible.cfg",
                "ansibleCfgContent": "",
            },
            "namespace": "imperative",
            "valuesConfigMap": "helm-values-configmap",
            "cronJobName": "imperative-cronjob",
            "jobName": "imperative-job",
            "imagePullPolicy": "Always",
            "activeDeadlineSeconds": 3600,
            "schedule": "*/10 * * * *",
            "insecureUnsealVaultInsideClusterSchedule": "*/5 * * * *",
            "verbosity": "",
            "extraPlaybookArgs": [],
            "serviceAccountCreate": True,
            "serviceAccountName": "imperative-sa",
            "clusterRoleName": "imperative-cluster-role",
            "clusterRoleYaml": "",
            "roleName": "imperative-role",
            "roleYaml": "",
            "adminServiceAccountCreate": True,
            "adminServiceAccountName": "imperative-admin-sa",
            "adminClusterRoleName": "imperative-admin-cluster-role",
            "vaultNamespace": "vault",
        },
        "managedClusterGroups": {},
        "namespaces": [],
        "nodes": [],
        "subscriptions": {},
        "applications": {},
        "extraObjects": {},
    },
    "secretStore": {"name": "vault-backend", "kind": "ClusterSecretStore"},
}
_RBAC_DEFAULTS: Final[Obj] = {"serviceAccounts": {}, "roles": {}, "clusterRoles": {}}
SEQUENCE_IMAGE: Final = _IMAGE


def layered(files: Iterable[Mapping[str, Any]]) -> Obj:
    """Return value files laid over one another: mappings merge, all else is replaced, null included."""
    made: Obj = {}
    for one in files:
        made = _laid(made, one)
    return made


def _laid(base: Mapping[str, Any], more: Mapping[str, Any]) -> Obj:
    made = dict(base)
    for key, value in more.items():
        there = made.get(key)
        made[key] = _laid(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return made


def with_defaults(given: Mapping[str, Any]) -> Obj:
    """Return the values that the clusterGroup chart and its dependency work with. Raises :class:`RenderFailed`."""
    made = filled(given, DEFAULTS)
    before = made.get(RBAC, {})
    if not isinstance(before, dict):
        raise RenderFailed(RBAC, f"the values of {RBAC} are a map, found {before!r:.80}")
    mine = filled(before, _RBAC_DEFAULTS)
    # The dependency's copy of the global values keeps a default that a null takes away from the chart.
    own = mine.get("global")
    mine["global"] = filled(own if isinstance(own, dict) else {}, DEFAULTS["global"])
    if isinstance(made.get("global"), dict):
        mine["global"] = _inherited(mine["global"], made["global"])
    made[RBAC] = mine
    return made


def _inherited(own: Obj, shared: Obj) -> Obj:
    """Return the global values of a dependency: the chart's, unless one of the two is a map and the other is not."""
    made = dict(own)
    for key, value in shared.items():
        there = own.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            made[key] = filled(value, there)
        elif key not in own or (not isinstance(value, dict) and not isinstance(there, dict)):
            made[key] = value
    return made


def filled(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> Obj:
    """Return values with a chart's defaults. A null takes a default away; where there is none, it stays."""
    made: Obj = copied(dict(given))
    for key, default in defaults.items():
        if key not in made:
            made[key] = copied(default)
        elif made[key] is None:
            del made[key]
        elif isinstance(made[key], dict) and isinstance(default, dict):
            made[key] = filled(made[key], default)
    return made

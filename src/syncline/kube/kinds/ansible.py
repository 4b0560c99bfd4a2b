"""The ``syncline.dev/v1alpha1`` kind AnsibleConfig: playbooks that the node agents of a pool run."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    AGE,
    ANY,
    CONDITION,
    COUNT,
    STR,
    TIME,
    atomic,
    column,
    condition_column,
    definition,
    enum,
    keyed,
    kind_schema,
    obj,
)
from syncline.kube.objects import GVK, Obj

ANSIBLE_CONFIG = GVK("syncline.dev", "v1alpha1", "AnsibleConfig")
DISRUPTIONS = ("None", "Drain", "Reboot", "AsTasksSay")
MAX_COLLECTIONS = 50
MAX_SECRETS = 20
MAX_TAGS = 50
MAX_NODES = 50
"""Nodes in the status of one AnsibleConfig; those in trouble come first."""
MAX_TASKS = 20
"""Changed tasks of one node in the status."""
MAX_TEXT = 1000
DURATION = {"type": "string", "pattern": r"^([0-9]{1,5}(s|m|h))+$", "maxLength": 24}


def ansible_config_crd() -> Obj:
    """CustomResourceDefinition ``ansibleconfigs.syncline.dev``. Who writes one is root on machines."""
    schema = kind_schema(_spec(), _status(), "spec", about="Ansible that runs on the nodes of a machine config pool.")
    schema["properties"]["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 40}},
    }
    columns = (
        column("Pool", ".spec.pool"),
        column("Revision", ".status.revision"),
        column("Nodes", ".status.nodes", "integer"),
        column("Applied", ".status.applied", "integer"),
        column("Failing", ".status.failing", "integer"),
        condition_column("Ready", "Ready"),
        AGE,
    )
    return definition(ANSIBLE_CONFIG, "ansibleconfigs", schema, short=("ac",), columns=columns)


def _spec() -> Obj:
    text = STR | {"maxLength": MAX_TEXT, "minLength": 1}
    repository = obj(
        {
            "repoURL": text | {"description": "as of an Application"},
            "targetRevision": text | {"description": "branch, tag or commit; HEAD without it"},
        },
        "repoURL",
        about="where the playbook is",
    )
    collection = obj(
        {
            "name": STR | {"pattern": r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$", "maxLength": 128},
            "version": STR
            | {
                "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$",
                "maxLength": 64,
                "description": "exactly this one: ranges are refused",
            },
        },
        "name",
        "version",
    )
    secret = obj({"namespace": text, "name": text}, "namespace", "name", about="a Secret; each key is a variable")
    vault = obj({"namespace": text, "name": text, "key": text}, "namespace", "name", "key", about="a key of a Secret")
    spec = obj(
        {
            "repository": repository,
            "path": STR | {"maxLength": MAX_TEXT, "description": "folder of the repository; its root without it"},
            "playbook": text | {"description": "file below the path"},
            "role": text | {"description": "a role in roles/ below the path, or NAMESPACE.COLLECTION.ROLE"},
            "collections": keyed(collection, "name", maxItems=MAX_COLLECTIONS)
            | {"description": "what it uses of collections/ansible_collections, with their versions"},
            "variables": ANY | {"description": "extra variables; no secrets: all nodes can read them"},
            "variablesFrom": atomic(obj({"secretRef": secret}, "secretRef"), maxItems=MAX_SECRETS)
            | {"description": "Secrets that the node's agent reads when it runs"},
            "vaultPasswordFrom": obj({"secretKeyRef": vault}, "secretKeyRef"),
            "pool": text | {"description": "the MachineConfigPool whose nodes run it"},
            "disruption": enum(*DISRUPTIONS) | {"default": "AsTasksSay"},
            "tags": atomic(text, maxItems=MAX_TAGS),
            "skipTags": atomic(text, maxItems=MAX_TAGS),
            "checkInterval": DURATION | {"default": "30m", "description": "between checks for drift; 0s: none"},
            "timeout": DURATION | {"default": "30m", "description": "of one run, at most 6h"},
        },
        "repository",
        "pool",
    )
    rule = "has(self.playbook) != has(self.role)"
    spec["x-kubernetes-validations"] = [{"rule": rule, "message": "give either playbook or role"}]
    return spec


def _status() -> Obj:
    task = obj(dict.fromkeys(("task", "place", "host", "message"), STR | {"maxLength": MAX_TEXT}))
    node = obj(
        {
            "name": STR,
            "phase": STR
            | {"description": "Waiting, Planned, Running, Rebooting, Applied, Failed, NotIdempotent or Drifted"},
            "digest": STR | {"description": "what was last applied"},
            "at": TIME,
            "changed": COUNT | {"description": "tasks that changed something, or would"},
            "tasks": atomic(task, maxItems=MAX_TASKS),
            "failed": task,
        },
        "name",
    )
    return obj(
        {
            "conditions": keyed(CONDITION, "type"),
            "observedGeneration": COUNT,
            "revision": STR | {"description": "the commit"},
            "digest": STR | {"description": "of all that a run depends on"},
            "machineConfig": STR | {"description": "the MachineConfig by which it reaches the nodes"},
            "nodes": COUNT,
            "applied": COUNT,
            "failing": COUNT,
            "nodeStatuses": keyed(node, "name", maxItems=MAX_NODES),
        }
    )

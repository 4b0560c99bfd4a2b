#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: application_sync
short_description: Sync an Application
description:
  - Plans the sync first, and starts an operation only if the plan changes something. So a second run changes nothing.
  - Waits for the operation, and on request until the Application is healthy.
  - In check mode the plan alone is made, with what the cluster would refuse.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.changes
options:
  name:
    description: The Application.
    type: str
    required: true
  namespace:
    description: Its namespace.
    type: str
    default: argocd
  revision:
    description: Branch, tag or commit instead of the one in its spec.
    type: str
  resources:
    description:
      - Only these objects, each as C(GROUP:KIND:NAME) or C(GROUP:KIND:NAMESPACE/NAME).
      - An empty part or V(*) matches any, V(!) in front excludes.
    type: list
    elements: str
    default: []
  prune:
    description: Deletes what left the repository.
    type: bool
    default: false
  dry_run:
    description: Starts an operation that asks the API and changes no object. Reported as unchanged.
    type: bool
    default: false
  force:
    description: Deletes and creates again what cannot be changed.
    type: bool
    default: false
  replace:
    description: Replaces objects instead of applying them.
    type: bool
    default: false
  server_side:
    description: Applies on the server.
    type: bool
    default: false
  apply_out_of_sync_only:
    description: Leaves objects alone that are in sync.
    type: bool
    default: false
  strategy:
    description: With V(apply) no hooks run.
    type: str
    choices: [apply, hook]
  retry_limit:
    description: Further attempts after a failed one.
    type: int
    default: 0
  info:
    description: Notes on the operation.
    type: dict
    default: {}
  always:
    description: Starts an operation even if the plan changes nothing, so that hooks run again.
    type: bool
    default: false
  wait:
    description: Waits for the end of the operation.
    type: bool
    default: true
  wait_healthy:
    description: Waits, after the operation, until the Application is healthy. Not with a partial sync by O(resources).
    type: bool
    default: false
  timeout:
    description: Seconds for each of the two waits. The operation goes on when they are over.
    type: int
    default: 600
seealso:
  - module: syncline.syncline.plan
  - module: syncline.syncline.application_wait
"""

EXAMPLES = r"""
- name: Sync the shop, and wait until it is healthy
  syncline.syncline.application_sync:
    name: shop
    prune: true
    wait_healthy: true
    timeout: 900

- name: Only its Deployment, at a tag
  syncline.syncline.application_sync:
    name: shop
    revision: v1.2.3
    resources: ['apps:Deployment:web']
"""

RETURN = r"""
plan:
  description: What C(syncline plan) says of the sync, without the objects themselves.
  returned: success
  type: dict
  contains:
    verdict:
      description: C(nothing to do), C(changes), C(blocked) or C(unsafe).
      type: str
      returned: success
    actions:
      description: What changes, in order.
      type: list
      elements: dict
      returned: success
      sample: [{action: create, object: /ConfigMap/shop/menu, reason: not in the cluster}]
    problems:
      description: Why the sync cannot begin.
      type: list
      elements: str
      returned: success
    unsafe:
      description: What the cluster would refuse, and mass deletions.
      type: list
      elements: str
      returned: success
    warnings:
      description: What may surprise.
      type: list
      elements: str
      returned: success
application:
  description: The Application after the operation, as M(syncline.syncline.application_info) returns it.
  returned: when an operation was started and waited for
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.applications import (
    actions,
    differences,
    planned,
    row,
    summary,
)
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, flags

SYNC_FLAGS = {
    "revision": "--revision",
    "resources": "--resource",
    "prune": "--prune",
    "dry_run": "--dry-run",
    "force": "--force",
    "replace": "--replace",
    "server_side": "--server-side",
    "apply_out_of_sync_only": "--apply-out-of-sync-only",
    "strategy": "--strategy",
    "retry_limit": "--retry-limit",
}


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            namespace={"type": "str", "default": "argocd"},
            revision={"type": "str"},
            resources={"type": "list", "elements": "str", "default": []},
            prune={"type": "bool", "default": False},
            dry_run={"type": "bool", "default": False},
            force={"type": "bool", "default": False},
            replace={"type": "bool", "default": False},
            server_side={"type": "bool", "default": False},
            apply_out_of_sync_only={"type": "bool", "default": False},
            strategy={"type": "str", "choices": ["apply", "hook"]},
            retry_limit={"type": "int", "default": 0},
            info={"type": "dict", "default": {}},
            always={"type": "bool", "default": False},
            wait={"type": "bool", "default": True},
            wait_healthy={"type": "bool", "default": False},
            timeout={"type": "int", "default": 600},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    plan = planned(program, params)
    wanted = bool(actions(plan)) or plan["verdict"] == "blocked"
    result = {"changed": wanted and not params["dry_run"], "plan": summary(plan), "diff": differences(plan)}
    if module.check_mode or not (wanted or params["always"]):
        module.exit_json(**result)
    result["changed"] = not params["dry_run"]
    final = start(program, params)
    if final is not None and params["wait_healthy"]:
        words = ["app", "wait", params["name"], "-N", params["namespace"], "--health"]
        final = program.document([*words, "--timeout", str(params["timeout"])])[1]
    if final is not None:
        result["application"] = row(final)
    module.exit_json(**result)


def start(program, params):
    """Start the operation; return the Application at its end, or None if nothing waits for it."""
    words = ["app", "sync", params["name"], "-N", params["namespace"], *flags(params, SYNC_FLAGS)]
    for name, value in sorted(params["info"].items()):
        words += ["--info", f"{name}={value}"]
    if not params["wait"] and not params["wait_healthy"]:
        program.run([*words, "--async"])
        return None
    return program.document([*words, "--timeout", str(params["timeout"])])[1]


if __name__ == "__main__":
    main()

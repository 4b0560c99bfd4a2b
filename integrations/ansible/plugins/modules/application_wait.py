#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: application_wait
short_description: Wait for an Application
description:
  - Waits until an Application is synced, healthy and without a running operation, or until the conditions of O(for).
  - In check mode it does not wait, and returns the state as it is.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.reads
options:
  name:
    description: The Application.
    type: str
    required: true
  namespace:
    description: Its namespace.
    type: str
    default: argocd
  for:
    description:
      - What has to hold. V(sync) has the controller read the repository first.
      - V(health), V(suspended) and V(degraded) are alternatives of each other.
      - V(deleted) stands alone.
    type: list
    elements: str
    choices: [sync, health, operation, hydrated, suspended, degraded, deleted]
    default: [sync, health, operation]
  revision:
    description: Waits until this commit (7 digits or more) or chart version is synced.
    type: str
  resources:
    description: Only these objects, each as C(GROUP:KIND:NAME).
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Wait until the commit is there and healthy
  syncline.syncline.application_wait:
    name: shop
    for: [sync, health]
    revision: "{{ commit }}"

- name: Wait until it is gone
  syncline.syncline.application_wait:
    name: shop
    for: [deleted]
"""

RETURN = r"""
application:
  description: The Application, as M(syncline.syncline.application_info) returns it.
  returned: unless it is gone
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.applications import row, stored
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, flags

CONDITIONS = {
    "sync": "--sync",
    "health": "--health",
    "operation": "--operation",
    "hydrated": "--hydrated",
    "suspended": "--suspended",
    "degraded": "--degraded",
    "deleted": "--delete",
}


def main():
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "namespace": {"type": "str", "default": "argocd"},
            "for": {
                "type": "list",
                "elements": "str",
                "choices": ["sync", "health", "operation", "hydrated", "suspended", "degraded", "deleted"],
                "default": ["sync", "health", "operation"],
            },
            "revision": {"type": "str"},
            "resources": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 600},
            **ARGUMENTS,
        },
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    wanted = params["for"]
    if "deleted" in wanted and len(wanted) > 1:
        module.fail_json(msg="for: deleted stands alone, and not with {}".format(", ".join(wanted)))
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    words = ["app", "wait", params["name"], "-N", params["namespace"], "--timeout", str(params["timeout"])]
    words += [CONDITIONS[one] for one in wanted] + flags(params, {"revision": "--revision", "resources": "--resource"})
    if module.check_mode:
        found = stored(program, params["name"], params["namespace"])
    elif "deleted" in wanted:
        program.run(words)
        found = None
    else:
        found = program.document(words)[1]
    module.exit_json(changed=False, **({} if found is None else {"application": row(found)}))


if __name__ == "__main__":
    main()

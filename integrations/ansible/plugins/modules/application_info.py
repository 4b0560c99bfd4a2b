#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: application_info
short_description: Read Applications
description:
  - Returns Applications with their sync status, health, last operation and resources.
  - An Application that does not exist is no failure but an empty list. One that may not be read is a failure.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.reads
options:
  name:
    description: One Application. Without it all of O(namespace) are listed.
    type: str
  namespace:
    description: Namespace of Applications.
    type: str
    default: argocd
  selector:
    description: Only Applications with these labels. Not together with O(name).
    type: str
  projects:
    description: Only Applications of these projects. Not together with O(name).
    type: list
    elements: str
    default: []
  refresh:
    description: Has the controller read the repository first. This writes an annotation of the Application.
    type: bool
    default: false
seealso:
  - module: syncline.syncline.application_sync
"""

EXAMPLES = r"""
- name: What state has the shop
  syncline.syncline.application_info:
    name: shop
  register: shop

- name: Stop if it is degraded
  ansible.builtin.assert:
    that: shop.applications[0].health == 'Healthy'
"""

RETURN = r"""
applications:
  description: The Applications by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: success
    namespace:
      description: Its namespace.
      type: str
      returned: success
    project:
      description: Its project.
      type: str
      returned: success
    sync:
      description: C(Synced), C(OutOfSync) or C(Unknown).
      type: str
      returned: success
    health:
      description: C(Healthy), C(Progressing), C(Suspended), C(Degraded), C(Missing) or C(Unknown).
      type: str
      returned: success
    revision:
      description: The commit or chart version of its last comparison.
      type: str
      returned: success
    operation:
      description: Phase and message of its last operation.
      type: dict
      returned: success
      sample: {phase: Succeeded, message: successfully synced (all tasks run)}
    resources:
      description: Its objects, with sync status and health.
      type: list
      elements: dict
      returned: success
    spec:
      description: Its C(spec).
      type: dict
      returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.applications import row, stored
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, flags


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str"},
            namespace={"type": "str", "default": "argocd"},
            selector={"type": "str"},
            projects={"type": "list", "elements": "str", "default": []},
            refresh={"type": "bool", "default": False},
            **ARGUMENTS,
        ),
        mutually_exclusive=[("name", "selector")],
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["name"]:
        one = stored(program, params["name"], params["namespace"], params["refresh"] and not module.check_mode)
        found = [] if one is None else [one]
    else:
        words = flags(params, {"selector": "-l", "projects": "-p"})
        found = program.document(["app", "list", "-N", params["namespace"], *words])[1]
    module.exit_json(changed=False, applications=[row(one) for one in found])


if __name__ == "__main__":
    main()

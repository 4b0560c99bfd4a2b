#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ansible_config_wait
short_description: Wait for the nodes of an AnsibleConfig
description:
  - Waits until all nodes of the pool have run what the AnsibleConfig asks for.
  - Fails at once if the playbook is refused, or a node is in trouble, with the task, its place and its message.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
attributes:
  check_mode:
    description: Returns the AnsibleConfig as it is, and waits for nothing.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
options:
  name:
    description: The AnsibleConfig.
    type: str
    required: true
  timeout:
    description: Seconds to wait. The roll-out goes on when they are over.
    type: int
    default: 3600
seealso:
  - module: syncline.syncline.ansible_config_info
"""

EXAMPLES = r"""
- name: The time servers are set on every node
  syncline.syncline.ansible_config_wait:
    name: chrony
    timeout: 7200
"""

RETURN = r"""
ansible_config:
  description: The AnsibleConfig, as M(syncline.syncline.ansible_config_info) returns it.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.playbooks import summary
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True}, timeout={"type": "int", "default": 3600}, **ARGUMENTS
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    words = ["ansible", "get", params["name"]]
    if not module.check_mode:
        words = ["ansible", "wait", params["name"], "--timeout", str(params["timeout"])]
    module.exit_json(changed=False, ansible_config=summary(program.document(words)[1]))


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ansible_config_info
short_description: Read AnsibleConfigs
description:
  - Returns the playbooks that the nodes of a pool run themselves, with their commits, and how each node fares.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.reads
options:
  name:
    description: One AnsibleConfig. Without it all of them. One that does not exist is an empty list.
    type: str
seealso:
  - module: syncline.syncline.ansible_config_wait
"""

EXAMPLES = r"""
- name: Where the time servers are set
  syncline.syncline.ansible_config_info:
    name: chrony
  register: chrony
"""

RETURN = r"""
ansible_configs:
  description: The AnsibleConfigs by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: success
    pool:
      description: The pool whose nodes run it.
      type: str
      returned: success
    revision:
      description: The commit, empty if none was read.
      type: str
      returned: success
    counts:
      description: Counts of its nodes.
      type: dict
      returned: success
      sample: {nodes: 3, applied: 2, failing: 1}
    conditions:
      description: Its conditions.
      type: list
      elements: dict
      returned: success
    nodes:
      description: Its nodes with phase, tasks that changed something, and the task that failed; 50 at most.
      type: list
      elements: dict
      returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.playbooks import summary
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program


def main():
    module = AnsibleModule(argument_spec=dict(name={"type": "str"}, **ARGUMENTS), supports_check_mode=True)
    program, name = Program(module), module.params["name"]
    if name:
        found = program.document(["ansible", "get", name], missing=f"AnsibleConfig {name} does not exist")[1]
        objects = [] if found is None else [found]
    else:
        objects = program.document(["ansible", "list"])[1]
    module.exit_json(changed=False, ansible_configs=[summary(one) for one in objects])


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pool_info
short_description: Read machine config pools
description:
  - Returns pools with their progress, pauses and Holds, and one pool also with its conditions and nodes.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.reads
options:
  name:
    description: One pool. Without it all of them. One that does not exist is an empty list.
    type: str
"""

EXAMPLES = r"""
- name: Who holds the workers
  syncline.syncline.pool_info:
    name: worker
  register: workers
"""

RETURN = r"""
pools:
  description: The pools by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: success
    state:
      description: C(Updated), C(Updating), C(Paused), C(Held), C(DrainBlocked), C(Degraded) or C(Unknown).
      type: str
      returned: success
    paused:
      description: Whether C(spec.paused) is set.
      type: bool
      returned: success
    configuration:
      description: Names of the config that is wanted and of the one that is reached.
      type: dict
      returned: success
    machines:
      description: Counts of its nodes.
      type: dict
      returned: success
      sample: {updated: 2, ready: 2, unavailable: 0, degraded: 0, total: 2}
    holds:
      description: Its Holds with owner, reason and end.
      type: list
      elements: dict
      returned: success
    conditions:
      description: Its conditions.
      type: list
      elements: dict
      returned: with O(name)
    nodes:
      description: Its nodes with state and configs.
      type: list
      elements: dict
      returned: with O(name)
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program


def main():
    module = AnsibleModule(argument_spec=dict(name={"type": "str"}, **ARGUMENTS), supports_check_mode=True)
    program, name = Program(module), module.params["name"]
    if name:
        found = program.document(["pool", "get", name], missing=f"MachineConfigPool {name} does not exist")[1]
        pools = [] if found is None else [found]
    else:
        pools = program.document(["pool", "list"])[1]
    module.exit_json(changed=False, pools=pools)


if __name__ == "__main__":
    main()

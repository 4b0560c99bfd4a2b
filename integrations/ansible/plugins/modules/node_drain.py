#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Drain, cordon and uncordon a node
description:
  - Cordons a node and evicts its pods within their disruption budgets. Pods of DaemonSets and static pods stay.
  - A drain that cannot finish does not begin. The failure names the budget or pod, and what would help.
  - A node that its pool drains is left to its pool; the task fails and says so.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.changes
options:
  name:
    description: The node.
    type: str
    required: true
  state:
    description: V(drained) is cordoned and without pods that could leave; V(uncordoned) ends both.
    type: str
    choices: [drained, cordoned, uncordoned]
    default: drained
  force:
    description: Evicts also pods that no controller replaces.
    type: bool
    default: false
  insist:
    description: Begins although the forecast says that the drain cannot finish.
    type: bool
    default: false
  timeout:
    description: Seconds to wait for the pods. The node stays cordoned when they are over.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Empty the node before its disk is replaced
  syncline.syncline.node_drain:
    name: "{{ inventory_hostname }}"
    timeout: 900
  delegate_to: localhost

- name: It takes pods again
  syncline.syncline.node_drain:
    name: "{{ inventory_hostname }}"
    state: uncordoned
  delegate_to: localhost
"""

RETURN = r"""
evicted:
  description: Pods that left, or in check mode would leave.
  returned: when O(state=drained)
  type: list
  elements: str
  sample: [shop/web-5d9c7]
staying:
  description: Pods that stay, each with the reason.
  returned: when O(state=drained)
  type: dict
schedulable:
  description: Whether the node takes pods now.
  returned: success
  type: bool
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, difference, flags

VERBS = {"drained": "drain", "cordoned": "cordon", "uncordoned": "uncordon"}


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            state={"type": "str", "choices": ["drained", "cordoned", "uncordoned"], "default": "drained"},
            force={"type": "bool", "default": False},
            insist={"type": "bool", "default": False},
            timeout={"type": "int", "default": 600},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    words = ["node", VERBS[params["state"]], params["name"]] + (["--dry-run"] if module.check_mode else [])
    if params["state"] == "drained":
        words += ["--timeout", str(params["timeout"]), *flags(params, {"force": "--force", "insist": "--insist"})]
    done = program.document(words)[1]
    moved = done.get("cordoned", done["changed"])
    before = {"schedulable": done["schedulable"] is not moved, "pods": done.get("evicted", [])}
    result = {key: done[key] for key in ("evicted", "staying") if key in done}
    schedulable = before["schedulable"] if module.check_mode else done["schedulable"]
    after = {"schedulable": done["schedulable"], "pods": []}
    module.exit_json(
        changed=done["changed"],
        schedulable=schedulable,
        diff=difference(params["name"], before, after),
        **result,
    )


if __name__ == "__main__":
    main()

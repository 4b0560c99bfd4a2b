#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Say what the next sync of an Application would do
description:
  - Returns phases, waves, actions, gates and warnings of a sync, from the function that carries it out.
  - Fails on request, so that a play ends before anything is changed.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
  diff_mode:
    description: Returns the differences of the planned objects; values of Secrets are masked.
    support: full
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
    description: Plans a sync to this branch, tag or commit.
    type: str
  prune:
    description: Plans a sync that deletes what left the repository.
    type: bool
    default: false
  resources:
    description: Only these objects, each as C(GROUP:KIND:NAME).
    type: list
    elements: str
    default: []
  fail_on:
    description:
      - Verdicts and findings that fail the task.
      - V(unsafe) is a change that the cluster would refuse, or a mass deletion; V(blocked) a sync that cannot begin.
    type: list
    elements: str
    choices: [changes, blocked, unsafe, warnings]
    default: []
"""

EXAMPLES = r"""
- name: End here if the next release would be refused
  syncline.syncline.plan:
    name: shop
    revision: next
    fail_on: [blocked, unsafe]
"""

RETURN = r"""
verdict:
  description: C(nothing to do), C(changes), C(blocked) or C(unsafe).
  returned: always
  type: str
waves:
  description: Phases and waves with their actions, gates, deadlines and Holds.
  returned: always
  type: list
  elements: dict
problems:
  description: Why the sync cannot begin.
  returned: always
  type: list
  elements: str
unsafe:
  description: What the cluster would refuse, and mass deletions.
  returned: always
  type: list
  elements: str
warnings_found:
  description: Warnings of the plan.
  returned: always
  type: list
  elements: str
machines:
  description: What its machine configs do to nodes, by pool.
  returned: always
  type: list
  elements: dict
revisions:
  description: The commits that it was made of.
  returned: always
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.applications import differences, planned, waves
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program

FAIL_ON = ["changes", "blocked", "unsafe", "warnings"]


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            namespace={"type": "str", "default": "argocd"},
            revision={"type": "str"},
            prune={"type": "bool", "default": False},
            resources={"type": "list", "elements": "str", "default": []},
            fail_on={"type": "list", "elements": "str", "choices": FAIL_ON, "default": []},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    plan = planned(Program(module), module.params)
    result = {
        "changed": False,
        "verdict": plan["verdict"],
        "waves": waves(plan),
        "problems": plan["problems"],
        "unsafe": plan["unsafe"],
        "warnings_found": plan["warnings"],
        "machines": plan["machines"],
        "revisions": plan["revisions"],
        "diff": differences(plan),
    }
    wanted = module.params["fail_on"]
    why = plan["unsafe"] if plan["verdict"] == "unsafe" else plan["problems"]
    start = f"the plan of {plan['application']}"
    if plan["verdict"] in wanted:
        module.fail_json(msg=f"{start} is: {'; '.join([plan['verdict'], *why])}", **result)
    if "warnings" in wanted and plan["warnings"]:
        module.fail_json(msg=f"{start} warns: {'; '.join(plan['warnings'])}", **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()

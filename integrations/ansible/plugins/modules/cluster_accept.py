#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_accept
short_description: Accept clusters to a hub, or deny them
description:
  - Accepts a cluster that asked to join with C(syncline join), approves the certificate request of its agent after its
    subject, signer and user were checked, or takes its rights back.
  - A request that may not be approved fails the task with the reason.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.changes
options:
  name:
    description: The cluster.
    type: str
    required: true
  state:
    description: Whether the hub accepts it. V(denied) deletes nothing.
    type: str
    choices: [accepted, denied]
    default: accepted
"""

EXAMPLES = r"""
- name: The cluster may join
  syncline.syncline.cluster_accept:
    name: cluster1
"""

RETURN = r"""
cluster:
  description: The cluster before the task, as C(syncline cluster get) shows it, without credentials.
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, difference


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            state={"type": "str", "choices": ["accepted", "denied"], "default": "accepted"},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    found = program.document(["cluster", "get", params["name"]])[1].get("managed")
    if found is None:
        module.fail_json(msg=f"{params['name']} is a destination of Applications, and no cluster that joins this hub")
    wanted = params["state"] == "accepted"
    if found.get("requests") is None:
        module.fail_json(msg="the requests of agents may not be listed; ask for certificatesigningrequests, verb list")
    before = {"accepted": found["accepted"], "requests": [one["name"] for one in found["requests"]]}
    changed = before != {"accepted": wanted, "requests": []}
    if changed and not module.check_mode:
        program.run(["cluster", "accept" if wanted else "deny", params["name"]])
    after = {"accepted": wanted, "requests": []}
    module.exit_json(changed=changed, cluster=found, diff=difference(params["name"], before, after))


if __name__ == "__main__":
    main()

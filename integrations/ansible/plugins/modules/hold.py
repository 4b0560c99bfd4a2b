#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: hold
short_description: Hold machine config pools
description:
  - A Hold keeps pools from beginning new node updates until it ends, with an owner and a reason that everybody sees.
  - Holds of others are never changed; they are returned.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.changes
  - syncline.syncline.hold
options:
  pools:
    description: The pools.
    type: list
    elements: str
    required: true
  state:
    description: Whether the owner holds them.
    type: str
    choices: [present, absent]
    default: present
seealso:
  - module: syncline.syncline.pool
"""

EXAMPLES = r"""
- name: No reboots while the databases are moved
  syncline.syncline.hold:
    pools: [worker, infra]
    owner: database team
    reason: moving the databases
    length: 4h

- name: They are moved
  syncline.syncline.hold:
    pools: [worker, infra]
    owner: database team
    state: absent
"""

RETURN = r"""
holds:
  description: The Holds on each pool, those of others too.
  returned: success
  type: dict
  sample: {worker: [{owner: ansible, reason: disks, expiresAt: '2026-05-01T06:00:00Z'}]}
"""

from datetime import datetime, timezone

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.pools import (
    HOLD_ARGUMENTS,
    ends_of,
    held,
    own_hold,
    pool,
    with_hold,
)
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, difference


def main():
    module = AnsibleModule(
        argument_spec=dict(
            pools={"type": "list", "elements": "str", "required": True},
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            **HOLD_ARGUMENTS,
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if not params["pools"]:
        module.fail_json(msg="pools: give at least one pool")
    before, after, ends = {}, {}, {}
    now = datetime.now(timezone.utc)
    for name in params["pools"]:
        found = pool(program, name)
        mine = own_hold(found, params["owner"])
        present = params["state"] == "present"
        until = ends_of(module, mine, now) if present else ""
        before[name] = after[name] = held(found)
        if until or (mine is not None and not present):
            after[name], ends[name] = with_hold(found, params, until), until
    for until in sorted(set(ends.values())):
        names = [name for name in params["pools"] if ends.get(name) == until]
        words = ["pause", *names, "--until", until, "--reason", params["reason"]] if until else ["resume", *names]
        if not module.check_mode:
            program.run(["pool", *words, "--owner", params["owner"]])
    module.exit_json(changed=bool(ends), holds=after, diff=difference("Holds", before, after))


if __name__ == "__main__":
    main()

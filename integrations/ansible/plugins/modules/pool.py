#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: pool
short_description: Pause, resume and await a machine config pool
description:
  - Pauses a pool by a Hold with owner, reason and end, or on request by C(spec.paused), which has none of them.
  - Waits until all nodes of the pool have the config that it aims at.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
  - syncline.syncline.program.changes
  - syncline.syncline.hold
options:
  name:
    description: The pool.
    type: str
    required: true
  paused:
    description: Whether the owner pauses the pool. Without it nothing is changed.
    type: bool
  spec:
    description: Sets C(spec.paused) instead, as C(oc patch) does. Owner, reason and end do not count then.
    type: bool
    default: false
  wait_updated:
    description: Waits until the pool is updated. Fails at once if it is degraded. Not in check mode.
    type: bool
    default: false
  timeout:
    description: Seconds to wait.
    type: int
    default: 3600
seealso:
  - module: syncline.syncline.hold
"""

EXAMPLES = r"""
- name: Let the workers update, and wait for the last of them
  syncline.syncline.pool:
    name: worker
    paused: false
    wait_updated: true
    timeout: 7200
"""

RETURN = r"""
pool:
  description: The pool as C(syncline pool get) shows it, with state, counts, Holds, conditions and nodes.
  returned: success
  type: dict
still_held_by:
  description: Who else keeps the pool from updating.
  returned: success
  type: list
  elements: str
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
            name={"type": "str", "required": True},
            paused={"type": "bool"},
            spec={"type": "bool", "default": False},
            wait_updated={"type": "bool", "default": False},
            timeout={"type": "int", "default": 3600},
            **HOLD_ARGUMENTS,
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    found = pool(program, params["name"])
    words, after = change(module, found)
    before = {"paused": found["paused"], "holds": held(found)}
    if words and not module.check_mode:
        program.run(["pool", *words])
    if params["wait_updated"] and not module.check_mode:
        program.document(["pool", "wait", params["name"], "--timeout", str(params["timeout"])])
    if (words or params["wait_updated"]) and not module.check_mode:
        found = pool(program, params["name"])
    others = ["{}: {}".format(one["owner"], one["reason"]) for one in after["holds"] if one["owner"] != params["owner"]]
    others += ["spec.paused"] if after["paused"] and not params["paused"] else []
    module.exit_json(
        changed=bool(words), pool=found, still_held_by=others, diff=difference(params["name"], before, after)
    )


def change(module, found):
    """Return the words that bring the pool to where it is wanted, none if it is there, and what it is like then."""
    params = module.params
    name, wanted = params["name"], params["paused"]
    after = {"paused": found["paused"], "holds": held(found)}
    if wanted is None:
        return [], after
    verb = "pause" if wanted else "resume"
    if params["spec"]:
        same = found["paused"] is wanted
        return ([] if same else [verb, name, "--spec"]), after | {"paused": wanted}
    mine = own_hold(found, params["owner"])
    until = ends_of(module, mine, datetime.now(timezone.utc)) if wanted else ""
    if not until and (wanted or mine is None):
        return [], after
    words = [verb, name, "--owner", params["owner"]]
    words += ["--until", until, "--reason", params["reason"]] if wanted else []
    return words, after | {"holds": with_hold(found, params, until)}


if __name__ == "__main__":
    main()

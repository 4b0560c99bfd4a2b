#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_join
short_description: Join a cluster to a hub
description:
  - Proposes this cluster to the hub with a line that C(syncline hub token) printed there, asks for the certificate of
    its agent, and waits until an administrator of the hub has accepted both, for example by
    M(syncline.syncline.cluster_accept).
  - A task whose time is over goes on where it was when it is run again.
  - The credentials are kept below E(SYNCLINE_HOME) of the machine where the module runs. Start C(syncline agent) there.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
attributes:
  check_mode:
    description: Says whether the cluster has joined already; nothing is proposed.
    support: full
  diff_mode:
    description: What changes are credentials, which are never shown.
    support: none
options:
  name:
    description: Name of the cluster on the hub.
    type: str
    required: true
  line:
    description: The line of C(syncline hub token). It has a token.
    type: str
    required: true
  timeout:
    description: Seconds to wait for the hub.
    type: int
    default: 600
  certificate_seconds:
    description: Lifetime of certificates to ask for. Without it the hub's.
    type: int
seealso:
  - module: syncline.syncline.cluster_accept
"""

EXAMPLES = r"""
- name: This cluster joins the hub
  syncline.syncline.cluster_join:
    name: eu-1
    line: "{{ join_line }}"
    timeout: 1800
"""

RETURN = r"""
cluster:
  description: Its name on the hub.
  returned: success
  type: str
hub:
  description: URL of the hub.
  returned: success
  type: str
joined:
  description: Whether its agent has credentials of its own. In check mode, whether it has them already.
  returned: success
  type: bool
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, flags


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            line={"type": "str", "required": True, "no_log": True},
            timeout={"type": "int", "default": 600},
            certificate_seconds={"type": "int"},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    if params["timeout"] <= 0:
        module.fail_json(msg=f"timeout: {params['timeout']}; give seconds, at least 1")
    words = ["join", "-", "--name", params["name"], "--json", "--dry-run" if module.check_mode else "--no-run"]
    words += flags(params, {"timeout": "--timeout", "certificate_seconds": "--certificate-seconds"})
    found = json.loads(program.run(words, given=params["line"])[1].splitlines()[-1])
    result = {key: found[key] for key in ("cluster", "hub", "joined")}
    module.exit_json(changed=not found["joinedBefore"], **result)


if __name__ == "__main__":
    main()

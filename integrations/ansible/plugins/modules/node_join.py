#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_join
short_description: Make the kubeconfig with which a machine joins as a node
description:
  - Asks for a client certificate of the node's agent, approves it with your rights, and writes a kubeconfig with it.
    The rights of agents are made where they are missing.
  - Run it where an administrator's kubeconfig is. Bring O(dest) to the machine, and start the agent there with
    M(syncline.syncline.node_agent).
  - A file that is for this node and server, and valid for O(keep_days) more, stays as it is.
version_added: 0.1.0
author: The Syncline authors (@syncline)
extends_documentation_fragment:
  - syncline.syncline.program
attributes:
  check_mode:
    description: Says whether the file would be written; no certificate is asked for.
    support: full
  diff_mode:
    description: The file is a secret, so its content is never shown.
    support: none
options:
  name:
    description: The node.
    type: str
    required: true
  dest:
    description: Where the kubeconfig goes, mode 0600.
    type: path
    required: true
  server:
    description: URL at which the machine reaches the API server. Without it that of your kubeconfig.
    type: str
  tls_server_name:
    description: Name in the server's certificate, if not that of the URL.
    type: str
  days:
    description: The certificate's life.
    type: int
    default: 365
  keep_days:
    description: Days that the certificate in O(dest) has to be valid for, so that the file stays.
    type: int
    default: 30
seealso:
  - module: syncline.syncline.node_agent
"""

EXAMPLES = r"""
- name: A kubeconfig for the machine
  syncline.syncline.node_join:
    name: "{{ inventory_hostname }}"
    dest: "/root/joins/{{ inventory_hostname }}.kubeconfig"
    server: https://api.example.com:6443
  delegate_to: localhost
"""

RETURN = r"""
dest:
  description: The file.
  returned: success
  type: str
server:
  description: The URL in it.
  returned: success
  type: str
said:
  description: What the program says, without secrets.
  returned: success
  type: str
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import ARGUMENTS, Program, flags

FLAGS = {"server": "--server", "tls_server_name": "--tls-server-name", "days": "--days"}


def main():
    module = AnsibleModule(
        argument_spec=dict(
            name={"type": "str", "required": True},
            dest={"type": "path", "required": True},
            server={"type": "str"},
            tls_server_name={"type": "str"},
            days={"type": "int", "default": 365},
            keep_days={"type": "int", "default": 30},
            **ARGUMENTS,
        ),
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    words = ["node", "kubeconfig", params["name"], "-o", params["dest"], "--keep", str(params["keep_days"])]
    words += ["--json", *flags(params, FLAGS)] + (["--dry-run"] if module.check_mode else [])
    found = json.loads(program.run(words)[1])
    module.exit_json(changed=found["written"], dest=params["dest"], server=found["server"], said=found["said"])


if __name__ == "__main__":
    main()

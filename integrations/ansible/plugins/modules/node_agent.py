#!/usr/bin/python
# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent
short_description: Run the node agent on a machine
description:
  - Makes the agent a service of systemd on this machine, enabled and started, with the kubeconfig that
    M(syncline.syncline.node_join) made.
  - Nothing is written when unit and kubeconfig are as wanted. The agent renews the certificate in its kubeconfig by
    itself, so a kubeconfig that is there stays unless O(replace=true).
version_added: 0.1.0
author: The Syncline authors (@syncline)
attributes:
  check_mode:
    description: Returns whether the unit or the kubeconfig would be written.
    support: full
  diff_mode:
    description: Shows the unit; the kubeconfig is a secret and never shown.
    support: full
options:
  program:
    description: The C(syncline) program on this machine, by name on C(PATH) or by its path.
    type: str
    default: syncline
  node:
    description: Its node. Without it the host name.
    type: str
  kubeconfig_file:
    description: The kubeconfig on this machine. It has to be self-contained.
    type: path
  replace:
    description: Replaces a kubeconfig that is there and differs.
    type: bool
    default: false
  register_node:
    description: Makes the Node and keeps it ready, for machines without a kubelet.
    type: bool
    default: false
  labels:
    description: Labels of the Node that O(register_node) makes.
    type: dict
    default: {}
  root:
    description: Directory of the machine's files. Nothing outside is touched.
    type: path
    default: /
requirements:
  - The C(syncline) program on the machine.
seealso:
  - module: syncline.syncline.node_join
"""

EXAMPLES = r"""
- name: The kubeconfig
  ansible.builtin.copy:
    src: "/root/joins/{{ inventory_hostname }}.kubeconfig"
    dest: /root/agent.kubeconfig
    mode: "0600"

- name: The agent
  syncline.syncline.node_agent:
    node: "{{ inventory_hostname }}"
    kubeconfig_file: /root/agent.kubeconfig
    register_node: true
    labels:
      node-role.kubernetes.io/worker: ""
"""

RETURN = r"""
unit:
  description: The unit of systemd.
  returned: success
  type: str
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import Program, flags

UNIT = "etc/systemd/system/syncline-node-agent.service"
KUBECONFIG = "etc/syncline/node-agent.kubeconfig"
MAX_BYTES = 1 << 20


def main():
    module = AnsibleModule(
        argument_spec={
            "program": {"type": "str", "default": "syncline"},
            "node": {"type": "str"},
            "kubeconfig_file": {"type": "path"},
            "replace": {"type": "bool", "default": False},
            "register_node": {"type": "bool", "default": False},
            "labels": {"type": "dict", "default": {}},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    program, params = Program(module), module.params
    words = ["node-agent", "install", "--program", program.path, "--root", params["root"]]
    words += flags(params, {"node": "--node", "register_node": "--register"})
    for key, value in sorted(params["labels"].items()):
        words += ["--label", f"{key}={value}"]
    unit = program.run([*words, "--print"])[1]
    there = content(module, os.path.join(params["root"], UNIT))
    brings = bool(params["kubeconfig_file"]) and brought(module, os.path.join(params["root"], KUBECONFIG))
    changed = there != unit or brings
    if changed and not module.check_mode:
        program.run(words + (["--kubeconfig", params["kubeconfig_file"]] if brings else []))
    diff = {"before_header": UNIT, "after_header": UNIT, "before": there, "after": unit}
    module.exit_json(changed=changed, unit=unit, diff=diff)


def brought(module, path):
    """Return whether the given kubeconfig has to be written."""
    if not os.path.exists(path):
        return True
    given = module.params["kubeconfig_file"]
    return module.params["replace"] and content(module, given) != content(module, path)


def content(module, path):
    """Return the text of a file, empty if there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except FileNotFoundError:
        return ""
    except OSError as error:
        module.fail_json(msg=f"{path}: {error.strerror}")


if __name__ == "__main__":
    main()

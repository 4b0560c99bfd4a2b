# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How modules reach the cluster, and what all of them support."""

    DOCUMENTATION = r"""
options:
  program:
    description:
      - The C(syncline) program on the machine where the module runs, by name on C(PATH) or by its path.
    type: str
    default: syncline
  kubeconfig:
    description:
      - Kubeconfig on the machine where the module runs.
      - Without it the program's own default is used, E(KUBECONFIG) or the cluster that C(syncline up) started last.
    type: path
  context:
    description:
      - Context of the kubeconfig.
    type: str
requirements:
  - The C(syncline) program on the machine where the module runs; mostly that is the controller
    (C(delegate_to=localhost)).
"""

    CHANGES = r"""
attributes:
  check_mode:
    description: Returns what would change; nothing is written.
    support: full
  diff_mode:
    description: Returns what the module changes as before and after.
    support: full
"""

    READS = r"""
attributes:
  check_mode:
    description: The module changes nothing.
    support: full
  diff_mode:
    description: The module changes nothing.
    support: none
"""

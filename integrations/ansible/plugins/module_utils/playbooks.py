# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

"""AnsibleConfigs as modules return them."""

from typing import Any

COUNTS = ("nodes", "applied", "failing")


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Return what people ask of an AnsibleConfig."""
    status = found.get("status") or {}
    return {
        "name": found["metadata"]["name"],
        "pool": found["spec"]["pool"],
        "revision": status.get("revision", ""),
        "counts": {key: status.get(key, 0) for key in COUNTS},
        "conditions": status.get("conditions", []),
        "nodes": status.get("nodeStatuses", []),
    }

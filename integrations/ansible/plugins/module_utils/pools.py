# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Machine config pools and the Holds on them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.syncline.syncline.plugins.module_utils.program import Program

HOLD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "owner": {"type": "str", "default": "ansible"},
    "reason": {"type": "str", "default": "held by a play"},
    "length": {"type": "str", "default": "1h"},
    "until": {"type": "str"},
}
"""Options of a Hold; doc fragment ``hold``."""
LENGTH = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?")


def pool(program: Program, name: str) -> dict[str, Any]:
    """Return the pool with its Holds, conditions and nodes."""
    return program.document(["pool", "get", name])[1]


def length_of(module: AnsibleModule) -> timedelta:
    """Return the option ``length``; what is none fails the module."""
    text = module.params["length"]
    found = LENGTH.fullmatch(text)
    parts = [int(one or 0) for one in found.groups()] if found else [0]
    if not any(parts):
        module.fail_json(msg=f"length: {text}; write 90m, 2h or 1h30m")
    return timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])


def instant(module: AnsibleModule, option: str, text: str) -> datetime:
    """Return an instant in UTC; what is none fails the module."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        module.fail_json(msg=f"{option}: {text}; write an instant like 2026-05-01T06:00:00Z")
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def own_hold(found: dict[str, Any], owner: str) -> dict[str, Any] | None:
    """Return the owner's Hold on a pool."""
    return next((one for one in found["holds"] if one["owner"] == owner), None)


def ends_of(module: AnsibleModule, hold: dict[str, Any] | None, now: datetime) -> str:
    """Return when the wanted Hold ends, or empty text if the one that is there does.

    Without ``until`` one with the same reason and at least half of ``length`` left does.
    """
    params = module.params
    length = length_of(module)
    wanted = instant(module, "until", params["until"]) if params["until"] else now + length
    if wanted <= now:
        module.fail_json(msg="until: {} is over".format(params["until"]))
    if hold is not None and hold["reason"] == params["reason"]:
        there = instant(module, "expiresAt", hold["expiresAt"])
        if there == wanted if params["until"] else there >= now + length / 2:
            return ""
    return wanted.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def held(found: dict[str, Any]) -> list[dict[str, str]]:
    """Return the Holds on a pool as a ``diff`` shows them."""
    return [{key: one[key] for key in ("owner", "reason", "expiresAt")} for one in found["holds"]]


def with_hold(found: dict[str, Any], params: dict[str, Any], ends: str) -> list[dict[str, str]]:
    """Return the Holds on a pool as they are with the wanted one, or without the owner's if ``ends`` is empty."""
    others = [one for one in held(found) if one["owner"] != params["owner"]]
    mine = {"owner": params["owner"], "reason": params["reason"], "expiresAt": ends}
    return others + ([mine] if ends else [])

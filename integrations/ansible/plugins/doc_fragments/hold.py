# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Options of a Hold by hand."""

    DOCUMENTATION = r"""
options:
  owner:
    description: Who holds; a Hold is of one owner and one pool.
    type: str
    default: ansible
  reason:
    description: Why; people and conditions show it.
    type: str
    default: held by a play
  length:
    description:
      - How long the Hold lives, in hours, minutes and seconds.
      - A Hold that is there with the same reason is extended only when less than half of it is left, so that a second
        run changes nothing.
    type: str
    default: 1h
  until:
    description: The same as an instant, C(2026-05-01T06:00:00Z). Used instead of O(length).
    type: str
"""

# Copyright: The Syncline authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the ``syncline`` program for modules: words in, its JSON out, its refusals as the module's failure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ARGUMENTS: dict[str, dict[str, Any]] = {
    "program": {"type": "str", "default": "syncline"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
"""Options of every module; doc fragment ``program``."""
MAX_TEXT = 20_000
"""Characters of the program's output in a failure."""
ERROR, WARNING = "error: ", "warning: "
"""How lines of its standard error begin."""
BLOCKED = 3
"""The program's exit code for what waits for others, or would not end."""


class Program:
    """The program, with the kubeconfig and context of the module."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.path = module.get_bin_path(module.params["program"], required=True)
        self._access: list[str] = []
        for option in ("kubeconfig", "context"):
            if module.params.get(option):
                self._access += ["--" + option, module.params[option]]

    def run(
        self, words: Sequence[str], codes: Collection[int] = (0,), missing: str = "", given: str | None = None
    ) -> tuple[int, str]:
        """Return exit code and standard output; another code than ``codes`` fails the module with the program's words.

        ``missing``: the beginning of an error that is no failure; then the code is returned, and no output. ``given``:
        its standard input, for what may not stand among the words.
        """
        code, out, err = self.module.run_command([self.path, *words, *self._access], data=given)
        said = [line for line in err.splitlines() if line.strip()]
        for line in said:
            if line.startswith(WARNING):
                self.module.warn(line[len(WARNING) :])
        if code in codes:
            return code, out
        message = spoken([line for line in said if not line.startswith(WARNING)])
        if missing and message.startswith(missing):
            return code, ""
        self.module.fail_json(
            msg=message or f"syncline {' '.join(words)} ended with {code} and said nothing",
            rc=code,
            blocked=code == BLOCKED,
            said="\n".join(said)[:MAX_TEXT],
        )
        return None

    def document(self, words: Sequence[str], codes: Collection[int] = (0,), missing: str = "") -> tuple[int, Any]:
        """Return exit code and the document that the program prints with ``-o json``; None if it is ``missing``."""
        code, out = self.run([*words, "-o", "json"], codes, missing)
        if code not in codes:
            return code, None
        try:
            return code, json.loads(out)
        except ValueError as error:
            self.module.fail_json(msg="syncline {} printed no JSON: {}".format(" ".join(words), error), rc=code)


def spoken(said: Sequence[str]) -> str:
    """Return the program's error: from its last line that begins so, else all that it said."""
    starts = [at for at, line in enumerate(said) if line.startswith(ERROR)]
    text = "\n".join(said[starts[-1] :] if starts else said)[:MAX_TEXT]
    return text[len(ERROR) :] if starts else text


def flags(params: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the flags for the options that are set: ``True`` as a flag alone, a list as a flag for each."""
    words: list[str] = []
    for option, flag in names.items():
        value = params.get(option)
        if value is True:
            words.append(flag)
        elif isinstance(value, list):
            words += [word for one in value for word in (flag, str(one))]
        elif value not in (None, False, ""):
            words += [flag, str(value)]
    return words


def difference(header: str, before: Any, after: Any) -> dict[str, str]:
    """Return one entry of a module's ``diff``."""
    texts = [json.dumps(one, indent=2, sort_keys=True, ensure_ascii=False) + "\n" for one in (before, after)]
    return {"before_header": header, "after_header": header, "before": texts[0], "after": texts[1]}

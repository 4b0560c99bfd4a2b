"""Runs modules of the collection as ansible-core does, without a play around each: started by ``test_collection_live``.

Reads lines of JSON from standard input (module, arguments, check mode), runs each in a process of its own, and writes
what the module says as a line. The modules and ansible-core are GPL: they are loaded here, not by the tests.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

MODULES = "ansible_collections.syncline.syncline.plugins.modules"


def run(module: Any, given: dict[str, Any]) -> None:
    """Run a module in this process, and end it."""
    from ansible.module_utils import basic

    flags = {"_ansible_check_mode": given["check"], "_ansible_diff": True}
    basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": given["arguments"] | flags}).encode()
    basic._ANSIBLE_PROFILE = "legacy"
    try:
        module.main()
    except SystemExit:
        pass
    except BaseException as error:
        sys.stdout.write(json.dumps({"failed": True, "msg": f"{type(error).__name__}: {error}"}))
    finally:
        sys.stdout.flush()
        os._exit(0)


def main() -> None:
    for line in sys.stdin:
        given = json.loads(line)
        module = importlib.import_module(f"{MODULES}.{given['module']}")
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.dup2(writing, 1)
            run(module, given)
        os.close(writing)
        with os.fdopen(reading) as said:
            text = said.read()
        os.waitpid(child, 0)
        sys.stdout.write(json.dumps(json.loads(text)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

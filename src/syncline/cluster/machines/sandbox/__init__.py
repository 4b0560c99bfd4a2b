"""The sandbox of local commands: a program of its own (``cluster/machines/sandbox/__main__.py``), standard library
alone, because it is started for every command.

Process tree: the *guard* stays outside and belongs to the cluster; *init* is process 1 inside and has all rights over
the sandbox and none over the machine; the command and the forwarder to the API have none over either.
"""

from __future__ import annotations

import os

__all__ = ["CANNOT", "CONNECTIONS", "PROGRAM"]

CANNOT = 125
"""Exit code of a sandbox that could not be made."""
CONNECTIONS = 64
"""Connections to the API at once from one container."""
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
"""What is to be run with ``python -I -S``."""

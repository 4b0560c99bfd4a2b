"""The sandbox of local commands: a separate program (``cluster/machines/sandbox/__main__.py``) with only the standard
library, because it is started for every command.

Process tree: the *guard* stays outside and belongs to the cluster; *init* is process 1 inside, with all rights in the
sandbox and none on the machine; the command and the API forwarder have no rights in either.
"""

from __future__ import annotations

import os

CANNOT = 125
"""Exit code if the sandbox could not be created."""
CONNECTIONS = 64
"""Concurrent connections to the API per container."""
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
"""Path to run with ``python -I -S``."""

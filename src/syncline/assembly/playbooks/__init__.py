"""The throwaway root in which a playbook is captured: a program of its own with only the standard library."""

from __future__ import annotations

import os

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
"""Path to run with ``python -I -S``; ``sources/ansible/capturing.py`` gets it from ``assembly``."""

"""The input of explanations: a :class:`View` holds one snapshot of the cluster and the ends of logs.

The command (or a test) creates it; the explanations only read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from syncline.apply.causes import view
from syncline.apply.causes.view import Found as Found
from syncline.apply.causes.view import LogTail as LogTail
from syncline.apply.causes.view import no_logs as no_logs
from syncline.apply.causes.view import one_line as one_line
from syncline.apply.causes.view import unread as unread
from syncline.apply.causes.view import warnings_of as warnings_of
from syncline.machineconfig.causes.overview import Overview


@dataclass(frozen=True)
class View(view.View):
    """A read-only view of a cluster, for explanations of any kind."""

    @cached_property
    def machines(self) -> Overview:
        """The same snapshot in the form that the machine-config causes need."""
        return Overview(self.cluster, self.now)

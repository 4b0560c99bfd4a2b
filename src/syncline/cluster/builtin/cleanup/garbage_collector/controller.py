"""Define the garbage collector's controller, which watches every kind."""

from __future__ import annotations

from syncline.cluster.builtin.cleanup.garbage_collector import observe as observing
from syncline.cluster.builtin.cleanup.garbage_collector import plan as planning
from syncline.cluster.builtin.owners import ownership_differs
from syncline.control.controller import Controller, Watch
from syncline.kube.objects import GroupKind

GARBAGE_COLLECTOR_CONTROLLER = Controller(
    name="garbage-collector",
    kind=GroupKind("", "Pod"),
    watches=(Watch(None, observing.concerned, ownership_differs),),
    predicate=ownership_differs,
    observe=observing.observe,
    plan=planning.plan,
)
"""Deletes objects without owners; executes foreground and orphan deletion.

A key is an object of any kind; ``kind`` is one of them, because a controller must name one.
"""

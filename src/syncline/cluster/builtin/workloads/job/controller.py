"""Define the Job controller and the kinds it watches."""

from __future__ import annotations

from syncline.cluster.builtin.owners import selecting_owners
from syncline.cluster.builtin.pods import POD
from syncline.cluster.builtin.workloads.job import observe as observing
from syncline.cluster.builtin.workloads.job import plan as planning
from syncline.cluster.builtin.workloads.job.observe import JOB
from syncline.control.controller import METADATA, Controller, Watch

JOB_CONTROLLER = Controller(
    name="job",
    kind=JOB,
    watches=(Watch(POD, selecting_owners(JOB), reads=METADATA),),
    observe=observing.observe,
    plan=planning.plan,
    settle=planning.settle,
)
"""Runs pods until enough of them have succeeded."""

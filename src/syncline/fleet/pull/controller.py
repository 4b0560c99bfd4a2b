"""The controllers of the pull model on the hub: they connect the plans with the cache and the watches.

Each event concerns one Application, work or report; nothing is polled. Only the pass over GitOpsClusters is over all of
them, as upstream's.
"""

from __future__ import annotations

from typing import Any

from syncline.control.controller import Controller
from syncline.fleet.pull.content.controller import content_controllers
from syncline.fleet.pull.content.observe import Surroundings
from syncline.fleet.pull.controllers.applications import application_controller
from syncline.fleet.pull.controllers.clusters import (
    gitops_controller,
    import_controller,
    rights_controller,
    secret_controller,
)
from syncline.fleet.pull.controllers.hubcopies import copy_controller
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.controllers.queries import query_controller
from syncline.fleet.pull.controllers.reports import report_controller
from syncline.fleet.pull.controllers.status import status_controller
from syncline.fleet.pull.order.controller import order_controller
from syncline.fleet.pull.order.observe import Reading


def pull_controllers(settings: PullSettings, content: Surroundings | None = None) -> tuple[Controller[Any], ...]:
    """Return the controllers of the pull model. ``content``: for rendering on the hub; None: this process renders
    nothing."""
    reading = Reading(settings)
    return (
        application_controller(reading.carried),
        order_controller(reading),
        copy_controller(),
        status_controller(settings),
        report_controller(),
        query_controller(),
        rights_controller(),
        secret_controller(settings),
        import_controller(),
        gitops_controller(),
        *(content_controllers(content, reading.carried) if content is not None else ()),
    )

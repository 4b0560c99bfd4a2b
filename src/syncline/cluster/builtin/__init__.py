"""The built-in controllers of every cluster, as in Kubernetes' controller manager and scheduler.

``assembly`` and tests run :func:`builtin_controllers` on one control loop; :func:`handlers` returns the actions that
only they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.action import Handler
from syncline.cluster.access.pki import CertificateAuthority
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.builtin.access.certificates.approval import ApproveHandler, ApproveIfAllowed
from syncline.cluster.builtin.access.certificates.controller import signing_request_controllers
from syncline.cluster.builtin.access.certificates.signing import Sign, SignHandler
from syncline.cluster.builtin.access.clusterrole_aggregation import CLUSTER_ROLE_AGGREGATION_CONTROLLER
from syncline.cluster.builtin.access.serviceaccount import namespace_defaults_controller
from syncline.cluster.builtin.access.token_secrets import FillHandler, FillTokenSecret, token_secret_controller
from syncline.cluster.builtin.actions import ConfirmAbsent, ConfirmEmpty, ConfirmHandler, FindScale, ReadScale
from syncline.cluster.builtin.cleanup.event_expiry import EVENT_EXPIRY_CONTROLLER
from syncline.cluster.builtin.cleanup.garbage_collector.controller import GARBAGE_COLLECTOR_CONTROLLER
from syncline.cluster.builtin.cleanup.namespace.controller import NAMESPACE_CONTROLLER
from syncline.cluster.builtin.cleanup.pod_garbage_collector import POD_GARBAGE_COLLECTOR_CONTROLLER
from syncline.cluster.builtin.node_lifecycle.controller import node_lifecycle_controller
from syncline.cluster.builtin.node_lifecycle.observe import Heartbeats
from syncline.cluster.builtin.policy.disruption_budget import DISRUPTION_BUDGET_CONTROLLER
from syncline.cluster.builtin.policy.flow_schema import FLOW_SCHEMA_CONTROLLER
from syncline.cluster.builtin.policy.resource_quota import RESOURCE_QUOTA_CONTROLLER
from syncline.cluster.builtin.policy.types import POLICY_TYPES_CONTROLLER
from syncline.cluster.builtin.services.addresses import SERVICE_ADDRESS_CONTROLLER, SPARE_ADDRESS_CONTROLLER
from syncline.cluster.builtin.services.api_services import API_SERVICE_CONTROLLER, AskServer, AskServerHandler
from syncline.cluster.builtin.services.endpoints.controller import ENDPOINTS_CONTROLLER
from syncline.cluster.builtin.services.endpoints.mirroring import MIRRORING_CONTROLLER
from syncline.cluster.builtin.services.ranges import SERVICE_RANGE_CONTROLLER
from syncline.cluster.builtin.storage.attributes import ATTRIBUTES_CLASS_CONTROLLER
from syncline.cluster.builtin.storage.claims import claim_controller
from syncline.cluster.builtin.storage.ephemeral import EPHEMERAL_CLAIM_CONTROLLER
from syncline.cluster.builtin.storage.provisioner import PROVISION_CONTROLLER, RECLAIM_CONTROLLER
from syncline.cluster.builtin.storage.volumes import VOLUME_CONTROLLER
from syncline.cluster.builtin.workloads.autoscaler import autoscaler_controller
from syncline.cluster.builtin.workloads.cronjob.controller import cronjob_controller
from syncline.cluster.builtin.workloads.daemonset.controller import DAEMONSET_CONTROLLER
from syncline.cluster.builtin.workloads.deployment.controller import DEPLOYMENT_CONTROLLER
from syncline.cluster.builtin.workloads.job.controller import JOB_CONTROLLER
from syncline.cluster.builtin.workloads.replicaset.controller import (
    REPLICASET_CONTROLLER,
    REPLICATIONCONTROLLER_CONTROLLER,
)
from syncline.cluster.builtin.workloads.statefulset.controller import STATEFULSET_CONTROLLER
from syncline.cluster.scheduler.actions import Bind, BindHandler
from syncline.cluster.scheduler.controller import scheduler_controller
from syncline.control.controller import Controller
from syncline.kube.mapper import Mapper


def _no_machine(_node: str) -> datetime | None:
    return None


@dataclass(frozen=True, slots=True)
class BuiltinSettings:
    """``root_ca`` is the PEM bundle with which pods verify the API server; empty if the API has no TLS. ``heartbeats``
    returns a simulated machine's last heartbeat; by default only leases and node statuses count. ``machines_tell``: all
    nodes are such machines and update their Node when they stop (virtual time). ``authority`` signs approved
    certificate requests; without it, none is signed. ``tokens`` fills Secrets with a service account's token; without
    it, such Secrets stay unfilled."""

    root_ca: str = ""
    heartbeats: Heartbeats = _no_machine
    authority: CertificateAuthority | None = None
    machines_tell: bool = False
    tokens: ServiceAccountTokens | None = None


def builtin_controllers(settings: BuiltinSettings | None = None) -> list[Controller[Any]]:
    """Return all built-in controllers and the scheduler."""
    chosen = settings or BuiltinSettings()
    return [
        NAMESPACE_CONTROLLER,
        namespace_defaults_controller(chosen.root_ca),
        DEPLOYMENT_CONTROLLER,
        REPLICASET_CONTROLLER,
        REPLICATIONCONTROLLER_CONTROLLER,
        STATEFULSET_CONTROLLER,
        DAEMONSET_CONTROLLER,
        JOB_CONTROLLER,
        cronjob_controller(),
        DISRUPTION_BUDGET_CONTROLLER,
        autoscaler_controller(),
        ENDPOINTS_CONTROLLER,
        MIRRORING_CONTROLLER,
        RESOURCE_QUOTA_CONTROLLER,
        claim_controller(),
        EPHEMERAL_CLAIM_CONTROLLER,
        VOLUME_CONTROLLER,
        PROVISION_CONTROLLER,
        RECLAIM_CONTROLLER,
        ATTRIBUTES_CLASS_CONTROLLER,
        SERVICE_RANGE_CONTROLLER,
        SERVICE_ADDRESS_CONTROLLER,
        SPARE_ADDRESS_CONTROLLER,
        node_lifecycle_controller(chosen.heartbeats, tells=chosen.machines_tell),
        GARBAGE_COLLECTOR_CONTROLLER,
        POD_GARBAGE_COLLECTOR_CONTROLLER,
        EVENT_EXPIRY_CONTROLLER,
        CLUSTER_ROLE_AGGREGATION_CONTROLLER,
        FLOW_SCHEMA_CONTROLLER,
        API_SERVICE_CONTROLLER,
        POLICY_TYPES_CONTROLLER,
        *signing_request_controllers(can_sign=chosen.authority is not None),
        *([token_secret_controller(chosen.root_ca)] if chosen.tokens is not None else []),
        scheduler_controller(),
    ]


def handlers(mapper: Mapper, settings: BuiltinSettings | None = None) -> dict[type, Handler]:
    """Return the handlers of actions that ``kube_handlers`` lacks."""
    confirm = ConfirmHandler(mapper)
    found: dict[type, Handler] = {
        ConfirmAbsent: confirm,
        ConfirmEmpty: confirm,
        ReadScale: confirm,
        FindScale: confirm,
        Bind: BindHandler(),
        ApproveIfAllowed: ApproveHandler(),
        AskServer: AskServerHandler(),
    }
    if settings is not None and settings.authority is not None:
        found[Sign] = SignHandler(settings.authority)
    if settings is not None and settings.tokens is not None:
        found[FillTokenSecret] = FillHandler(settings.tokens)
    return found

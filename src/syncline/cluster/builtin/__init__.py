"""The controllers that every cluster has, as Kubernetes' controller manager and scheduler run them.

``assembly`` and tests start them on one control loop; ``performers`` holds the actions that only they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from syncline.base.action import Performer
from syncline.cluster.builtin.actions import ConfirmAbsent, ConfirmEmpty, ConfirmPerformer, FindScale, ReadScale
from syncline.cluster.builtin.api_services import ApiServiceController, AskServer, AskServerPerformer
from syncline.cluster.builtin.autoscaler import AutoscalerController
from syncline.cluster.builtin.certificates.approval import ApproveIfAllowed, ApprovePerformer
from syncline.cluster.builtin.certificates.controller import signing_request_controllers
from syncline.cluster.builtin.certificates.signing import Sign, SignPerformer
from syncline.cluster.builtin.clusterrole_aggregation import ClusterRoleAggregationController
from syncline.cluster.builtin.cronjob.controller import CronJobController
from syncline.cluster.builtin.daemonset.controller import DaemonSetController
from syncline.cluster.builtin.deployment.controller import DeploymentController
from syncline.cluster.builtin.disruption_budget import DisruptionBudgetController
from syncline.cluster.builtin.endpoints.controller import EndpointsController
from syncline.cluster.builtin.endpoints.mirroring import MirroringController
from syncline.cluster.builtin.event_expiry import EventExpiry
from syncline.cluster.builtin.flow_schema import FlowSchemaController
from syncline.cluster.builtin.garbage_collector.controller import GarbageCollector
from syncline.cluster.builtin.job.controller import JobController
from syncline.cluster.builtin.namespace.controller import NamespaceController
from syncline.cluster.builtin.node_lifecycle.controller import NodeLifecycleController
from syncline.cluster.builtin.node_lifecycle.observe import Beats
from syncline.cluster.builtin.pod_garbage_collector import PodGarbageCollector
from syncline.cluster.builtin.policy_types import PolicyTypesController
from syncline.cluster.builtin.replicaset.controller import ReplicaSetController, ReplicationControllerController
from syncline.cluster.builtin.resource_quota import ResourceQuotaController
from syncline.cluster.builtin.service_addresses import ServiceAddressController, SpareAddressController
from syncline.cluster.builtin.service_ranges import ServiceRangeController
from syncline.cluster.builtin.serviceaccount import NamespaceDefaultsController
from syncline.cluster.builtin.statefulset.controller import StatefulSetController
from syncline.cluster.builtin.storage.attributes import AttributesClassController
from syncline.cluster.builtin.storage.claims import ClaimController
from syncline.cluster.builtin.storage.ephemeral import EphemeralClaimController
from syncline.cluster.builtin.storage.provisioner import ProvisionController, ReclaimController
from syncline.cluster.builtin.storage.volumes import VolumeController
from syncline.cluster.builtin.token_secrets import FillPerformer, FillTokenSecret, TokenSecretController
from syncline.cluster.pki import CertificateAuthority
from syncline.cluster.scheduler.actions import Bind, BindPerformer
from syncline.cluster.scheduler.controller import SchedulerController
from syncline.cluster.tokens import ServiceAccountTokens
from syncline.control.controller import Controller
from syncline.kube.mapper import Mapper

__all__ = ["BuiltinSettings", "builtin_controllers", "performers"]


def _no_machine(_node: str) -> datetime | None:
    return None


@dataclass(frozen=True, slots=True)
class BuiltinSettings:
    """``root_ca`` is the PEM bundle that pods verify the API server by; empty where the API has no TLS. ``beats`` asks
    a simulated machine for its last sign of life; by default only leases and node statuses count. ``machines_tell``:
    all nodes are such machines and write into their Node when they stop (virtual time). ``authority`` signs approved
    certificate requests; without one, none is signed. ``tokens`` fills Secrets that hold a service account's token;
    without it, such Secrets are left alone."""

    root_ca: str = ""
    beats: Beats = _no_machine
    authority: CertificateAuthority | None = None
    machines_tell: bool = False
    tokens: ServiceAccountTokens | None = None


def builtin_controllers(settings: BuiltinSettings | None = None) -> list[Controller]:
    """All built-in controllers and the scheduler."""
    chosen = settings or BuiltinSettings()
    return [
        NamespaceController(),
        NamespaceDefaultsController(chosen.root_ca),
        DeploymentController(),
        ReplicaSetController(),
        ReplicationControllerController(),
        StatefulSetController(),
        DaemonSetController(),
        JobController(),
        CronJobController(),
        DisruptionBudgetController(),
        AutoscalerController(),
        EndpointsController(),
        MirroringController(),
        ResourceQuotaController(),
        ClaimController(),
        EphemeralClaimController(),
        VolumeController(),
        ProvisionController(),
        ReclaimController(),
        AttributesClassController(),
        ServiceRangeController(),
        ServiceAddressController(),
        SpareAddressController(),
        NodeLifecycleController(chosen.beats, tells=chosen.machines_tell),
        GarbageCollector(),
        PodGarbageCollector(),
        EventExpiry(),
        ClusterRoleAggregationController(),
        FlowSchemaController(),
        ApiServiceController(),
        PolicyTypesController(),
        *signing_request_controllers(can_sign=chosen.authority is not None),
        *([TokenSecretController(chosen.root_ca)] if chosen.tokens is not None else []),
        SchedulerController(),
    ]


def performers(mapper: Mapper, settings: BuiltinSettings | None = None) -> dict[type, Performer]:
    """Beside ``kube_performers``: what these controllers do that is no plain Kubernetes action."""
    confirm = ConfirmPerformer(mapper)
    found: dict[type, Performer] = {
        ConfirmAbsent: confirm,
        ConfirmEmpty: confirm,
        ReadScale: confirm,
        FindScale: confirm,
        Bind: BindPerformer(),
        ApproveIfAllowed: ApprovePerformer(),
        AskServer: AskServerPerformer(),
    }
    if settings is not None and settings.authority is not None:
        found[Sign] = SignPerformer(settings.authority)
    if settings is not None and settings.tokens is not None:
        found[FillTokenSecret] = FillPerformer(settings.tokens)
    return found

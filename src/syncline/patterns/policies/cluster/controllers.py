"""The controllers of a cluster's policies together: :class:`PolicyAgent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.base.action import Handler
from syncline.control.controller import Controller
from syncline.kube.kinds.governance import CERTIFICATE_POLICY
from syncline.kube.mapper import Mapper
from syncline.patterns.policies.certificates.inspecting import Inspect, InspectHandler
from syncline.patterns.policies.cluster.actions import Evaluate, Prune
from syncline.patterns.policies.cluster.configuration import configuration_controller
from syncline.patterns.policies.cluster.evaluating import EvaluateHandler, PruneHandler
from syncline.patterns.policies.cluster.link import PolicyLink
from syncline.patterns.policies.cluster.memory import Memory
from syncline.patterns.policies.cluster.synchronizing import key_controller, policy_controller
from syncline.patterns.policies.operators.controller import operator_controller
from syncline.patterns.policies.operators.evaluating import Operate, OperateHandler


class PolicyAgent:
    """Controllers and handlers of one agent, and what they remember."""

    def __init__(self, link: PolicyLink) -> None:
        self._link = link
        self.memory = Memory()

    def controllers(self) -> tuple[Controller[Any], ...]:
        link = self._link
        return (
            policy_controller(link),
            configuration_controller(link, self.memory),
            operator_controller(link, self.memory),
            operator_controller(link, self.memory, "certificate-policy", CERTIFICATE_POLICY.group_kind, Inspect),
            key_controller(link),
        )

    def handlers(self, mapper: Mapper) -> Mapping[type, Handler]:
        """Return the handlers of the agent's own cluster, but for :class:`~.actions.FollowKinds`."""
        note = self.memory.note
        return {
            Evaluate: EvaluateHandler(mapper, note),
            Operate: OperateHandler(mapper, note),
            Inspect: InspectHandler(mapper, note),
            Prune: PruneHandler(mapper),
        }

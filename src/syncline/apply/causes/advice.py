"""Advice for well-known messages of Kubernetes: :func:`advice` maps a message to one sentence.

The cause functions of this package call it. The first pattern that matches decides; an unknown message gets no advice,
since a guess would be worse.
"""

from __future__ import annotations

import re

from syncline.apply.managed import refused_namespace

_ADVICE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), text)
    for pattern, text in (
        (r'serviceaccount "([^"]+)" not found', r"create ServiceAccount \1, or bring it in an earlier phase or wave"),
        (r"error looking up service account ([^:]+):", r"create ServiceAccount \1, or bring it in an earlier wave"),
        (r"exceeded quota: ([^,]+),", r"raise ResourceQuota \1, or ask for less"),
        (r"violates PodSecurity", "meet the Pod Security level of the namespace, or change its label"),
        (r"no nodes available to schedule pods", "add a node"),
        (r"Insufficient (\S+?)[,.]?(?:\s|$)", r"free or add \1: lower the requests, or add a node"),
        (r"untolerated taint", "tolerate the taint, or take it off: kubectl taint nodes NODE KEY-"),
        (r"didn't match Pod's node affinity/selector", "label a node as the pod selects, or change the selector"),
        (r"unbound immediate PersistentVolumeClaims", "make a volume or a default StorageClass for the claim"),
        (r'persistentvolumeclaim "([^"]+)" not found', r"create PersistentVolumeClaim \1"),
        (r'(configmap|secret) "([^"]+)" not found', r"create \1 \2"),
        (r"couldn't find key (\S+) in (ConfigMap|Secret) (\S+)", r"add key \1 to \2 \3"),
        (r"scheduling gat", "take the scheduling gate off the pod when its owner allows it"),
        (
            r"Back-off pulling image|failed to pull|ErrImage|ImagePull|InvalidImageName",
            "correct the image or its access",
        ),
        (r'namespaces "([^"]+)" not found', r"create Namespace \1 (for the destination: CreateNamespace=true)"),
        (r'failed calling webhook "([^"]+)"', r"get the service behind webhook \1 to answer, or take the webhook away"),
        (r'admission webhook "([^"]+)" denied', r"do what webhook \1 asks for, or ask its owner for an exception"),
        (r"ValidatingAdmissionPolicy '([^']+)'", r"do what ValidatingAdmissionPolicy \1 asks for, or change it"),
        (r"confirm it with the annotation (\S+): (\w+)", r"if that is meant, annotate the Application with \1=\2"),
        (
            r"allowed destinations in project '([^']+)'",
            r"correct the spec, or: syncline proj add-destination \1",
        ),
        (
            r"not permitted in project '?([^'\s]+?)'?\.?(?:$|\s)",
            r"allow it in project \1, or take it out of the source",
        ),
        (r"referencing project (\S+) which does not exist", r"create project \1, or correct spec.project"),
        (r'cluster "[^"]+" not found', "add the cluster: syncline cluster add, or correct spec.destination"),
        (
            r'namespace "([^"]+)" for \S+ "[^"]+" is not managed',
            r"add \1 to namespaces of the Secret of the cluster, or correct the namespace",
        ),
        (
            r"can not be managed when in namespaced mode",
            'set clusterResources: "true" in the Secret of the cluster, or take the object out of the source',
        ),
        (r"goes in a circle", "take one of them out of its annotation syncline.dev/depends-on"),
        (r"load balancer", "does this cluster have a load balancer? else use type ClusterIP or NodePort"),
        (r"field is immutable", "set Replace=true or Force=true, use a hook, or give the object a new name"),
        (r"is forbidden: User", "grant the right to that user, or let the sync run as another"),
        (r"CRD is installed|could not find the requested resource", "install the definition of the kind first"),
        (r"conflict with", "take the field over with server-side apply and force, or leave it to its manager"),
        (r"authentication|credential|permission denied", "give the repository valid credentials"),
        (r"allow-local-repos", "start with --allow-local-repos, or use a URL"),
        (r"exceeded its progress deadline", "check its newest pods; undo the last change if need be"),
    )
)


def with_command(step: str) -> str:
    """Return the step with the command that carries it out, for clusters of simulated machines; on other clusters the
    way to add a node depends on the operator."""
    return f"{step}: syncline node add NAME" if step.endswith("add a node") else step


def advice(message: str) -> str:
    """Return one sentence of advice for a message, or an empty string."""
    refused = refused_namespace(message)
    if refused is not None:
        return f"label the namespace, unless it has the label: {refused.command}"
    for pattern, text in _ADVICE:
        found = pattern.search(message)
        if found is not None:
            return found.expand(text)
    return ""

"""Runs of the recorded cases of registration: from the input of a case to ours, in the shape of ``expect``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.fleet.recordings import NOW

from syncline.fleet.conditions import with_condition
from syncline.fleet.hub.admission import Refused, check_cluster, completed
from syncline.fleet.hub.clustersets.defaults import kept
from syncline.fleet.hub.clustersets.status import binding_status_of, set_status_of
from syncline.fleet.hub.registration.leases import heartbeat, lost_message
from syncline.fleet.hub.registration.requests import Verdict, bootstrap, renewal
from syncline.fleet.hub.registration.taints import tainted
from syncline.fleet.hub.sets import SetError
from syncline.kube.objects import Obj, name_of

KEY = ec.generate_private_key(ec.SECP256R1())


def request(common_name: str, organizations: list[str]) -> str:
    """A certificate request, PEM."""
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def lease(given: Obj) -> Any:
    cluster = given["cluster"]
    found = heartbeat(cluster, given.get("lease"), NOW)
    conditions = cluster["status"]["conditions"]
    if found.lost:
        conditions = with_condition(conditions, found.lost, NOW)
    events = [f"Warning AvailableUnknown {lost_message(name_of(cluster))}"] if found.lost else []
    created = {key: found.create[key] for key in ("metadata", "spec")} if found.create else None
    return {
        "clusters": [{"conditions": conditions, "name": name_of(cluster)}],
        "creates": [{"object": created, "verb": "create"}] if created else [],
        "events": events,
    }


def taint(given: Obj) -> Any:
    cluster = given["cluster"]
    shown = {"conditions": cluster["status"]["conditions"], "name": name_of(cluster)}
    return {"clusters": [{**shown, "taints": list(tainted(cluster).taints)}]}


def csr(given: Obj) -> Any:
    raw, subject = given["csr"], given["subject"]
    pem = given.get("pem") or request(subject["commonName"], subject["organizations"])
    spec = {"signerName": raw["SignerName"], "username": raw["Username"], "groups": raw["Groups"]}
    obj = {"metadata": {"name": raw["Name"], "labels": raw["Labels"]}, "spec": spec}
    found = {"renewal": renewal(obj, pem), "bootstrap": bootstrap(obj, pem, given["approvalUsers"])}
    return {name: _verdict(one, given["allowed"]) for name, one in found.items()}


def _verdict(found: Verdict, allowed: list[str]) -> Obj:
    granted = found.review is None or found.review["resourceAttributes"]["verb"] in allowed
    shown = {"approved": found.approved and granted, "continue": found.ask_next}
    return {**shown, "reviews": [_review(found.review)] if found.review else []}


def _review(spec: Obj) -> Obj:
    return {"attributes": spec["resourceAttributes"], "groups": spec.get("groups"), "user": spec["user"]}


def cluster_set(given: Obj) -> Any:
    shown, error = [], None
    for one in given["sets"]:
        status = one.get("status") or {}
        if name_of(one) == given["name"]:
            try:
                status = set_status_of(one, given["clusters"], NOW)
            except SetError as refused:
                error = str(refused)
        shown.append({"conditions": status.get("conditions"), "name": name_of(one), "spec": one["spec"]})
    return {"error": error, "sets": shown}


def standing_set(name: str, given: Obj) -> Any:
    live = next((one for one in given["sets"] if name_of(one) == name), None)
    found = kept(name, live)
    made = found.create or live
    assert made is not None
    spec = {"clusterSelector": found.selector} if found.selector else made["spec"]
    return {"sets": [{"name": name, "spec": spec}]}


def binding(given: Obj) -> Any:
    one = given["binding"]
    named = next((each for each in given["sets"] if name_of(each) == one["spec"]["clusterSet"]), None)
    return {"status": binding_status_of(one, named, NOW)}


def mutate(given: Obj) -> Any:
    try:
        made = completed(given["cluster"], given.get("old"), NOW)
    except Refused as refused:
        return {"error": str(refused)}
    return {"labels": made["metadata"]["labels"], "taints": made["spec"].get("taints")}


def validate(given: Obj) -> Any:
    user = {"username": given["user"], "groups": given["groups"]}
    spaces = [one for one in given["Namespaces"] if name_of(one) == name_of(given["cluster"])]
    terminating = any((one.get("status") or {}).get("phase") == "Terminating" for one in spaces)
    asked = []
    try:
        for need in check_cluster(given["cluster"], given.get("old"), user, terminating=terminating):
            asked.append(_review(need.review))
            verb, name = (need.review["resourceAttributes"][key] for key in ("verb", "name"))
            if not {verb, f"{verb} {name}"} & set(given["allowed"]):
                return {"error": need.refusal, "reviews": asked}
    except Refused as refused:
        return {"error": str(refused), "reviews": asked}
    return {"reviews": asked}


RUNS: dict[str, Callable[[Obj], Any]] = {
    "lease": lease,
    "taint": taint,
    "csr": csr,
    "clusterset": cluster_set,
    "default-set": partial(standing_set, "default"),
    "global-set": partial(standing_set, "global"),
    "binding": binding,
    "mutate": mutate,
    "validate": validate,
}

"""Each sync action as the requests it makes, and what it makes of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from syncline.apply.actions import (
    ApplyMode,
    ApplyObject,
    DeleteHook,
    DryRun,
    PruneObject,
    ReadObject,
    RemoveHookFinalizer,
    SyncAction,
)
from syncline.apply.annotations import HOOK_FINALIZER, OPERATION
from syncline.apply.handler import SyncHandler
from syncline.apply.last_applied import LAST_APPLIED, with_last_applied
from syncline.apply.outcome import Outcome, WaitKind
from syncline.kube.client import Request, Response
from syncline.kube.errors import FieldCause, Unanswered, Unavailable, already_exists, conflict, invalid, not_found
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, gvk_of, ref_of
from syncline.kube.schema.resources import builtin_resources

HANDLER = SyncHandler(Mapper(builtin_resources()))
OK = Response.of(200, {})
GONE = Response.refused(not_found("configmaps", "a"))
NEWER = Response.refused(conflict("configmaps", "a", "the object has been modified"))


def talk(action: SyncAction, *answers: Response) -> tuple[list[Request], Outcome]:
    """Perform an action, answering its requests in turn; all answers must be used."""
    requests: list[Request] = []
    flow = HANDLER.handle(action)
    left = list(answers)
    try:
        request = next(flow)
        while True:
            requests.append(request)
            request = flow.send(left.pop(0))
    except StopIteration as end:
        assert not left, f"{len(left)} answers were not asked for"
        return requests, end.value


def lines(requests: list[Request]) -> list[str]:
    return [f"{request.describe()}{'?dryRun' if 'dryRun' in request.query else ''}" for request in requests]


def config(data: str = "1", **metadata: Any) -> Obj:
    meta = {"name": "a", "namespace": "demo", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"v": data}}


def live(obj: Obj, **metadata: Any) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "uid": "u", "resourceVersion": "7", **metadata}}


def job(image: str = "job:1", **metadata: Any) -> Obj:
    spec = {"template": {"spec": {"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"}}}
    meta = {"name": "j", "namespace": "demo", **metadata}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def apply(target: Obj, found: Obj | None = None, mode: ApplyMode = ApplyMode.CLIENT_SIDE, **more: Any) -> ApplyObject:
    return ApplyObject(ref_of(target), target, found, mode, "it is in the source", **more)


def test_an_absent_object_is_created_with_what_was_applied() -> None:
    requests, outcome = talk(apply(config()), GONE, OK)
    assert lines(requests) == [
        "GET /api/v1/namespaces/demo/configmaps/a",
        "POST /api/v1/namespaces/demo/configmaps",
    ]
    assert outcome == Outcome(True, "configmap/a created", obj={})
    noted = json.loads(requests[1].body["metadata"]["annotations"][LAST_APPLIED])
    assert noted["data"] == {"v": "1"}
    assert requests[1].query["fieldManager"] == "argocd-controller"
    assert requests[1].query["fieldValidation"] == "Strict"


def test_an_unchanged_object_is_not_written() -> None:
    requests, outcome = talk(apply(config()), Response.of(200, live(with_last_applied(config()))))
    assert (len(requests), outcome.message) == (1, "configmap/a unchanged")


def test_a_changed_object_gets_a_patch_that_leaves_what_others_set() -> None:
    found = live(with_last_applied(config("0")))
    found["data"] = {"v": "0", "theirs": "x"}
    requests, outcome = talk(apply(config("1")), Response.of(200, found), OK)
    assert requests[1].method == "PATCH"
    assert requests[1].body["data"] == {"v": "1"}
    assert outcome.message == "configmap/a configured"


def test_a_patch_that_meets_a_newer_object_is_made_again() -> None:
    found = Response.of(200, live(with_last_applied(config("0"))))
    requests, outcome = talk(apply(config("1")), found, NEWER, found, OK)
    assert [request.method for request in requests] == ["GET", "PATCH", "GET", "PATCH"]
    assert outcome.ok


def test_a_dry_run_changes_nothing_and_says_so() -> None:
    requests, outcome = talk(DryRun(apply(config()), "check"), GONE, OK)
    assert lines(requests)[1] == "POST /api/v1/namespaces/demo/configmaps?dryRun"
    assert outcome.message == "configmap/a created (dry run)"


def test_a_dry_run_of_what_is_deleted_first_asks_for_a_new_object() -> None:
    taken = Response.refused(already_exists("jobs", "j", "batch"))
    requests, outcome = talk(DryRun(apply(job(), live(job("job:0"))), "check", as_new=True), taken)
    assert lines(requests) == ["POST /apis/batch/v1/namespaces/demo/jobs?dryRun"]
    assert outcome.ok


def test_server_side_apply_forces_and_has_upstreams_manager() -> None:
    requests, outcome = talk(apply(config(), mode=ApplyMode.SERVER_SIDE), OK)
    assert requests[0].query == {"fieldManager": "argocd-controller", "force": "true", "fieldValidation": "Strict"}
    assert outcome.message == "configmap/a serverside-applied"


def test_force_and_server_side_apply_are_refused_as_kubectl_does() -> None:
    _, outcome = talk(apply(config(), mode=ApplyMode.SERVER_SIDE, force=True))
    assert outcome.message == "error validating options: --force cannot be used with --server-side"


def test_66_field_managers_move_over_before_server_side_apply() -> None:
    entry = {
        "manager": "kubectl-client-side-apply",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:v": {}}},
    }
    found = Response.of(200, live(config(), managedFields=[entry]))
    action = apply(config(), mode=ApplyMode.SERVER_SIDE, migrate_from="kubectl-client-side-apply")
    requests, outcome = talk(action, found, NEWER, found, OK, OK)
    assert [request.method for request in requests] == ["GET", "PATCH", "GET", "PATCH", "PATCH"]
    moved = requests[3].body[0]["value"]
    assert [(e["manager"], e["operation"]) for e in moved] == [("argocd-controller", "Apply")]
    assert outcome.ok


def test_68_a_replaced_object_is_put_with_the_live_version() -> None:
    found = Response.of(200, live(config()))
    requests, outcome = talk(apply(config("2"), live(config()), ApplyMode.REPLACE), found, OK)
    assert lines(requests)[1] == "PUT /api/v1/namespaces/demo/configmaps/a"
    assert requests[1].body["metadata"]["resourceVersion"] == "7"
    assert outcome.message == "configmap/a replaced"


def test_68_what_appeared_since_it_was_looked_for_is_replaced_unless_it_is_a_hook_of_another_operation() -> None:
    taken = Response.refused(already_exists("configmaps", "a"))
    found = Response.of(200, live(config()))
    requests, outcome = talk(apply(config(), None, ApplyMode.CREATE), taken, found, found, OK)
    assert [request.method for request in requests] == ["POST", "GET", "GET", "PUT"]
    assert outcome.message == "configmap/a replaced"
    hook = config(annotations={OPERATION: "op-2/PreSync"})
    _, outcome = talk(apply(hook, None, ApplyMode.CREATE), taken, found)
    assert outcome == Outcome(False, 'configmaps "a" already exists')


def test_68_a_namespace_is_updated_never_recreated() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo", "namespace": "demo"}}
    requests, outcome = talk(apply(namespace, None, ApplyMode.UPDATE), Response.of(200, live(namespace)), OK)
    assert lines(requests) == ["GET /api/v1/namespaces/demo", "PUT /api/v1/namespaces/demo"]
    assert "namespace" not in requests[1].body["metadata"]
    assert outcome.message == "Namespace/demo updated"


def test_69_a_recreated_job_is_asked_for_deleted_and_made_when_it_is_gone() -> None:
    target = job("job:2", annotations={OPERATION: "op-1/Sync"})
    action = apply(target, live(job()), ApplyMode.RECREATE)
    found = Response.of(200, live(job()))
    requests, outcome = talk(action, found, Response.refused(already_exists("jobs", "j")), OK, found)
    assert lines(requests) == [
        "GET /apis/batch/v1/namespaces/demo/jobs/j",
        "POST /apis/batch/v1/namespaces/demo/jobs?dryRun",
        "DELETE /apis/batch/v1/namespaces/demo/jobs/j",
        "GET /apis/batch/v1/namespaces/demo/jobs/j",
    ]
    assert requests[2].body["preconditions"] == {"uid": "u"}
    assert requests[2].body["propagationPolicy"] == "Foreground"
    assert outcome.pending is WaitKind.DELETION
    _, outcome = talk(action, GONE, OK)
    assert outcome == Outcome(True, "job.batch/j replaced", obj={})


def test_a_job_that_would_not_be_accepted_is_not_deleted() -> None:
    refused = Response.refused(invalid("Job", "j", [FieldCause("FieldValueInvalid", "bad image", "spec.template")]))
    action = apply(job("job:2"), live(job()), ApplyMode.RECREATE)
    requests, outcome = talk(action, Response.of(200, live(job())), refused)
    assert not outcome.ok and outcome.pending is None
    assert "DELETE" not in [request.method for request in requests]


def test_a_recreation_that_a_crash_cut_off_is_recognised() -> None:
    target = job("job:2", annotations={OPERATION: "op-1/Sync"})
    requests, outcome = talk(apply(target, None, ApplyMode.RECREATE), Response.of(200, live(target)))
    assert (len(requests), outcome.ok) == (1, True)


def test_71_a_refused_immutable_change_names_the_field_and_the_ways_out() -> None:
    cause = FieldCause("FieldValueInvalid", "Invalid value: {...}: field is immutable", "spec.template")
    refused = Response.refused(invalid("Job", "j", [cause], "batch"))
    found = live(with_last_applied(job()))
    _, outcome = talk(apply(job("job:2"), found), Response.of(200, found), refused)
    assert not outcome.ok
    for words in ("spec.template", "field is immutable", "Replace=true", "Force=true", "BeforeHookCreation"):
        assert words in outcome.message


def test_70_force_on_the_resource_recreates_what_a_patch_cannot_change() -> None:
    refused = Response.refused(invalid("Job", "j", [FieldCause("FieldValueInvalid", "field is immutable", "spec")]))
    found = live(with_last_applied(job()))
    requests, outcome = talk(
        apply(job("job:2"), found, force=True),
        Response.of(200, found),
        refused,
        Response.of(200, found),
        OK,
        OK,
        GONE,
        OK,
    )
    assert [request.method for request in requests] == ["GET", "PATCH", "GET", "POST", "DELETE", "GET", "POST"]
    assert outcome.ok


def test_a_kind_that_comes_with_the_operation_is_waited_for() -> None:
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "demo"}}
    _, outcome = talk(apply(widget, kind_may_appear=True))
    assert outcome.pending is WaitKind.DEFINITION
    _, outcome = talk(apply(widget))
    assert outcome == Outcome(False, 'no matches for kind "Widget" in version "example.com/v1"')


@pytest.mark.parametrize("kind", [PruneObject, DeleteHook])
def test_only_the_object_that_was_seen_is_deleted(kind: type[PruneObject] | type[DeleteHook]) -> None:
    action = kind(ref_of(config()), gvk_of(config()), "u", "Background", "it is to go")
    requests, outcome = talk(action, OK)
    assert requests[0].body["preconditions"] == {"uid": "u"}
    assert outcome == Outcome(True)
    _, outcome = talk(action, GONE)
    assert outcome.not_found
    _, outcome = talk(action, NEWER)
    assert outcome.not_found and not outcome.ok


def test_the_hook_finalizer_is_taken_off_through_conflicts_five_times_at_most() -> None:
    held = live(config(), finalizers=["x/y", HOOK_FINALIZER])
    action = RemoveHookFinalizer(ref_of(held), gvk_of(held), held, "the hook has ended")
    requests, outcome = talk(action, NEWER, Response.of(200, held), OK)
    assert requests[0].body["metadata"]["finalizers"] == ["x/y"]
    assert outcome == Outcome(True)
    requests, outcome = talk(action, *[NEWER, Response.of(200, held)] * 5)
    assert [request.method for request in requests].count("PUT") == 5
    assert outcome.message.startswith("failed to update resource: failed to update resource: ")


@pytest.mark.parametrize("error", [Unanswered("connection reset"), Unavailable("etcd has no leader")])
def test_a_hook_that_has_ended_is_released_again_where_the_api_gave_no_answer(error: Unavailable) -> None:
    held = live(config(), finalizers=[HOOK_FINALIZER])
    action = RemoveHookFinalizer(ref_of(held), gvk_of(held), held, "the hook has ended")
    with pytest.raises(Unanswered):
        talk(action, Response.refused(error))


def test_what_is_read_comes_back() -> None:
    action = ReadObject(ref_of(config()), gvk_of(config()), "it is not seen")
    _, outcome = talk(action, Response.of(200, config()))
    assert outcome.obj == config()
    _, outcome = talk(action, GONE)
    assert (outcome.ok, outcome.not_found) == (False, True)


def test_an_object_without_name_is_created_by_its_prefix() -> None:
    target = job()
    target["metadata"] = {"generateName": "j-", "namespace": "demo"}
    _, outcome = talk(apply(target, None, ApplyMode.CREATE), Response.of(201, job(name="j-x2")))
    assert outcome.message == "job.batch/j-x2 created"
    _, outcome = talk(apply(target))
    assert outcome.message == "from j-: cannot use generate name with apply"
    target["metadata"] = {"namespace": "demo"}
    _, outcome = talk(apply(target))
    assert outcome.message == "resource name may not be empty: give the manifest a metadata.name"


@pytest.mark.parametrize(
    "printed", ['"{}"', r'"map[apiVersion:v1 data:map[password:aHVudGVy:] note:\"x\"]"', r'{"password":"aHVudGVy"}']
)
def test_an_object_that_a_patch_cannot_make_is_named_with_its_fields_and_without_its_values(printed: str) -> None:
    target = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "demo"}, "data": {"n": 5}}
    text = f' "" is invalid: patch: Invalid value: {printed}: unrecognized type: string'
    refused = Response.of(422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": text})
    _, outcome = talk(apply(target, live(target)), Response.of(200, live(target, resourceVersion="1")), refused)
    assert outcome.message == 'Secret "s" is invalid: data.n: found a number, must be a string in base64'


@pytest.mark.parametrize("mode", [ApplyMode.CLIENT_SIDE, ApplyMode.SERVER_SIDE, ApplyMode.REPLACE])
def test_a_hook_of_an_earlier_operation_that_the_watch_did_not_show_is_not_changed(mode: ApplyMode) -> None:
    """It has ended: with the stamp of this operation it would count as this one's."""
    wanted = job(annotations={OPERATION: "2/PreSync"})
    old = live(job(annotations={OPERATION: "1/PreSync"}))
    requests, outcome = talk(apply(wanted, mode=mode, new=True), Response.of(200, old))
    assert [request.method for request in requests] == ["GET"]
    assert (outcome.ok, outcome.pending) == (False, WaitKind.DELETION)


def test_a_hook_that_this_operation_made_before_a_crash_is_kept() -> None:
    wanted = job(annotations={OPERATION: "2/PreSync"})
    mine = live(with_last_applied(wanted))
    requests, outcome = talk(apply(wanted, new=True), Response.of(200, mine))
    assert [request.method for request in requests] == ["GET"]
    assert outcome == Outcome(True, "job.batch/j unchanged")

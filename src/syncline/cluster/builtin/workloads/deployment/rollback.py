"""Roll back to an older revision by annotation, as the first Deployment API did with ``spec.rollbackTo``.

``deprecated.deployment.rollback.to`` names the revision; 0 is the previous one. The annotation is removed in any case.
Source: Kubernetes' deployment controller (``rollback``).
"""

from __future__ import annotations

from syncline.cluster.builtin.workloads.deployment.revisions import COPY_NEVER, HASH_LABEL, ROLLBACK_TO, revision_of
from syncline.cluster.builtin.workloads.templates import without_label
from syncline.control.plan import Emit, Plan, Replace
from syncline.kube.objects import Obj, annotations_of, dig, name_of

COMPONENT = "deployment-controller"


def rollback(deployment: Obj, sets: tuple[Obj, ...]) -> Plan | None:
    """Return None if there is no such annotation, or it is not a number."""
    text = annotations_of(deployment).get(ROLLBACK_TO, "")
    if not (text.isascii() and text.isdigit()):
        return None
    wanted = int(text) or _last(sets)
    if not wanted:
        return _give_up(deployment, "DeploymentRollbackRevisionNotFound", "Unable to find last revision.")
    chosen = next((each for each in sets if revision_of(each) == wanted), None)
    if chosen is None:
        text = "Unable to find the revision to rollback to."
        return _give_up(deployment, "DeploymentRollbackRevisionNotFound", text)
    template = without_label(dig(chosen, "spec", "template"), HASH_LABEL)
    if template == without_label(dig(deployment, "spec", "template"), HASH_LABEL):
        text = f'The rollback revision contains the same template as current deployment "{name_of(deployment)}"'
        return _give_up(deployment, "DeploymentRollbackTemplateUnchanged", text)
    notes = {key: value for key, value in annotations_of(deployment).items() if key in COPY_NEVER}
    notes |= {key: value for key, value in annotations_of(chosen).items() if key not in COPY_NEVER}
    back = _without_request(deployment, notes)
    back["spec"] = dict(deployment["spec"]) | {"template": template}
    done = f'Rolled back deployment "{name_of(deployment)}" to revision {wanted}'
    return Plan(((Replace(back, done),), (Emit(deployment, "DeploymentRollback", done, COMPONENT),)), why=done)


def _last(sets: tuple[Obj, ...]) -> int:
    """Return the second highest revision; 0 if there is none."""
    known = sorted({revision_of(each) for each in sets}, reverse=True)
    return known[1] if len(known) > 1 else 0


def _give_up(deployment: Obj, reason: str, text: str) -> Plan:
    cleared = _without_request(deployment, annotations_of(deployment))
    event = Emit(deployment, reason, text, COMPONENT, warning=True)
    return Plan(((Replace(cleared, text),), (event,)), why=text)


def _without_request(deployment: Obj, notes: dict[str, str]) -> Obj:
    left = {key: value for key, value in notes.items() if key != ROLLBACK_TO}
    metadata = {key: value for key, value in deployment["metadata"].items() if key != "annotations"}
    return dict(deployment) | {"metadata": metadata | ({"annotations": left} if left else {})}

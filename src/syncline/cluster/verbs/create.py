"""create: POST to a collection."""

from __future__ import annotations

from syncline.cluster.serving.answers import fresh_answer, object_answer
from syncline.cluster.verbs.body import check_media, content_type, read_object
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import write_options
from syncline.cluster.verbs.write import Written, check_address, insert
from syncline.kube.client import Response


def create(x: Exchange) -> Response:
    check_media(content_type(x.request), x.resource)
    options = write_options(x.request.query, x.request.headers, "CreateOptions")
    obj = read_object(x, options.validation)
    check_address(x, obj)
    return answer_written(x, insert(x, obj, options))


def answer_written(x: Exchange, written: Written) -> Response:
    """Return 201 for a created object, 200 for a changed one."""
    status = 201 if written.created else 200
    if written.stored is not None:
        return object_answer(x, status, written.stored)
    return fresh_answer(x, status, written.obj, written.revision)

"""Renders the installation's Go templates for messages of hydrated commits and READMEs: :func:`render_template`.

The Helm of the render workers provides Go's templates and Sprig with limits on time, memory and output; ``env``,
``expandenv`` and host look-ups are disabled. Raises :class:`SourceError`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.rendering import helm_engine
from syncline.sources.workers.pool import shared_workers
from syncline.sources.workers.scratch import write_below

MAX_TEMPLATE = 64 * 1024
MAX_TEXT = 256 * 1024
CHART = b"apiVersion: v2\nname: text\nversion: 0.0.1\n"
CALL = '{{ printf "%s" (include "text/templates/_text" .Values.data | b64enc) }}'
"""The text is a file of its own, so that it may define templates and ``.`` and ``$`` are its data."""


def render_template(text: str, data: Mapping[str, Any], setting: str) -> str:
    """Render ``text`` with ``data``; ``setting`` names the template in messages."""
    if len(text) > MAX_TEMPLATE:
        raise SourceError(Problem.TOO_LARGE, f"{setting}: a template may have {MAX_TEMPLATE} characters")
    engine = helm_engine()
    if not engine:
        raise SourceError(
            Problem.UNSUPPORTED,
            f"{setting}: templates of your own need Helm, which is not installed",
            fix="pip install helm-python-sdk, put a helm program on PATH, or take the setting away",
        )
    workers = shared_workers()
    with workers.scratch() as scratch:
        files = {"Chart.yaml": CHART, "templates/_text": text.encode(), "templates/out.txt": CALL.encode()}
        write_below(scratch / "chart", files.items())
        payload = {
            "chart": str(scratch / "chart"),
            "scratch": str(scratch),
            "name": "text",
            "namespace": "default",
            "values": json.dumps({"data": data}),
            "kube_version": "",
            "api_versions": [],
            "skip_crds": True,
            "skip_schema": True,
        }
        found = workers.run(engine, payload, label=setting)
    return _decoded("".join(one for _, one in found), setting)


def _decoded(output: str, setting: str) -> str:
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith(("---", "#"))]
    try:
        text = base64.b64decode("".join(lines), validate=True).decode("utf-8", "replace")
    except ValueError:
        raise SourceError(Problem.INVALID, f"{setting}: the template gives no text") from None
    if len(text) > MAX_TEXT:
        raise SourceError(Problem.TOO_LARGE, f"{setting}: more than {MAX_TEXT} characters of text")
    return text

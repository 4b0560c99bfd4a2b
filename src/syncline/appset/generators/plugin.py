"""The ``plugin`` generator: rows of an HTTP service that a ConfigMap names."""

from __future__ import annotations

import json
import re
from typing import Any

from syncline.appset.generators.context import Context, Row, Rows
from syncline.appset.generators.errors import GenerationError
from syncline.appset.generators.reading import Element
from syncline.appset.questions import Answer, PluginQuestion, SecretReference
from syncline.appset.rendering.goforms import GoError, RawJson, decoded_maps, flattened, shown
from syncline.kube.objects import Obj
from syncline.kube.text.jsontext import json_kind

INTERVAL_S = 1800.0
TIMEOUT_S = 30.0
OWN_SECRET = "argocd-secret"  # a name, not a secret


class PluginInput(dict[str, Any]):
    """Go's map[string]v1alpha1.PluginParameters, which is not flattened for selectors."""

    __slots__ = ()
    go_type = "map[string]v1alpha1.PluginParameters"
    kind = "map"


class PluginParameters(dict[str, RawJson]):
    __slots__ = ()
    go_type = "v1alpha1.PluginParameters"
    kind = "map"


def rows_of_plugin(element: Element, context: Context) -> Rows:
    """Return a row for each parameter set, with the request's own parameters below ``generator.input.parameters``."""
    given = element.below("input")
    parameters = given.below("parameters") if given is not None else None
    question = _question(element, parameters, context)
    answer = context.ask(question, interval(element, context))
    found = _sets(answer, context)
    return [_row(one, parameters, element, context) for one in found]


def interval(element: Element, context: Context) -> float:
    return element.seconds("requeueAfterSeconds", INTERVAL_S)


def _question(element: Element, parameters: Element | None, context: Context) -> PluginQuestion:
    reference = element.below("configMapRef")
    try:
        config = _config_map(reference.text("name") if reference is not None else "", context)
        token = _token(str(config["token"]), context.facts.control_namespace)
        timeout = _timeout(config.get("requestTimeout"))
    except GenerationError as error:
        raise GenerationError(f"error getting plugin from generator: {error}") from None
    body: Obj = {"applicationSetName": context.name, "input": {}}
    if parameters is not None and parameters.raw:
        body["input"] = {"parameters": parameters.raw}
    text = json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return PluginQuestion(str(config["baseUrl"]), text, token, timeout)


def _config_map(name: str, context: Context) -> Obj:
    found = context.facts.config_maps.get(name)
    if found is None:
        why = context.facts.unread.get(f"ConfigMap/{name}")
        missing = f'configmaps "{name}" not found'
        raise GenerationError(f"error fetching ConfigMap: {why or missing}")
    data = found.get("data")
    config: Obj = data if isinstance(data, dict) else {}
    for key in ("baseUrl", "token"):
        if not config.get(key):
            raise GenerationError(f"error fetching ConfigMap: {key} not found in ConfigMap")
    return config


def _token(reference: str, namespace: str) -> SecretReference:
    """``$KEY`` is a key of Argo CD's own Secret, ``$SECRET:KEY`` of another."""
    if not reference.startswith("$"):
        why = f"token is empty, or does not reference a secret key starting with '$': {reference}"
        raise GenerationError(f"error fetching Secret token: {why}")
    if ":" not in reference:
        return SecretReference(namespace, OWN_SECRET, reference[1:], purpose="plugin")
    secret, key = reference.split(":")[:2]
    return SecretReference(namespace, secret[1:], key, purpose="plugin")


def _timeout(given: Any) -> float:
    """Return seconds; 0 and absent mean the default."""
    if given is None:
        return TIMEOUT_S
    text = str(given)
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text, re.ASCII):
        raise GenerationError(f'error set requestTimeout : strconv.Atoi: parsing "{text}": invalid syntax')
    return float(int(text)) or TIMEOUT_S


def _sets(answer: Answer, context: Context) -> Rows:
    if answer.error:
        unread = f"error getting plugin from generator: error fetching Secret token: {answer.error}"
        raise GenerationError(unread if answer.unasked else _listing(answer.error, context))
    output = _object(answer.value, "ServiceResponse", context).get("output")
    parameters = _object(output, "Output", context).get("parameters")
    try:
        return decoded_maps(parameters)
    except GoError as error:
        raise GenerationError(_listing(str(error), context)) from None


def _listing(why: str, context: Context) -> str:
    return f"error listing params: error get api '{context.name}': {why}"


def _object(value: Any, kind: str, context: Context) -> Obj:
    if value is None:
        return {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type plugin.{kind}"
        raise GenerationError(_listing(why, context))
    return value


def _row(found: Row, parameters: Element | None, element: Element, context: Context) -> Row:
    row: Row = dict(found) if context.go else {key: shown(value) for key, value in flattened(found).items()}
    raw = parameters.raw if parameters is not None else {}
    own = PluginParameters({key: RawJson(value) for key, value in raw.items()})
    row["generator"] = {"input": PluginInput({"parameters": own})}
    try:
        context.add_values(row, element)
    except GenerationError as error:
        raise GenerationError(f"error generating params: {error}") from None
    return row

"""Read-only commands: get, extract, logs, version, whoami, wait."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

from syncline.cluster.machines.tools.arguments import Arguments
from syncline.cluster.machines.tools.printing import TABLE, check_format, shown, table_text
from syncline.cluster.machines.tools.steps import CommandError, Output, Session, Sleep, Steps
from syncline.cluster.machines.tools.targets import Target, display, named, namespace_of_command, targets_of
from syncline.kube import client
from syncline.kube.client import Request
from syncline.kube.objects import Obj, ResourceInfo, dig, generation
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.text.jsonpath import JsonPathError, compile_template

POLL_S = 1.0
"""Poll interval of a waiting command."""
WAIT_DEFAULT_S = 30.0
MAX_WAIT_S = 7 * 86400.0


# -- get -------------------------------------------------------------------------------------------------------------


def get(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    if arguments.get("raw"):
        path, _, query = arguments.get("raw").partition("?")
        answer = yield Request("GET", path, dict(part.split("=", 1) for part in query.split("&") if "=" in part))
        answer.or_raise()
        yield Output(answer.raw.decode("utf-8", "replace"))
        return 0
    if arguments.on("watch"):
        raise CommandError("error: watching is not supported by this tool; use wait")
    form = arguments.get("output")
    check_format(form)
    if not words and not arguments.all("filename"):
        raise CommandError("error: you must specify the type of resource to get")
    if len(words) == 1 and "/" not in words[0] and not arguments.all("filename"):
        return (yield from _get_lists(session, arguments, words[0], form))
    return (yield from _get_named(session, arguments, words, form))


def _get_lists(session: Session, arguments: Arguments, kinds: str, form: str) -> Steps[int]:
    infos = yield from session.resources(kinds)
    everywhere = arguments.on("all-namespaces")
    namespace = "" if everywhere else namespace_of_command(session, arguments)
    tables = form in ("", "wide")
    collected: list[Any] = []
    empty = True
    for info in infos:
        request = client.list_(
            info,
            namespace if info.namespaced else "",
            label_selector=arguments.get("selector"),
            field_selector=arguments.get("field-selector"),
        )
        answer = yield (_as_table(request) if tables else request)
        value = answer.or_raise()
        if not tables:
            collected += [_typed(item, info) for item in value.get("items") or ()]
        elif value.get("rows"):
            yield Output(("" if empty else "\n") + _table(value, arguments, info, len(infos) > 1, everywhere))
            empty = False
    if not tables:
        whole = {"apiVersion": "v1", "items": collected, "kind": "List", "metadata": {"resourceVersion": ""}}
        yield Output(shown(whole, form, headers=not arguments.on("no-headers")))
    elif empty and not arguments.on("ignore-not-found"):
        where = f" in {namespace} namespace" if namespace and infos[0].namespaced else ""
        yield Output(f"No resources found{where}.\n" if where else "No resources found\n", error=True)
    return 0


def _typed(item: Obj, info: ResourceInfo) -> Obj:
    """Add the kind that items of typed lists lack."""
    return {"apiVersion": info.api_version, "kind": info.kind, **item}


def _as_table(request: Request) -> Request:
    return Request(request.method, request.path, request.query, {**request.headers, "accept": TABLE}, request.body)


def _table(table: Obj, arguments: Arguments, info: ResourceInfo, several: bool, everywhere: bool) -> str:
    prefix = (f"{info.kind.lower()}.{info.group}/" if info.group else f"{info.kind.lower()}/") if several else ""
    return table_text(
        table,
        wide=arguments.get("output") == "wide",
        headers=not arguments.on("no-headers"),
        with_namespace=everywhere and info.namespaced,
        show_labels=arguments.on("show-labels"),
        prefix=prefix,
    )


def _get_named(session: Session, arguments: Arguments, words: list[str], form: str) -> Steps[int]:
    tables = form in ("", "wide")
    code = 0
    first = True
    found: list[Obj] = []
    targets = yield from (targets_of if arguments.all("filename") else named)(session, arguments, words)
    for target in targets:
        request = client.get(target.info, target.namespace, target.name, arguments.get("subresource"))
        answer = yield (_as_table(request) if tables else request)
        if answer.status == 404 and arguments.on("ignore-not-found"):
            continue
        if not answer.ok and len(targets) > 1:
            yield Output(f"Error from server ({answer.obj.get('reason')}): {answer.obj.get('message')}\n", error=True)
            code = 1
            continue
        value = answer.or_raise()
        if tables:
            text = _table(value, arguments, target.info, len(targets) > 1, False)
            yield Output(text if first else text.partition("\n")[2])
            first = False
        else:
            found.append(value)
    if found:
        single = found[0]
        whole = {"apiVersion": "v1", "items": found, "kind": "List", "metadata": {}}
        yield Output(shown(single if len(found) == 1 else whole, form, headers=not arguments.on("no-headers")))
    return code


# -- small ones ------------------------------------------------------------------------------------------------------


def logs(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    if len(words) != 1:
        raise CommandError("error: expected 'logs POD' with one name")
    word = words[0].removeprefix("pod/").removeprefix("pods/")
    pods = yield from session.resource("pods")
    query = {key: value for key in ("container",) if (value := arguments.get(key))}
    if arguments.get("tail") and arguments.get("tail") != "-1":
        query["tailLines"] = arguments.get("tail")
    if arguments.on("previous"):
        query["previous"] = "true"
    path = pods.path(namespace_of_command(session, arguments), word, "log")
    answer = yield Request("GET", path, query)
    if not answer.ok:
        answer.or_raise()
    yield Output(answer.raw.decode("utf-8", "replace"))
    return 0


def extract(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    """``oc extract secret/NAME --to=-``: print values of Secrets and ConfigMaps, and keys on the standard error."""
    if arguments.get("to") != "-":
        raise CommandError("error: this tool extracts to the standard output only: give --to=-")
    for target in (yield from named(session, arguments, words)):
        answer = yield client.get(target.info, target.namespace, target.name)
        obj = answer.or_raise()
        if target.info.kind not in ("Secret", "ConfigMap"):
            raise CommandError(f"error: {display(target.info, target.name)} is neither a secret nor a config map")
        texts = dict(obj.get("data") or {}) if target.info.kind == "ConfigMap" else {}
        coded = (obj.get("data") if target.info.kind == "Secret" else obj.get("binaryData")) or {}
        texts |= {key: b64decode(value).decode("utf-8", "replace") for key, value in coded.items()}
        wanted = [key for given in arguments.all("keys") for key in given.split(",")]
        for key in sorted(texts):
            if not wanted or key in wanted:
                yield Output(f"# {key}\n", error=True)
                yield Output(texts[key] if texts[key].endswith("\n") else texts[key] + "\n")
    return 0


def version(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    answer = yield Request("GET", "/version")
    found = answer.or_raise()
    if arguments.get("output") == "json":
        yield Output(json.dumps({"serverVersion": found}, indent=2) + "\n")
    else:
        yield Output(f"Client Version: syncline\nServer Version: {found.get('gitVersion', '')}\n")
    return 0


def whoami(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = yield Request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=body)
    yield Output(f"{dig(answer.or_raise(), 'status', 'userInfo', 'username', default='')}\n")
    return 0


# -- waiting ---------------------------------------------------------------------------------------------------------


def seconds_of(text: str, default: float) -> float:
    """Parse a duration flag (``30s``, or a number of seconds); negative means a week, as in kubectl."""
    if not text:
        return default
    try:
        value = float(text) if text.lstrip("-").isdigit() else parse_duration(text).total_seconds()
    except DurationError as error:
        raise CommandError(f'error: invalid argument "{text}" for "--timeout" flag: {error}') from error
    return MAX_WAIT_S if value < 0 else min(value, MAX_WAIT_S)


def wait(session: Session, arguments: Arguments, words: list[str]) -> Steps[int]:
    """``wait --for=condition=X[=V] | delete | create | jsonpath='{…}'[=V]``."""
    aim = arguments.get("for")
    if not aim:
        raise CommandError("error: no condition specified: give --for=condition=…, --for=jsonpath=… or --for=delete")
    left = seconds_of(arguments.get("timeout"), WAIT_DEFAULT_S)
    targets = yield from targets_of(session, arguments, words)
    if not targets and aim != "delete":
        raise CommandError("error: no matching resources found")
    code = 0
    for target in targets:
        met, left = yield from _wait_one(target, aim, left)
        if met:
            yield Output(f"{target} condition met\n")
        else:
            yield Output(f"error: timed out waiting for the condition on {_plural(target)}\n", error=True)
            code = 1
    return code


def _plural(target: Target) -> str:
    info = target.info
    return f"{info.plural}.{info.group}/{target.name}" if info.group else f"{info.plural}/{target.name}"


def _wait_one(target: Target, aim: str, left: float) -> Steps[tuple[bool, float]]:
    while True:
        answer = yield client.get(target.info, target.namespace, target.name)
        if answer.status == 404:
            if aim == "delete":
                return True, left
            if aim != "create":
                answer.or_raise()
        elif _is_met(aim, answer.or_raise()):
            return True, left
        if left <= 0:
            return False, 0.0
        pause = min(POLL_S, left)
        yield Sleep(pause)
        left -= pause


def _is_met(aim: str, obj: Obj) -> bool:
    what, _, rest = aim.partition("=")
    match what:
        case "create":
            return True
        case "delete":
            return False
        case "condition":
            kind, _, wanted = rest.partition("=")
            return any(_same_condition(each, kind, wanted or "True", obj) for each in _conditions(obj))
        case "jsonpath":
            path, value = _path_and_value(rest)
            try:
                values = compile_template(path).find(obj)
            except JsonPathError as error:
                raise CommandError(f"error: {error}") from error
            return bool(values) and (value is None or str(_plain(values[0])) == value)
    raise CommandError(f'error: unrecognized condition: "{aim}"')


def _conditions(obj: Obj) -> list[Obj]:
    found: list[Obj] = dig(obj, "status", "conditions", default=[])
    return found


def _same_condition(each: Obj, kind: str, wanted: str, obj: Obj) -> bool:
    """Match a condition; one with an older observedGeneration does not count."""
    observed = each.get("observedGeneration", dig(obj, "status", "observedGeneration", default=generation(obj)))
    return (
        str(each.get("type", "")).lower() == kind.lower()
        and str(each.get("status", "")).lower() == wanted.lower()
        and observed >= generation(obj)
    )


def _path_and_value(text: str) -> tuple[str, str | None]:
    """Split ``{.status.phase}=Running`` or ``{.status.phase}``; drop quotes left from a shell."""
    text = text.strip("'\"")
    end = text.rfind("}")
    if end < 0:
        raise CommandError(f"error: jsonpath wait format must be --for=jsonpath='{{.path}}'=value, got \"{text}\"")
    rest = text[end + 1 :].lstrip("'\"")
    return text[: end + 1], rest[1:].strip("'\"") if rest.startswith("=") else None


def _plain(value: Any) -> Any:
    return ("true" if value else "false") if isinstance(value, bool) else value

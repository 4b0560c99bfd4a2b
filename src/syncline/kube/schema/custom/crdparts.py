"""The parts of a CustomResourceDefinition beside its schemas: columns, subresources, selectable fields, conversion.

Called by ``crd.py``. Takes a definition; returns causes in Kubernetes' words, or the part with its defaults. Where all
versions share a part, causes name it at the top of the spec, as the internal form of Kubernetes holds it there.

Source: apiextensions-apiserver ``apis/apiextensions`` (validation, defaults and conversion of v1) and apiserver
``pkg/util/webhook/validation.go``.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509

from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, dig
from syncline.kube.patching.fieldpath import FieldPathError, find_field
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.text.names import dns_label_1035, dns_subdomain

WEBHOOK_PORT = 443
MAX_SELECTABLE_FIELDS = 8
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
REVIEW_VERSIONS = ("v1", "v1beta1")
SELECTABLE_TYPES = ("string", "boolean", "integer")


def versions_of(crd: Obj) -> list[Obj]:
    return [version for version in dig(crd, "spec", "versions", default=None) or [] if isinstance(version, dict)]


def label_1035(name: str, path: str) -> list[FieldCause]:
    """One cause with every problem of a DNS-1035 label."""
    problems = dns_label_1035(name)
    return [causes.invalid_value(path, name, ",".join(problems))] if problems else []


def shared_part(crd: Obj, field: str) -> bool:
    """Whether all versions say the same about ``field``, so that it stands at the top."""
    values = [version.get(field) or None for version in versions_of(crd)]
    return bool(values) and all(value == values[0] for value in values)


def _per_version(crd: Obj, field: str) -> list[tuple[str, Any, Obj]]:
    """(path, value, version) of a field of the versions."""
    versions = versions_of(crd)
    if shared_part(crd, field):
        return [(f"spec.{field}", versions[0].get(field), versions[0])]
    return [(f"spec.versions[{at}].{field}", version.get(field), version) for at, version in enumerate(versions)]


# --- what is filled in and left out --------------------------------------------------------------------------------

_EMPTY_IS_ABSENT = frozenset(
    (
        *("id", "$schema", "description", "type", "format", "title", "pattern", "required", "enum", "allOf", "oneOf"),
        *("anyOf", "properties", "patternProperties", "definitions", "dependencies", "exclusiveMaximum"),
        *("exclusiveMinimum", "uniqueItems", "nullable", "x-kubernetes-embedded-resource"),
        *("x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-validations"),
    )
)
_RULE_EMPTY_IS_ABSENT = frozenset({"message", "messageExpression", "fieldPath"})


def tidy_version(version: Any) -> Any:
    """A version without what says nothing: empty lists, ``false`` where that is the default, nulls."""
    if not isinstance(version, dict):
        return version
    kept = {key: value for key, value in version.items() if value is not None}
    for key in ("deprecated", "additionalPrinterColumns", "selectableFields"):
        if not kept.get(key, True):
            del kept[key]
    columns = kept.get("additionalPrinterColumns")
    if isinstance(columns, list):
        kept["additionalPrinterColumns"] = [_tidy_column(column) for column in columns]
    raw = dig(kept, "schema", "openAPIV3Schema")
    if isinstance(raw, dict):
        kept["schema"] = {**kept["schema"], "openAPIV3Schema": _tidy(raw)}
    return kept


def _tidy_column(column: Any) -> Any:
    if not isinstance(column, dict):
        return column
    return {key: value for key, value in column.items() if value or key not in ("format", "description", "priority")}


def _tidy(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    result: Obj = {}
    for key, value in raw.items():
        if value is None or (key in _EMPTY_IS_ABSENT and not value):
            continue
        if key in ("properties", "patternProperties", "definitions") and isinstance(value, dict):
            value = {name: _tidy(below) for name, below in value.items()}
        elif key in ("items", "additionalProperties", "additionalItems", "not"):
            value = _tidy(value)
        elif key in ("allOf", "anyOf", "oneOf") and isinstance(value, list):
            value = [_tidy(below) for below in value]
        elif key == "x-kubernetes-validations" and isinstance(value, list):
            value = [_tidy_rule(rule) for rule in value]
        result[key] = value
    return result


def _tidy_rule(rule: Any) -> Any:
    if not isinstance(rule, dict):
        return rule
    return {k: v for k, v in rule.items() if v is not None and (v or k not in _RULE_EMPTY_IS_ABSENT)}


def default_conversion(conversion: Any) -> Obj:
    """``None`` where nothing is said, and the port of a webhook's service."""
    if conversion is None:
        return {"strategy": "None"}
    service = dig(conversion, "webhook", "clientConfig", "service")
    if not isinstance(service, dict) or service.get("port") is not None:
        return dict(conversion)
    config = {**conversion["webhook"]["clientConfig"], "service": {**service, "port": WEBHOOK_PORT}}
    return {**conversion, "webhook": {**conversion["webhook"], "clientConfig": config}}


# --- columns, subresources, selectable fields ----------------------------------------------------------------------


def check_parts(crd: Obj, old: Obj | None) -> list[FieldCause]:
    """Printer columns, the scale subresource and selectable fields; ``old`` is what the definition replaces."""
    found: list[FieldCause] = []
    for path, columns, _ in _per_version(crd, "additionalPrinterColumns"):
        for index, column in enumerate(columns or []):
            found += _column(column, f"{path}[{index}]")
    for path, subresources, _ in _per_version(crd, "subresources"):
        found += _scale((subresources or {}).get("scale"), f"{path}.scale")
    for path, fields, version in _per_version(crd, "selectableFields"):
        if fields:
            before = next((v for v in versions_of(old or {}) if v.get("name") == version.get("name")), {})
            found += _selectable(fields, before.get("selectableFields"), version, path)
    return found


def _column(column: Obj, path: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    kind, form, where = column.get("type"), column.get("format"), column.get("jsonPath")
    if not column.get("name"):
        found.append(causes.required(f"{path}.name"))
    if not kind:
        found.append(causes.required(f"{path}.type", f"must be one of {','.join(COLUMN_TYPES)}"))
    elif kind not in COLUMN_TYPES:
        found.append(causes.invalid_value(f"{path}.type", kind, f"must be one of {','.join(COLUMN_TYPES)}"))
    if form and form not in COLUMN_FORMATS:
        found.append(causes.invalid_value(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    if not where:
        found.append(causes.required(f"{path}.JSONPath"))
    elif not where.startswith("."):
        found.append(causes.invalid_value(f"{path}.JSONPath", where, "must be a simple json path starting with ."))
    return found


SCALE_PATHS = (
    ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
    ("statusReplicasPath", (".status.",), "should be a json path under .status"),
    ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
)


def _scale(scale: Any, path: str) -> list[FieldCause]:
    if scale is None:
        return []
    found: list[FieldCause] = []
    for field, roots, why in SCALE_PATHS:
        where, value = f"{path}.{field}", scale.get(field)
        if not value:
            found += [] if field == "labelSelectorPath" else [causes.required(where)]
        elif not value.startswith("."):
            found.append(causes.invalid_value(where, value, "must be a simple json path starting with ."))
        elif not value.startswith(roots):
            found.append(causes.invalid_value(where, value, why))
    return found


def _selectable(fields: list[Obj], before: Any, version: Obj, path: str) -> list[FieldCause]:
    raw = dig(version, "schema", "openAPIV3Schema")
    if not isinstance(raw, dict):
        return []
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where, given = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not given:
            found.append(causes.required(where))
            continue
        try:
            steps, schema = find_field(given, raw, arrays=False)
        except FieldPathError as error:
            found.append(causes.invalid_value(where, given, f"is an invalid path: {error}"))
            continue
        if steps[0] == "metadata":
            found.append(causes.invalid_value(where, given, "must not point to fields in metadata"))
        if (schema or {}).get("type") not in SELECTABLE_TYPES:
            why = "must point to a field of type string, boolean or integer. Enum string fields and strings with "
            found.append(causes.invalid_value(where, given, why + "formats are allowed."))
        if ".".join(steps) in seen:
            found.append(causes.duplicate(where, given))
        seen.add(".".join(steps))
    kept = len(before or []) > MAX_SELECTABLE_FIELDS and before == fields
    if len(seen) > MAX_SELECTABLE_FIELDS and not kept:
        found.append(causes.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return found


# --- conversion ----------------------------------------------------------------------------------------------------


def check_conversion(crd: Obj, old: Obj | None, *, established: bool) -> list[FieldCause]:
    """The strategy and its webhook. A bundle of certificates is judged once the definition is established."""
    conversion, path = dig(crd, "spec", "conversion", default={}), "spec.conversion"
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    found: list[FieldCause] = []
    if not strategy:
        found.append(causes.required(f"{path}.strategy"))
    elif strategy not in ("None", "Webhook"):
        found.append(causes.not_supported(f"{path}.strategy", strategy, ("None", "Webhook")))
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        why = "should not be set when strategy is not set to Webhook"
        if config is not None:
            found.append(causes.forbidden(f"{path}.webhookClientConfig", why))
        if reviews:
            found.append(causes.forbidden(f"{path}.conversionReviewVersions", why))
        return found
    if config is None:
        found.append(causes.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        found += _client(config, f"{path}.webhookClientConfig")
        before = dig(old or {}, "spec", "conversion", "webhook", "clientConfig", "caBundle")
        if config.get("caBundle") and established and not (before and _bundle_problem(before)):
            problem = _bundle_problem(config["caBundle"])
            if problem:
                found.append(causes.invalid_value(f"{path}.webhookClientConfig.caBundle", config["caBundle"], problem))
    old_reviews = dig(old or {}, "spec", "conversion", "webhook", "conversionReviewVersions")
    strict = not old_reviews or any(version in REVIEW_VERSIONS for version in old_reviews)
    return found + _reviews(reviews, f"{path}.conversionReviewVersions", strict)


def _bundle_problem(bundle: str) -> str:
    try:
        return "" if x509.load_pem_x509_certificates(base64.b64decode(bundle)) else _NO_CERTIFICATE
    except (ValueError, binascii.Error):
        return _NO_CERTIFICATE


_NO_CERTIFICATE = "unable to load root certificates: unable to parse bytes as PEM block"


def _reviews(reviews: list[str], path: str, strict: bool) -> list[FieldCause]:
    if not reviews:
        return [causes.required(path)]
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, version in enumerate(reviews):
        if version in seen:
            found.append(causes.invalid_value(f"{path}[{index}]", version, "duplicate version"))
            continue
        seen.add(version)
        found += [causes.invalid_value(f"{path}[{index}]", version, why) for why in dns_label_1035(version)]
    if strict and not seen.intersection(REVIEW_VERSIONS):
        why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        found.append(causes.invalid_value(path, reviews, why))
    return found


def _client(config: Obj, path: str) -> list[FieldCause]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [causes.required(path, "exactly one of url or service is required")]
    return _url(url, f"{path}.url") if url is not None else _service(service or {}, f"{path}.service")


_FORM = "; desired format: https://host[/path]"


def _url(url: str, path: str) -> list[FieldCause]:
    problem = _url_problem(url)
    if problem:
        return [causes.required(path, f"url must be a valid URL: parse {causes.quoted(url)}: {problem}{_FORM}")]
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    found = []
    if parts.scheme != "https":
        found.append(causes.invalid_value(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        found.append(causes.invalid_value(path, host, f"host must be specified{_FORM}"))
    if user:
        found.append(causes.invalid_value(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(causes.invalid_value(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(causes.invalid_value(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def _url_problem(url: str) -> str:
    """What Go's parser says of a text that is no URL."""
    if url.startswith(":"):
        return "missing protocol scheme"
    head = url.partition("/")[0]
    if ":" in head and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", url):
        return "first path segment in URL cannot contain colon"
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in url):
        return "net/url: invalid control character in URL"
    host = urlsplit(url).netloc.rpartition("@")[2]
    if " " in host:
        return 'invalid character " " in host name'
    return ""


def _service(service: Obj, path: str) -> list[FieldCause]:
    found = [causes.required(f"{path}.{field}") for field in ("name", "namespace") if not service.get(field)]
    port, where = service.get("port"), service.get("path")
    if not isinstance(port, int) or not 1 <= port <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(causes.invalid_value(f"{path}.port", port, why))
    if not where or where == "/":
        return found
    path = f"{path}.path"
    if where == "//":
        return [*found, causes.invalid_value(path, where, "segment[0] may not be empty")]
    if not where.startswith("/"):
        found.append(causes.invalid_value(path, where, "must start with a '/'"))
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        problems = dns_subdomain(step) if step else []
        if not step:
            found.append(causes.invalid_value(path, where, f"segment[{index}] may not be empty"))
        found += [causes.invalid_value(path, where, f"segment[{index}]: {problem}") for problem in problems]
    return found

"""Certificates of Secrets, and what a CertificatePolicy says of them: :func:`judged`; pure. Rules and texts are those
of upstream's cert-policy-controller; what it writes to its log alone is a violation here."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cryptography import x509

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.text.durations import DurationError, duration_text, parse_duration
from syncline.kube.text.re2 import Pattern, compile_pattern
from syncline.patterns.policies.names import State

DEFAULT: Final = timedelta(hours=672)
"""How long a certificate must be valid at least where its policy does not say."""
MOST_BLOCKS: Final = 10
"""Blocks of one field in which a certificate is looked for: chains begin with that of the server."""
MOST_NAMES: Final = 200
"""Names of one certificate that count."""
_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]*?-----END CERTIFICATE-----")
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    OverflowError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
LONGEST_NAME: Final = 253
"""Characters of a host's name: what is longer is none, and fits no pattern."""
_NAMED: Final = ("certificate-name", "certmanager.k8s.io/certificate-name")
_KEY: Final = "certificate_key_name"


class InvalidPolicy(Exception):
    """Why a policy cannot be judged by."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The first certificate of a Secret. ``name``: by a label, else the Secret's."""

    name: str
    secret: str
    begins: datetime
    ends: datetime
    ca: bool = False
    sans: tuple[str, ...] = ()


def certificate_of(secret: Obj) -> Certificate | None:
    """Return the certificate of a Secret; None: it has none that can be read."""
    labels = labels_of(secret)
    text = dig(secret, "data", labels.get(_KEY) or "tls.crt")
    try:
        data = base64.b64decode(str(text or ""), validate=True)
    except (binascii.Error, ValueError):
        return None
    name = next((labels[one] for one in _NAMED if labels.get(one)), name_of(secret))
    for block, _ in zip(_BLOCK.finditer(data), range(MOST_BLOCKS), strict=False):
        try:
            found = x509.load_pem_x509_certificate(block[0])
            ca, sans = _extensions(found)
            return Certificate(name, name_of(secret), found.not_valid_before_utc, found.not_valid_after_utc, ca, sans)
        except _UNREADABLE:
            continue
    return None


def _extensions(found: x509.Certificate) -> tuple[bool, tuple[str, ...]]:
    ca, sans = False, tuple[str, ...]()
    for one in found.extensions:
        if isinstance(one.value, x509.BasicConstraints):
            ca = one.value.ca
        elif isinstance(one.value, x509.SubjectAlternativeName):
            sans = tuple(one.value.get_values_for_type(x509.DNSName))[:MOST_NAMES]
    return ca, sans


# -- rules -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """What a policy asks of certificates. ``least_ca``, ``most_ca``: of authorities, None: as of others."""

    least: timedelta
    least_ca: timedelta | None = None
    most: timedelta | None = None
    most_ca: timedelta | None = None
    allowed: Pattern | None = None
    disallowed: Pattern | None = None
    patterns: str = ""

    def least_of(self, one: Certificate) -> timedelta:
        return self.least_ca if one.ca and self.least_ca is not None else self.least

    def expires(self, one: Certificate, now: datetime) -> bool:
        return one.ends - now < self.least_of(one)

    def lives_long(self, one: Certificate) -> bool:
        most = self.most_ca if one.ca and self.most_ca is not None else self.most
        return most is not None and one.ends - one.begins > most

    def misnamed(self, one: Certificate) -> bool:
        allowed, disallowed = self.allowed, self.disallowed
        if self.patterns and any(len(name) > LONGEST_NAME for name in one.sans):
            return True
        if allowed is not None and any(allowed.search(name) is None for name in one.sans):
            return True
        return disallowed is not None and any(disallowed.search(name) is not None for name in one.sans)


def limits_of(spec: Mapping[str, Any]) -> Limits:
    """Read the limits of a policy. Raises :class:`InvalidPolicy`."""
    least, least_ca, most, most_ca = (
        _duration(spec, f"{one}Duration") for one in ("minimum", "minimumCA", "maximum", "maximumCA")
    )
    allowed, disallowed = (spec.get(f"{one}SANPattern") or "" for one in ("allowed", "disallowed"))
    used = f"Allowed: {allowed}" if allowed else ""
    used += f" Disallowed: {disallowed}" if disallowed else ""
    fits, unfit = _pattern("allowedSANPattern", allowed), _pattern("disallowedSANPattern", disallowed)
    return Limits(DEFAULT if least is None else least, least_ca, most, most_ca, fits, unfit, used)


def _duration(spec: Mapping[str, Any], key: str) -> timedelta | None:
    try:
        return parse_duration(str(spec[key])) if spec.get(key) else None
    except DurationError as error:
        raise InvalidPolicy(f"spec.{key} is not valid: {error}") from error


def _pattern(key: str, text: str) -> Pattern | None:
    try:
        return compile_pattern(text) if text else None
    except re.error as error:
        raise InvalidPolicy(f"spec.{key} is not a valid regular expression: {error}") from error


# -- the report --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """``details``: ``compliancyDetails`` by namespace; ``turns``: when the next of the good certificates is bad."""

    state: State
    message: str
    details: Obj = field(default_factory=dict)
    turns: datetime | None = None


def judged(limits: Limits, found: Mapping[str, Sequence[Certificate]], now: datetime) -> Judged:
    """Judge the certificates of each selected namespace."""
    if not found:
        text = "Found 0 non compliant certificates, no namespaces were selected.\n"
        message = f"{State.COMPLIANT}; No namespaces matched the namespace selector."
        return Judged(State.COMPLIANT, message, {"": {"NonCompliantCertificatesList": {}, "message": text}})
    bad = {place: _bad(limits, listed, now) for place, listed in sorted(found.items())}
    details = {place: _detail(limits, place, listed, now) for place, listed in bad.items()}
    named = {one.name for listed in bad.values() for one in listed}
    good = (one.ends - limits.least_of(one) for listed in found.values() for one in listed if one.name not in named)
    turns = min((when for when in good if when >= now), default=None)
    if not any(bad.values()):
        return Judged(State.COMPLIANT, str(State.COMPLIANT), details, turns)
    return Judged(State.NON_COMPLIANT, f"{State.NON_COMPLIANT}; {_message(limits, bad, now)}", details, turns)


def _bad(limits: Limits, listed: Sequence[Certificate], now: datetime) -> list[Certificate]:
    """Return the certificates that are not as they should be: one of a name, in order."""
    found = (one for one in listed if limits.expires(one, now) or limits.lives_long(one) or limits.misnamed(one))
    return sorted({one.name: one for one in found}.values(), key=lambda one: one.name)


def _detail(limits: Limits, namespace: str, listed: Sequence[Certificate], now: datetime) -> Obj:
    lines = [f"Found {len(listed)} non compliant certificates in the namespace {namespace}."]
    lines += ["List of non compliant certificates:"] if listed else []
    for one in listed:
        if limits.expires(one, now):
            lines.append(f"{one.name} expires on {format_time(one.ends)}")
        if limits.lives_long(one):
            lines.append(f"{one.name} duration too long {_text(one.ends - one.begins)}")
        if limits.misnamed(one):
            lines.append(f"{one.name} SAN entry found not matching pattern {limits.patterns}")
    made: Obj = {"NonCompliantCertificatesList": {one.name: _entry(one, now) for one in listed}}
    return made | ({"NonCompliantCertificates": len(listed)} if listed else {}) | {"message": "\n".join(lines) + "\n"}


def _entry(one: Certificate, now: datetime) -> Obj:
    made: Obj = {"secretName": one.secret, "expiration": format_time(one.ends.astimezone(UTC))}
    made |= {"expiry": _nanos(one.ends - now), "duration": _nanos(one.ends - one.begins)}
    return made | ({"ca": True} if one.ca else {}) | ({"sans": list(one.sans)} if one.sans else {})


def _message(limits: Limits, bad: Mapping[str, Sequence[Certificate]], now: datetime) -> str:
    def named(test: Callable[[Certificate], bool]) -> list[str]:
        return [f"{place}:{one.secret}" for place, listed in bad.items() for one in listed if test(one)]

    by_ca = (limits.least_ca is not None, limits.most_ca is not None)
    said = (
        (
            named(lambda one: limits.expires(one, now) and not (one.ca and by_ca[0])),
            "",
            "expire in less than ",
            limits.least,
        ),
        (
            named(lambda one: limits.expires(one, now) and one.ca and by_ca[0]),
            "CA ",
            "expire in less than ",
            limits.least_ca,
        ),
        (named(lambda one: limits.lives_long(one) and not (one.ca and by_ca[1])), "", _LONG, limits.most),
        (named(lambda one: limits.lives_long(one) and one.ca and by_ca[1]), "CA ", _LONG, limits.most_ca),
        (named(limits.misnamed), "", "defined SAN entries do not match pattern ", limits.patterns),
    )
    made = ""
    for at, (listed, what, text, limit) in enumerate(said):
        if listed:
            shown = _text(limit) if isinstance(limit, timedelta) else limit
            made += f"{' ' if at else ''}{len(listed)} {what}certificates {text}{shown}: {', '.join(listed)}\n"
    return made


_LONG: Final = "exceed the maximum duration of "


def _text(duration: timedelta) -> str:
    return duration_text(_nanos(duration))


def _nanos(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1) * 1000

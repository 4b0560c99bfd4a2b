"""TLS profiles of config.openshift.io: minimum version and cipher suites, by the names that kubelets accept.

Source: ``openshift/api`` config/v1 ``types_tlssecurityprofile.go`` and the cipher table of library-go.
"""

from __future__ import annotations

from syncline.kube.objects import Obj

_FAST = (
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
_SOUND = (
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
)
_AGED = (
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA384",
    "ECDHE-RSA-AES256-SHA384",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
)
_PROFILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Old": ("VersionTLS10", _FAST + _SOUND + _AGED),
    "Intermediate": ("VersionTLS12", _FAST + _SOUND),
    "Modern": ("VersionTLS13", _FAST),
}

_KNOWN = {
    **{name: name for name in _FAST},
    "ECDHE-ECDSA-CHACHA20-POLY1305": "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-RSA-CHACHA20-POLY1305": "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-SHA256": "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "ECDHE-RSA-AES128-SHA256": "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "AES128-GCM-SHA256": "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "AES256-GCM-SHA384": "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "AES128-SHA256": "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "AES128-SHA": "TLS_RSA_WITH_AES_128_CBC_SHA",
    "AES256-SHA": "TLS_RSA_WITH_AES_256_CBC_SHA",
    "DES-CBC3-SHA": "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "ECDHE-RSA-DES-CBC3-SHA": "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    **{
        f"ECDHE-{key}-{short}": f"TLS_ECDHE_{key}_WITH_{long}"
        for key in ("ECDSA", "RSA")
        for short, long in (
            ("AES128-GCM-SHA256", "AES_128_GCM_SHA256"),
            ("AES256-GCM-SHA384", "AES_256_GCM_SHA384"),
            ("AES128-SHA", "AES_128_CBC_SHA"),
            ("AES256-SHA", "AES_256_CBC_SHA"),
        )
    },
}
"""OpenSSL's name to IANA's, for the suites that Go has; others are left out."""


def tls_settings(profile: Obj | None) -> tuple[str, list[str]]:
    """Return ``tlsMinVersion`` and ``tlsCipherSuites`` of a ``tlsSecurityProfile``; None means Intermediate."""
    kind = "Intermediate" if profile is None else str(profile.get("type") or "")
    custom = (profile or {}).get("custom") if kind == "Custom" else None
    if custom is not None:
        version, ciphers = str(custom.get("minTLSVersion") or ""), tuple(custom.get("ciphers") or ())
    else:
        version, ciphers = _PROFILES.get(kind, _PROFILES["Intermediate"])
    return version, [_KNOWN[name] for name in ciphers if name in _KNOWN]

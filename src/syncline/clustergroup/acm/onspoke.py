"""Templates that the policy controller fills in, on the hub or on the managed cluster.

They are an interface: the texts are compared with what is on clusters, so they are those that the chart writes.
"""

from __future__ import annotations

from typing import Final


def _looked_up(api: str, kind: str, name: str) -> str:
    return f'(lookup "{api}" "{kind}" "" "{name}")'


def braced(text: str) -> str:
    return f"{{{{ {text} }}}}"


_CONFIG: Final = "config.openshift.io/v1"
_INGRESS: Final = f"{_looked_up(_CONFIG, 'Ingress', 'cluster')}.spec.domain"
_RELEASE: Final = f"(semver (index {_looked_up(_CONFIG, 'ClusterVersion', 'version')}.status.history 0).version)"
PLATFORM: Final = braced(f"{_looked_up(_CONFIG, 'Infrastructure', 'cluster')}.spec.platformSpec.type")
"""Such as ``AWS``."""
VERSION: Final = braced(f'printf "%d.%d" ({_RELEASE}.Major) ({_RELEASE}.Minor)')
"""Such as ``4.16``."""
NAME: Final = braced(f'(split "." {_INGRESS})._1')
"""The cluster's name: the second label of the domain of its routes."""
APPS_DOMAIN: Final = braced(_INGRESS)
DOMAIN: Final = braced(f'{_INGRESS} | replace "apps." ""')
SECRETS_NAMESPACE: Final = braced(
    'if (lookup "v1" "Namespace" "" "external-secrets-operator") }}external-secrets{{ else }}'
    "golang-external-secrets{{ end"
)


def _of_hub(name: str, key: str, form: str) -> str:
    return f'{{{{hub fromConfigMap "" "{name}" "{key}" | {form} hub}}}}'


_BUNDLES: Final = (
    ("hub-kube-root-ca.crt", "kube-root-ca.crt", "ca.crt"),
    ("hub-openshift-service-ca.crt", "openshift-service-ca.crt", "service-ca.crt"),
)
AUTHORITIES: Final = {file: _of_hub(name, key, "autoindent") + "\n" for file, name, key in _BUNDLES}
"""The hub's certificate authorities, as a ConfigMap has them."""
SECRET_AUTHORITIES: Final = {file: _of_hub(name, key, "base64enc") for file, name, key in _BUNDLES}
"""The same, as a Secret has them."""
REPOSITORY: Final = "vp-private-repo-credentials"
"""Secret with the credentials of a private pattern repository."""
HUB_NAMESPACE: Final = "open-cluster-management"
HUBS_CREDENTIALS: Final = f'{{{{hub copySecretData "{HUB_NAMESPACE}" "{REPOSITORY}" hub}}}}'

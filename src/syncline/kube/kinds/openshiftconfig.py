"""Kinds of ``config.openshift.io`` (and the older mirror policy of ``operator.openshift.io``) that machine
configuration reads: which registries may be used and mirrored, cgroups and latency, TLS. Fields as upstream's where
they are read; a cluster that has these kinds keeps its own definitions.
"""

from __future__ import annotations

from syncline.kube.kinds.machineconfiguration import OPERATOR_GROUP, openshift_kind
from syncline.kube.kinds.structure import ANY, BOOL, STR, Fields, enum, items, obj, strings
from syncline.kube.objects import GVK, Obj

GROUP = "config.openshift.io"
IMAGE_CONFIG = GVK(GROUP, "v1", "Image")
NODE_CONFIG = GVK(GROUP, "v1", "Node")
API_SERVER_CONFIG = GVK(GROUP, "v1", "APIServer")
DIGEST_MIRRORS = GVK(GROUP, "v1", "ImageDigestMirrorSet")
TAG_MIRRORS = GVK(GROUP, "v1", "ImageTagMirrorSet")
SOURCE_POLICY = GVK(OPERATOR_GROUP, "v1alpha1", "ImageContentSourcePolicy")


def _schema(spec: Obj, about: str) -> Obj:
    fields: Fields = {"apiVersion": STR, "kind": STR, "metadata": {"type": "object"}, "spec": spec, "status": ANY}
    return obj(fields, "spec", about=about)


def _mirrors(field: str, about: str) -> Obj:
    mirror = obj(
        {
            "mirrorSourcePolicy": enum("NeverContactSource", "AllowContactingSource"),
            "mirrors": strings() | {"x-kubernetes-list-type": "set"},
            "source": STR,
        },
        "source",
    )
    return _schema(obj({field: items(mirror) | {"x-kubernetes-list-type": "atomic"}}), about)


def _image() -> Obj:
    registries = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 256}, "maxItems": 1024}
    sources = obj(
        {
            "allowedRegistries": registries,
            "blockedRegistries": registries,
            "containerRuntimeSearchRegistries": strings() | {"minItems": 1, "x-kubernetes-list-type": "set"},
            "insecureRegistries": registries,
        }
    )
    sources["x-kubernetes-validations"] = [
        {
            "rule": "has(self.blockedRegistries) ? !has(self.allowedRegistries) : true",
            "message": "Only one of blockedRegistries or allowedRegistries may be set",
        }
    ]
    spec = obj(
        {
            "additionalTrustedCA": obj({"name": STR}, "name"),
            "allowedRegistriesForImport": items(obj({"domainName": STR, "insecure": BOOL})),
            "externalRegistryHostnames": strings(),
            "imageStreamImportMode": enum("", "Legacy", "PreserveOriginal"),
            "registrySources": sources,
        }
    )
    return _schema(spec, "Image, named cluster, says which registries machines may use.")


def _node() -> Obj:
    profiles = enum("Default", "MediumUpdateAverageReaction", "LowUpdateSlowReaction")
    spec = obj({"cgroupMode": enum("v2", ""), "workerLatencyProfile": profiles})
    return _schema(spec, "Node, named cluster, says what all nodes have in common.")


def openshift_config_crds() -> tuple[Obj, ...]:
    """The definitions, for a cluster that lacks them."""
    mirrors = items(obj({"mirrors": strings(), "source": STR}, "source"))
    policy = _schema(obj({"repositoryDigestMirrors": mirrors}), "Mirrors of registries, in the older form.")
    open_spec = obj({"tlsSecurityProfile": ANY}) | {"x-kubernetes-preserve-unknown-fields": True}
    server = _schema(open_spec, "APIServer, named cluster; read for its TLS profile.")
    digest = _mirrors("imageDigestMirrors", "Mirrors for images that are named by digest.")
    tag = _mirrors("imageTagMirrors", "Mirrors for images that are named by tag.")
    return (
        openshift_kind(IMAGE_CONFIG, "images", _image(), status=True),
        openshift_kind(NODE_CONFIG, "nodes", _node(), status=True),
        openshift_kind(API_SERVER_CONFIG, "apiservers", server, status=True),
        openshift_kind(DIGEST_MIRRORS, "imagedigestmirrorsets", digest, short=("idms",), status=True),
        openshift_kind(TAG_MIRRORS, "imagetagmirrorsets", tag, short=("itms",), status=True),
        openshift_kind(SOURCE_POLICY, "imagecontentsourcepolicies", policy, status=True),
    )

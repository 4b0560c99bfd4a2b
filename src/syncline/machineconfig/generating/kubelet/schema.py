"""The fields of KubeletConfiguration ``kubelet.config.k8s.io/v1beta1`` as a table: read, merged and written as Go does.

One line per object. ``name:type`` with ``?`` (absent and zero differ), ``[T]`` (list), ``{T}`` (map of texts to T) and
``!`` (written even when zero). ``int`` has 32 bits, ``long`` 64, ``uint`` 32 without a sign. ``dur`` is a duration,
``flush`` a duration or nanoseconds, ``size`` a quantity; names in capitals are objects of the table. Durations, sizes
and objects without ``?`` are always written, since Go's encoder leaves no struct out. Source:
``k8s.io/kubelet/config/v1beta1/types.go``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.text.durations import DurationError, duration_text, parse_nanoseconds
from syncline.kube.text.quantity import QuantityError, text_as_read

ROOT = "KubeletConfiguration"

_TABLE = """
KubeletConfiguration kind:str apiVersion:str enableServer:bool? staticPodPath:str podLogsDir:str syncFrequency:dur \
fileCheckFrequency:dur httpCheckFrequency:dur staticPodURL:str staticPodURLHeader:{[str]} address:str port:int \
readOnlyPort:int tlsCertFile:str tlsPrivateKeyFile:str tlsCipherSuites:[str] tlsCurvePreferences:[int] \
tlsMinVersion:str rotateCertificates:bool serverTLSBootstrap:bool authentication:Authentication \
authorization:Authorization registryPullQPS:int? registryBurst:int imagePullCredentialsVerificationPolicy:str \
preloadedImagesVerificationAllowlist:[str] eventRecordQPS:int? eventBurst:int enableDebuggingHandlers:bool? \
enableContentionProfiling:bool healthzPort:int? healthzBindAddress:str oomScoreAdj:int? clusterDomain:str \
clusterDNS:[str] streamingConnectionIdleTimeout:dur nodeStatusUpdateFrequency:dur nodeStatusReportFrequency:dur \
nodeLeaseDurationSeconds:int imageMinimumGCAge:dur imageMaximumGCAge:dur imageGCHighThresholdPercent:int? \
imageGCLowThresholdPercent:int? volumeStatsAggPeriod:dur kubeletCgroups:str systemCgroups:str cgroupRoot:str \
cgroupsPerQOS:bool? cgroupDriver:str cpuManagerPolicy:str singleProcessOOMKill:bool? cpuManagerPolicyOptions:{str} \
cpuManagerReconcilePeriod:dur memoryManagerPolicy:str topologyManagerPolicy:str topologyManagerScope:str \
topologyManagerPolicyOptions:{str} qosReserved:{str} runtimeRequestTimeout:dur hairpinMode:str maxPods:int podCIDR:str \
podPidsLimit:long? resolvConf:str? runOnce:bool cpuCFSQuota:bool? cpuCFSQuotaPeriod:dur? nodeStatusMaxImages:int? \
maxOpenFiles:long contentType:str kubeAPIQPS:int? kubeAPIBurst:int serializeImagePulls:bool? \
maxParallelImagePulls:int? \
evictionHard:{str} evictionSoft:{str} evictionSoftGracePeriod:{str} evictionPressureTransitionPeriod:dur \
evictionMaxPodGracePeriod:int evictionMinimumReclaim:{str} mergeDefaultEvictionSettings:bool? podsPerCore:int \
enableControllerAttachDetach:bool? protectKernelDefaults:bool makeIPTablesUtilChains:bool? iptablesMasqueradeBit:int? \
iptablesDropBit:int? featureGates:{bool} failSwapOn:bool? memorySwap:MemorySwap containerLogMaxSize:str \
containerLogMaxFiles:int? containerLogMaxWorkers:int? containerLogMonitorInterval:dur? \
configMapAndSecretChangeDetectionStrategy:str systemReserved:{str} kubeReserved:{str} reservedSystemCPUs:str \
showHiddenMetricsForVersion:str systemReservedCgroup:str kubeReservedCgroup:str enforceNodeAllocatable:[str] \
allowedUnsafeSysctls:[str] volumePluginDir:str providerID:str kernelMemcgNotification:bool logging:Logging \
enableSystemLogHandler:bool? enableSystemLogQuery:bool? shutdownGracePeriod:dur shutdownGracePeriodCriticalPods:dur \
shutdownGracePeriodByPodPriority:[ShutdownPriority] crashLoopBackOff:CrashLoop reservedMemory:[Reservation] \
enableProfilingHandler:bool? enableDebugFlagsHandler:bool? seccompDefault:bool? memoryThrottlingFactor:num? \
memoryReservationPolicy:str registerWithTaints:[Taint] registerNode:bool? tracing:Tracing? \
localStorageCapacityIsolation:bool? containerRuntimeEndpoint:str! imageServiceEndpoint:str failCgroupV1:bool? \
userNamespaces:UserNamespaces?
Authentication x509:X509 webhook:WebhookAuthentication anonymous:Anonymous
X509 clientCAFile:str
WebhookAuthentication enabled:bool? cacheTTL:dur
Anonymous enabled:bool?
Authorization mode:str webhook:WebhookAuthorization
WebhookAuthorization cacheAuthorizedTTL:dur cacheUnauthorizedTTL:dur
MemorySwap swapBehavior:str
Logging format:str flushFrequency:flush! verbosity:uint! vmodule:[VModule] options:Formats
VModule filePattern:str! verbosity:uint!
Formats text:Routing json:Routing
Routing splitStream:bool infoBufferSize:size
ShutdownPriority priority:int! shutdownGracePeriodSeconds:long!
CrashLoop maxContainerRestartPeriod:dur?
Reservation numaNode:int! limits:{size}!
Taint key:str! value:str effect:str! timeAdded:str?
Tracing endpoint:str? samplingRatePerMillion:int?
UserNamespaces idsPerPod:long?
"""

_TOKEN = re.compile(r"(\w+):([\[{]*)(\w+)[\]}]*(\??)(!?)")
_ZERO: dict[str, Any] = {
    "str": "",
    "bool": False,
    "int": 0,
    "long": 0,
    "uint": 0,
    "num": 0.0,
    "dur": 0,
    "flush": 0,
    "size": "0",
}


_RANGES = {"int": (-(2**31), 2**31), "long": (-(2**63), 2**63), "uint": (0, 2**32)}


class KubeletDecodeError(ValueError):
    """A value has the wrong type; the message resembles Go's."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field. ``wraps``: containers around its type, outermost first: ``[`` for a list, ``{`` for a map."""

    name: str
    wraps: str
    type: str
    pointer: bool
    always: bool

    @property
    def table(self) -> bool:
        return self.type[0].isupper()


@cache
def _objects() -> dict[str, dict[str, Field]]:
    found = {}
    for line in _TABLE.strip().split("\n"):
        name, rest = line.split(None, 1)
        fields = [Field(m[1], m[2], m[3], bool(m[4]), bool(m[5])) for m in _TOKEN.finditer(rest)]
        found[name] = {field.name: field for field in fields}
    return found


@cache
def _folded(kind: str) -> dict[str, Field]:
    return {name.casefold(): field for name, field in _objects()[kind].items()}


def decode(raw: Any) -> Obj:
    """Return the known fields of ``raw``, with keys in any case and without implicit zero values. If decoding as JSON
    fails, YAML rules apply, which accept numbers as texts. Raises KubeletDecodeError."""
    try:
        return _object(raw, ROOT, as_yaml=False)
    except KubeletDecodeError as refused:
        try:
            return _object(raw, ROOT, as_yaml=True)
        except KubeletDecodeError:
            raise refused from None


def _object(raw: Any, kind: str, *, as_yaml: bool) -> Obj:
    if not isinstance(raw, dict):
        # A value that is no object is decoded as YAML, hence the prefix of its error.
        reader = "error unmarshaling JSON: while decoding JSON: " if kind == ROOT else ""
        raise KubeletDecodeError(f"{reader}json: cannot unmarshal {_go_kind(raw)} into Go value of type v1beta1.{kind}")
    found: Obj = {}
    for key, value in raw.items():
        field = _objects()[kind].get(key) or _folded(kind).get(key.casefold())
        if field is None:
            continue
        if value is None:
            if field.type == "dur" and not field.pointer:
                raise KubeletDecodeError('time: invalid duration ""')
            continue
        typed = _value(field, field.wraps, value, kind, as_yaml=as_yaml)
        if field.pointer or field.always or typed not in (_ZERO.get(field.type), [], {}):
            found[field.name] = typed
        else:
            found.pop(field.name, None)
    return found


def _value(field: Field, wraps: str, value: Any, kind: str, *, as_yaml: bool) -> Any:
    if wraps:
        if wraps[0] == "[" and isinstance(value, list):
            return [_value(field, wraps[1:], one, kind, as_yaml=as_yaml) for one in value]
        if wraps[0] == "{" and isinstance(value, dict):
            return {str(key): _value(field, wraps[1:], one, kind, as_yaml=as_yaml) for key, one in value.items()}
        raise _wrong(field, value, kind)
    if field.table:
        return _object(value, field.type, as_yaml=as_yaml)
    if as_yaml and field.type == "str" and isinstance(value, bool | int | float):
        return str(value).lower().removesuffix(".0")
    try:
        return _scalar(field.type, value)
    except (DurationError, QuantityError) as error:
        raise KubeletDecodeError(str(error)) from error
    except TypeError:
        raise _wrong(field, value, kind) from None


def _scalar(kind: str, value: Any) -> Any:
    """Return a checked value in canonical form, e.g. durations in nanoseconds. Raises TypeError."""
    if kind in _RANGES:
        low, high = _RANGES[kind]
        if type(value) is not int or not low <= value < high:
            raise TypeError
    plain = {"str": str, "bool": bool, "dur": str}.get(kind)
    if plain is not None and not isinstance(value, plain):
        raise TypeError
    if kind == "dur":
        return parse_nanoseconds(value)
    if kind == "flush":
        return duration_text(parse_nanoseconds(value)) if isinstance(value, str) else _scalar("long", value)
    if kind == "size":
        return text_as_read(value)
    if kind == "num":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError
        return float(value)
    return value


def _wrong(field: Field, value: Any, kind: str) -> KubeletDecodeError:
    where = f"Go struct field {kind}.{field.name} of type {field.type}"
    return KubeletDecodeError(f"json: cannot unmarshal {_go_kind(value)} into {where}")


def _go_kind(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def merge(base: Obj, over: Obj, kind: str = ROOT) -> Obj:
    """Return ``base`` with ``over`` merged in, both as :func:`decode` returns them: zero values are dropped, lists
    replaced, maps and objects merged (as ``mergo.Merge`` with override, which cannot read sizes and drops them)."""
    merged = dict(base)
    for name, value in over.items():
        field = _objects()[kind][name]
        if field.type == "size" and not field.wraps:
            continue
        if field.table and not field.wraps and not field.pointer:
            merged[name] = merge(merged.get(name) or {}, value, field.type)
        elif name not in merged:
            merged[name] = value
        elif field.wraps[:1] == "{":
            merged[name] = merged[name] | value
        elif field.wraps:
            merged[name] = value or merged[name]
        elif field.table:
            merged[name] = merge(merged[name], value, field.type)
        elif value not in (_ZERO[field.type], duration_text(0) if field.type == "flush" else None):
            merged[name] = value
    return merged


def encode(config: Obj, kind: str = ROOT) -> Obj:
    """Return a configuration of :func:`decode` as JSON."""
    written: Obj = {}
    for name, field in _objects()[kind].items():
        if field.wraps:
            if config.get(name) or field.always:
                written[name] = _encoded(field, field.wraps, config.get(name))
        elif field.pointer:
            if name in config:
                written[name] = _encoded(field, "", config[name])
        elif field.table:
            written[name] = encode(config.get(name) or {}, field.type)
        elif config.get(name) or field.always or field.type in ("dur", "size"):
            written[name] = _encoded(field, "", config.get(name, _ZERO[field.type]))
    return written


def _encoded(field: Field, wraps: str, value: Any) -> Any:
    if wraps and value is None:
        return None
    if wraps[:1] == "[":
        return [_encoded(field, wraps[1:], one) for one in value]
    if wraps[:1] == "{":
        return {key: _encoded(field, wraps[1:], one) for key, one in value.items()}
    if field.table:
        return encode(value, field.type)
    return duration_text(value) if field.type == "dur" else value

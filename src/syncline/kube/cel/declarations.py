"""Declares every function of expressions with its overloads.

Used by ``checker``. A line is ``name: receiver.(arguments) -> result``; functions without a receiver have none. The ids
of overloads that cost estimates need are written in front. Source: cel-go ``common/stdlib`` and ``ext``, apiserver
``pkg/cel/library``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from syncline.kube.cel.types import Type, type_of_text

_NUMBERS = "int uint double"
_ORDERED = "bool int uint double string bytes timestamp duration"


@dataclass(frozen=True, slots=True)
class Overload:
    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """The functions of expressions that are not those of Kubernetes' rules and policies: other controllers have
    environments of their own."""

    functions: Mapping[str, tuple[Overload, ...]]
    macros: bool = True
    """Whether loops with two variables and ``sortBy`` exist (cel-go ``ext`` comprehensions and lists)."""
    literals: bool = True
    """Whether literals are checked before evaluation: times, durations, patterns, lists of one type."""


TEXT = """
!_: (bool)->bool
-_: (int)->int | (double)->double
@not_strictly_false: (bool)->bool
logical_and _&&_: (bool,bool)->bool
logical_or _||_: (bool,bool)->bool
conditional _?_:_: (bool,A,A)->A
equals _==_: (A,A)->bool
not_equals _!=_: (A,A)->bool
in_list @in: (A,list<A>)->bool | in_map (A,map<A,B>)->bool
index_list _[_]: (list<A>,int)->A | index_map (map<A,B>,A)->B | (optional_type<list<A>>,int)->optional_type<A>
  | (optional_type<map<A,B>>,A)->optional_type<B>
_[?_]: (list<A>,int)->optional_type<A> | (optional_type<list<A>>,int)->optional_type<A>
  | (map<A,B>,A)->optional_type<B> | (optional_type<map<A,B>>,A)->optional_type<B>
_+_: (int,int)->int | (uint,uint)->uint | (double,double)->double | add_string (string,string)->string
  | add_bytes (bytes,bytes)->bytes | add_list (list<A>,list<A>)->list<A> | (timestamp,duration)->timestamp
  | (duration,timestamp)->timestamp | (duration,duration)->duration
_-_: (int,int)->int | (uint,uint)->uint | (double,double)->double | (timestamp,timestamp)->duration
  | (timestamp,duration)->timestamp | (duration,duration)->duration
_*_: (int,int)->int | (uint,uint)->uint | (double,double)->double
_/_: (int,int)->int | (uint,uint)->uint | (double,double)->double
_%_: (int,int)->int | (uint,uint)->uint
size: (string)->int | (bytes)->int | (list<A>)->int | (map<A,B>)->int | string.()->int | bytes.()->int
  | list<A>.()->int | map<A,B>.()->int
contains_string contains: string.(string)->bool
starts_with_string startsWith: string.(string)->bool
ends_with_string endsWith: string.(string)->bool
matches_string matches: (string,string)->bool | matches_string string.(string)->bool
int: (int)->int | (uint)->int | (double)->int | (string)->int | (timestamp)->int | (duration)->int
uint: (int)->uint | (uint)->uint | (double)->uint | (string)->uint
double: (int)->double | (uint)->double | (double)->double | (string)->double
string: (int)->string | (uint)->string | (double)->string | (bool)->string | (string)->string
  | bytes_to_string (bytes)->string | (timestamp)->string | (duration)->string | (net.IP)->string
  | (net.CIDR)->string
bytes: (bytes)->bytes | string_to_bytes (string)->bytes
bool: (bool)->bool | (string)->bool
timestamp: (string)->timestamp | (int)->timestamp | (timestamp)->timestamp
duration: (string)->duration | (int)->duration | (duration)->duration
dyn: (A)->dyn
type: (A)->type<A>
getFullYear: timestamp.()->int | timestamp.(string)->int
getMonth: timestamp.()->int | timestamp.(string)->int
getDayOfYear: timestamp.()->int | timestamp.(string)->int
getDayOfMonth: timestamp.()->int | timestamp.(string)->int
getDate: timestamp.()->int | timestamp.(string)->int
getDayOfWeek: timestamp.()->int | timestamp.(string)->int
getHours: timestamp.()->int | timestamp.(string)->int | duration.()->int
getMinutes: timestamp.()->int | timestamp.(string)->int | duration.()->int
getSeconds: timestamp.()->int | timestamp.(string)->int | duration.()->int
getMilliseconds: timestamp.()->int | timestamp.(string)->int | duration.()->int
charAt: string.(int)->string
indexOf: string.(string)->int | string.(string,int)->int | list<A>.(A)->int
lastIndexOf: string.(string)->int | string.(string,int)->int | list<A>.(A)->int
lowerAscii: string.()->string
upperAscii: string.()->string
replace: string.(string,string)->string | string.(string,string,int)->string
split: string.(string)->list<string> | string.(string,int)->list<string>
substring: string.(int)->string | string.(int,int)->string
trim: string.()->string
join: list<string>.()->string | list<string>.(string)->string
string_format format: string.(list<dyn>)->string
strings_quote strings.quote: (string)->string
reverse: list<A>.()->list<A>
slice: list<A>.(int,int)->list<A>
distinct: list<A>.()->list<A>
flatten: list<list<A>>.()->list<A> | list<dyn>.(int)->list<dyn>
lists.range: (int)->list<int>
first: list<A>.()->optional_type<A>
last: list<A>.()->optional_type<A>
@sortByAssociatedKeys: list<A>.(list<B>)->list<A>
sets.contains: (list<A>,list<A>)->bool
sets.equivalent: (list<A>,list<A>)->bool
sets.intersects: (list<A>,list<A>)->bool
optional.of: (A)->optional_type<A>
optional.ofNonZeroValue: (A)->optional_type<A>
optional.none: ()->optional_type<A>
value: optional_type<A>.()->A | kubernetes.NamedFormatOptional.()->kubernetes.NamedFormat
hasValue: optional_type<A>.()->bool
or: optional_type<A>.(optional_type<A>)->optional_type<A>
orValue: optional_type<A>.(A)->A
cel.@mapInsert: (map<A,B>,A,B)->map<A,B> | (map<A,B>,map<A,B>)->map<A,B>
find: string.(string)->string
findAll: string.(string)->list<string> | string.(string,int)->list<string>
url: (string)->kubernetes.URL
isURL: (string)->bool
getScheme: kubernetes.URL.()->string
getHost: kubernetes.URL.()->string
getHostname: kubernetes.URL.()->string
getPort: kubernetes.URL.()->string
getEscapedPath: kubernetes.URL.()->string
getQuery: kubernetes.URL.()->map<string,list<string>>
quantity: (string)->kubernetes.Quantity
isQuantity: (string)->bool
sign: (kubernetes.Quantity)->int
isInteger: kubernetes.Quantity.()->bool
asInteger: kubernetes.Quantity.()->int
asApproximateFloat: kubernetes.Quantity.()->double
isGreaterThan: kubernetes.Quantity.(kubernetes.Quantity)->bool | kubernetes.Semver.(kubernetes.Semver)->bool
isLessThan: kubernetes.Quantity.(kubernetes.Quantity)->bool | kubernetes.Semver.(kubernetes.Semver)->bool
compareTo: kubernetes.Quantity.(kubernetes.Quantity)->int | kubernetes.Semver.(kubernetes.Semver)->int
add: kubernetes.Quantity.(kubernetes.Quantity)->kubernetes.Quantity | kubernetes.Quantity.(int)->kubernetes.Quantity
sub: kubernetes.Quantity.(kubernetes.Quantity)->kubernetes.Quantity | kubernetes.Quantity.(int)->kubernetes.Quantity
ip: (string)->net.IP | cidr_ip net.CIDR.()->net.IP
isIP: (string)->bool
ip.isCanonical: (string)->bool
family: net.IP.()->int
isUnspecified: net.IP.()->bool
isLoopback: net.IP.()->bool
isLinkLocalMulticast: net.IP.()->bool
isLinkLocalUnicast: net.IP.()->bool
isGlobalUnicast: net.IP.()->bool
cidr: (string)->net.CIDR
isCIDR: (string)->bool
cidr_contains_ip_string containsIP: net.CIDR.(string)->bool | cidr_contains_ip_ip net.CIDR.(net.IP)->bool
cidr_contains_cidr_string containsCIDR: net.CIDR.(string)->bool | cidr_contains_cidr net.CIDR.(net.CIDR)->bool
masked: net.CIDR.()->net.CIDR
prefixLength: net.CIDR.()->int
semver: (string)->kubernetes.Semver | (string,bool)->kubernetes.Semver
isSemver: (string)->bool | (string,bool)->bool
major: kubernetes.Semver.()->int
minor: kubernetes.Semver.()->int
patch: kubernetes.Semver.()->int
format.named: (string)->optional_type<kubernetes.NamedFormat>
validate: kubernetes.NamedFormat.(string)->optional_type<list<string>>
path: {authz}Authorizer.(string)->{authz}PathCheck
group: {authz}Authorizer.(string)->{authz}GroupCheck
serviceAccount: {authz}Authorizer.(string,string)->{authz}Authorizer
resource: {authz}GroupCheck.(string)->{authz}ResourceCheck
subresource: {authz}ResourceCheck.(string)->{authz}ResourceCheck
namespace: {authz}ResourceCheck.(string)->{authz}ResourceCheck
name: {authz}ResourceCheck.(string)->{authz}ResourceCheck
fieldSelector: {authz}ResourceCheck.(string)->{authz}ResourceCheck
labelSelector: {authz}ResourceCheck.(string)->{authz}ResourceCheck
check: {authz}PathCheck.(string)->{authz}Decision | {authz}ResourceCheck.(string)->{authz}Decision
errored: {authz}Decision.()->bool
error: {authz}Decision.()->string
allowed: {authz}Decision.()->bool
reason: {authz}Decision.()->string
""".replace("{authz}", "kubernetes.authorization.")
PATCHES = "\njsonpatch.escapeKey: (string)->string"
"""Only available in expressions that create JSON patches."""


def _more() -> list[str]:
    """Return the comparisons of all types, and the list functions for each element type."""
    lines = []
    for name, sign in (("less", "_<_"), ("less_equals", "_<=_"), ("greater", "_>_"), ("greater_equals", "_>=_")):
        options = [f"{name}_{kind} ({kind},{kind})->bool" for kind in _ORDERED.split()]
        numbers = _NUMBERS.split()
        options += [f"{name}_{a}_{b} ({a},{b})->bool" for a in numbers for b in numbers if a != b]
        lines.append(f"{sign}: {' | '.join(options)}")
    lines.append("isSorted: " + " | ".join(f"list<{kind}>.()->bool" for kind in _ORDERED.split()))
    lines.append("sort: " + " | ".join(f"list<{kind}>.()->list<{kind}>" for kind in _ORDERED.split()))
    lines.append("sum: " + " | ".join(f"list<{kind}>.()->{kind}" for kind in ["int", "uint", "double", "duration"]))
    for name in ("min", "max"):
        lines.append(f"{name}: " + " | ".join(f"list<{kind}>.()->{kind}" for kind in _ORDERED.split()))
    names = "dns1123Label dns1123LabelPrefix dns1123Subdomain dns1123SubdomainPrefix dns1035Label dns1035LabelPrefix"
    for name in f"{names} qualifiedName labelValue uri uuid byte date datetime".split():
        lines.append(f"format.{name}: ()->kubernetes.NamedFormat")
    return lines


@lru_cache(maxsize=2)
def declarations(*, patches: bool = False) -> dict[str, tuple[Overload, ...]]:
    """Map each function to its overloads, in the order of resolution."""
    text = TEXT.strip() + (PATCHES if patches else "")
    return declared([*text.replace("\n  | ", " | ").splitlines(), *_more()])


def declared(lines: Iterable[str]) -> dict[str, tuple[Overload, ...]]:
    """Map each function of these declarations, one in a line, to its overloads."""
    found: dict[str, tuple[Overload, ...]] = {}
    for line in lines:
        head, _, rest = line.partition(": ")
        first_id, _, name = head.rpartition(" ")
        options: list[Any] = []
        for index, option in enumerate(rest.split(" | ")):
            given, _, signature = option.rpartition(" ")
            identity = given or (first_id if index == 0 else "") or f"{name}#{index}"
            options.append(_overload(identity, signature))
        found[name] = tuple(options)
    return found


def _overload(identity: str, signature: str) -> Overload:
    left, _, result = signature.partition("->")
    receiver, _, arguments = left.partition("(")
    args = [type_of_text(part) for part in _split(arguments[:-1])]
    member = receiver.endswith(".")
    if member:
        args.insert(0, type_of_text(receiver[:-1]))
    return Overload(identity, member, tuple(args), type_of_text(result))


def _split(text: str) -> list[str]:
    parts: list[str] = []
    depth = 0
    for letter in text:
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1:] = [parts[-1] + letter] if parts else [letter]
    return parts

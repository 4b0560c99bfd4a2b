"""Go's representation of values in Kubernetes' messages."""

from __future__ import annotations

from syncline.kube.objects import Obj


def go_selector(selector: Obj) -> str:
    """Return a pointer to a LabelSelector as Go prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    rows = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key')},Operator:{each.get('operator')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    fields = f"MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{rows}}},"
    return f"&LabelSelector{{{fields}}}"

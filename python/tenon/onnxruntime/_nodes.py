"""Nodes by onnxruntime's names for them."""

from __future__ import annotations

import re

from .._tenon import NodePlacement

_NODE = re.compile(r"(?:.* )?\S+?(?: '(?P<name>.*)')? \(node (?P<index>\d+)\)$")


def name_and_index(node: str) -> tuple[str, str]:
    """Of a node as Tenon writes it, such as ``Conv 'stem' (node 0)``. The name may be empty."""
    found = _NODE.match(node)
    return ((found["name"] or ""), found["index"]) if found else ("", "")


def provider_name(name: str) -> str:
    return f"{name.upper()}ExecutionProvider"


class OrtEpAssignedNode:
    """A node that a provider runs."""

    def __init__(self, placement: NodePlacement):
        self.name = name_and_index(placement.node)[0]
        self.domain, _, self.op_type = placement.op_type.rpartition(".")


class OrtEpAssignedSubgraph:
    """A provider, with a node that it runs."""

    def __init__(self, placement: NodePlacement):
        self.ep_name = provider_name(placement.provider)
        self._nodes = [OrtEpAssignedNode(placement)]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        return list(self._nodes)

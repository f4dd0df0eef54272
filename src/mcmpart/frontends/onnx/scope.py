"""What a node can see: the values in scope, and the state all nodes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

from mcmpart.errors import InputError
from mcmpart.frontends.onnx.dims import Dims
from mcmpart.frontends.onnx.domains import short_domain
from mcmpart.frontends.onnx.initializers import Initializers
from mcmpart.frontends.onnx.values import Value
from mcmpart.frontends.op_costs import Attribute, OpView
from mcmpart.frontends.report import Sentences


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that a block of nodes can name.

    Attributes
    ----------
    values
        By name; grows as nodes are read.
    opsets
        Version of each domain.
    annotations
        Types that the file states for inner values (``value_info``).
    attributes
        Attributes of the function call that the block belongs to.
    parent
        Scope around a body; None for the main graph and for functions.
    path
        ``""`` for the main graph, else the way to the body: ``"if_1/then_branch/"``.
    calls
        The functions being read, outermost first.
    absent
        Inputs of a function that its call leaves out.
    """

    values: dict[str, Value]
    opsets: Mapping[str, int]
    annotations: Mapping[str, TypeProto] = field(default_factory=dict)
    attributes: Mapping[str, AttributeProto] = field(default_factory=dict)
    parent: Scope | None = None
    path: str = ""
    calls: tuple[tuple[str, str, str], ...] = ()
    absent: frozenset[str] = frozenset()

    def find(self, name: str, reader: str) -> Value | None:
        """Return the value called ``name``; None for ``""`` and for an absent input.

        Raises
        ------
        InputError
            Nothing in scope has that name.
        """
        if not name or name in self.absent:
            return None
        return self.get(name, reader)

    def get(self, name: str, reader: str) -> Value:
        """Return the value called ``name``, the innermost one.

        Raises
        ------
        InputError
            Nothing in scope has that name.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.parent
        raise InputError(
            f"{reader} reads {name!r}, which no node writes and which is no input of "
            "the model: export the model again"
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A node ready to be read: attributes bound, inputs found.

    Attributes
    ----------
    proto
        The node, references to attributes of a function put in.
    key
        Unique readable name in its block.
    inputs
        One value per position, None where it is absent.
    scope
        Where the inputs were found.
    """

    proto: NodeProto
    key: str
    inputs: tuple[Value | None, ...]
    scope: Scope

    @property
    def domain(self) -> str:
        """The domain, ``""`` for the default one."""
        return short_domain(self.proto.domain)

    @property
    def kind(self) -> str:
        """The op type without its domain."""
        return str(self.proto.op_type)

    @property
    def opset(self) -> int:
        """The version of the node's domain; 1 where the model imports none."""
        return self.scope.opsets.get(self.domain, 1)

    def name_of(self, position: int) -> str:
        """Return the name of an output, with the path to its body in front."""
        return self.scope.path + str(self.proto.output[position])

    def attribute(self, name: str) -> AttributeProto | None:
        """Return the attribute called ``name``."""
        return next((a for a in self.proto.attribute if a.name == name), None)

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        found = self.attribute(name)
        return default if found is None else int(found.i)

    def integers(self, name: str) -> tuple[int, ...]:
        """Return a list of integers, empty when absent."""
        found = self.attribute(name)
        return () if found is None else tuple(found.ints)

    def view(self, outputs: tuple[Value | None, ...]) -> OpView:
        """Return what cost and shape rules see of the node."""
        return OpView(
            domain=self.domain,
            kind=self.kind,
            opset=self.opset,
            attributes=_plain_attributes(self.proto),
            inputs=tuple(None if v is None else v.type for v in self.inputs),
            outputs=tuple(None if v is None else v.type for v in outputs),
            constants=tuple(None if v is None else v.const for v in self.inputs),
        )


def bound(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> NodeProto:
    """Return ``node`` with references to a function's attributes put in.

    A reference to an attribute that the call leaves out is left out too.
    """
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        source = attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in attributes:
                continue
            source = attributes[attribute.ref_attr_name]
        added = copy.attribute.add()
        added.CopyFrom(source)
        added.name = attribute.name
    return copy


def _plain_attributes(node: NodeProto) -> dict[str, Attribute]:
    plain: dict[str, Attribute] = {}
    for a in node.attribute:
        if a.type == AttributeProto.INT:
            plain[a.name] = int(a.i)
        elif a.type == AttributeProto.FLOAT:
            plain[a.name] = float(a.f)
        elif a.type == AttributeProto.STRING:
            plain[a.name] = a.s.decode("utf-8", errors="replace")
        elif a.type == AttributeProto.INTS:
            plain[a.name] = tuple(a.ints)
        elif a.type == AttributeProto.FLOATS:
            plain[a.name] = tuple(a.floats)
        elif a.type == AttributeProto.STRINGS:
            plain[a.name] = tuple(
                s.decode("utf-8", errors="replace") for s in a.strings
            )
    return plain


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An output whose shape could not be found, and why."""

    node: str
    kind: str
    output: str
    why: str


@dataclass(slots=True)
class Context:
    """What all nodes of one model share while it is read.

    Attributes
    ----------
    functions
        The model's own functions by (domain, name, overload).
    op_costs
        FLOPs of one op by kind, from the user.
    unresolved
        The first ops of each chain of unknown shapes.
    unruled
        Op kinds without a cost rule -> places where they stand.
    unshaped
        Op kinds without a shape rule -> places where they stand.
    costed_by_user
        Op kinds whose cost was taken from ``op_costs``.
    """

    dims: Dims
    initializers: Initializers
    functions: Mapping[tuple[str, str, str], FunctionProto]
    op_costs: Mapping[str, int]
    assumptions: Sentences
    notes: Sentences
    unresolved: list[Unresolved] = field(default_factory=list)
    unruled: dict[str, list[str]] = field(default_factory=dict)
    unshaped: dict[str, list[str]] = field(default_factory=dict)
    costed_by_user: set[str] = field(default_factory=set)

"""Which call gives a pointer of a host function its memory, where nothing else in the function can change the pointer.

Example: `cudaMalloc(&x, 4096)` for x in `float *x; cudaMalloc(&x, 4096); k<<<4, 256>>>(x);`, and none where
`std::swap(x, y)` follows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from tree_sitter import Node

from warpwright.cuda.walks import nodes_in
from warpwright.facts.unit import Unit
from warpwright.syntax.names import unqualified
from warpwright.syntax.nodes import descendants, is_called, launch_configuration, parameters_of, uncommented, with_casts
from warpwright.syntax.source import Source

_ALLOCATES = re.compile(r"(?:cuda|hip)(?:Malloc(?:Managed|Async|Host)?|HostAlloc)")
_LEAVES = re.compile(
    r"(?:cuda|hip|cublas|cudnn|cufft|cusparse|nccl)[A-Z]\w*|\w*printf|free|mem(?:cpy|set)|[mc]alloc|s?rand|min|max|abs|dim3"
    r"|(?:sqrt|pow|ceil|floor|log2|round)f?|assert|exit"
)
"""Functions that take arguments by their values."""
_NULL = ("NULL", "nullptr", "0")


def allocation_of(unit: Unit, source: Source, function: Node, name: str) -> Node | None:
    """The one call that gives a local pointer its memory; None where there are others, or none that is known."""
    declared, allocated = 0, []
    for use in _uses(source, function).get(name, ()):
        call = _allocates(source, use)
        if call is not None:
            allocated.append(call)
        elif _is_declared(source, use):
            declared += 1
        elif _may_change(unit, source, use):
            return None
    return allocated[0] if declared == 1 and len(allocated) == 1 else None


def is_unfilled(source: Source, function: Node, name: str, allocation: Node, launch: Node) -> bool:
    """Whether a launch is the first that is done with a local pointer's memory, and is handed it once: by its name,
    or in the struct whose member it is, of which no method is called before."""
    all_uses = _uses(source, function)
    whole = all_uses.get(name.partition(".")[0], ()) if "." in name else ()
    plain = [use for use in whole if not _is_member(use) or (use.parent is not None and is_called(use.parent))]
    uses = [use.start_byte for use in (*all_uses.get(name, ()), *plain)]
    between = [at for at in uses if allocation.end_byte <= at < launch.start_byte]
    handed = [at for at in uses if launch.start_byte <= at < launch.end_byte]
    return not between and len(handed) == 1 and not source.node_code(allocation).startswith("cudaMallocManaged")


def member_allocations(unit: Unit, source: Source, function: Node, owner: str) -> Mapping[str, Node]:
    """The one call that gives each pointer of a local struct its memory, of a struct that is declared without a value
    and handed over whole to launches and by value alone."""
    uses = _uses(source, function)
    whole = uses.get(owner, ())
    declared = [use for use in whole if use.parent is not None and use.parent.type == "declaration"]
    others = [use for use in whole if use not in declared and not _is_member(use)]
    if len(declared) != 1 or any(_may_change(unit, source, use) for use in others):
        return {}
    found: dict[str, Node] = {}
    for spelled, places in uses.items():
        member = spelled.removeprefix(f"{owner}.")
        calls = [(use, _allocates(source, use)) for use in places] if member != spelled else []
        made = [call for _, call in calls if call is not None]
        if len(made) == 1 and not any(call is None and _may_change(unit, source, use) for use, call in calls):
            found[member] = made[0]
    return found


def is_kept(source: Source, function: Node, owner: str) -> bool:
    """Whether a local object is only declared and asked for its members."""
    others = [use for use in _uses(source, function).get(owner, ()) if not _is_member(use)]
    return len(others) == 1


def _is_member(use: Node) -> bool:
    return use.parent is not None and use.parent.type == "field_expression"


@lru_cache(maxsize=8)
def _uses(source: Source, function: Node) -> Mapping[str, Sequence[Node]]:
    """Where each name stands in a function, and each member of one, as in `p.x`."""
    uses: dict[str, list[Node]] = {}
    for use in nodes_in(function, "identifier", "field_expression"):
        uses.setdefault(source.node_code(use), []).append(use)
    return uses


def _allocates(source: Source, use: Node) -> Node | None:
    """The call of `cudaMalloc((void **)&use, bytes)`."""
    target = use.parent
    if target is None or target.type != "pointer_expression" or target.children[0].type != "&":
        return None
    while target.parent is not None and target.parent.type in ("cast_expression", "parenthesized_expression"):
        target = target.parent
    call = target.parent.parent if target.parent is not None and target.parent.type == "argument_list" else None
    given = uncommented(call.child_by_field_name("arguments")) if call is not None else []
    called = call.child_by_field_name("function") if call is not None else None
    if called is None or len(given) < 2 or given[0] != target or not _ALLOCATES.fullmatch(source.node_code(called)):
        return None
    return call


def _is_declared(source: Source, use: Node) -> bool:
    """Whether a name is declared there as a pointer of the function's own, without a value or as null."""
    pointer = use.parent
    if pointer is None or pointer.type != "pointer_declarator" or pointer.parent is None:
        return False
    around = pointer.parent
    if around.type == "init_declarator":
        value = around.child_by_field_name("value")
        text = source.node_code(value).strip("{} ") if value is not None else ""
        return text in ("", *_NULL) and around.parent is not None and around.parent.type == "declaration"
    return around.type == "declaration"


def _may_change(unit: Unit, source: Source, use: Node) -> bool:
    """Whether what stands around a pointer's name may set it: an assignment of other than null, an address that is
    taken, a reference, a function that is not known to take its value."""
    use = with_casts(source, use)
    around = use.parent
    if around is None or around.child_by_field_name("declarator") == use:
        return True
    if around.type == "init_declarator":
        declarator = around.child_by_field_name("declarator")
        return declarator is not None and any(True for _ in descendants(declarator, "reference_declarator"))
    if around.type == "assignment_expression" and around.child_by_field_name("left") == use:
        value, operator = around.child_by_field_name("right"), around.child_by_field_name("operator")
        plain = operator is not None and operator.type == "="
        return not plain or value is None or source.node_code(value) not in _NULL
    if around.type in ("update_expression", "initializer_list", "lambda_capture_specifier"):
        return True
    if around.type == "pointer_expression":
        return around.children[0].type == "&"
    if around.type == "argument_list":
        call = around.parent
        return call is None or not takes_values(unit, source, call)
    return False


def takes_values(unit: Unit, source: Source, call: Node) -> bool:
    """Whether a call is of a kernel, of a library that takes arguments by their values, or of a function of the text
    without a parameter that is a reference."""
    if launch_configuration(call) is not None:
        return True
    function = call.child_by_field_name("function")
    called = unqualified(source.node_code(function)) if function is not None else ""
    if _LEAVES.fullmatch(called):
        return True
    known = unit.functions.get(called, ())
    return bool(known) and not any(
        child.type.endswith("reference_declarator")
        for text in known
        for parameter in parameters_of(text.node)
        for child in descendants(parameter)
    )

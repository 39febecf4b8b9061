"""Running sums of a shared array, recognised in their usual spellings.

By doubling offsets, all threads together (Hillis and Steele):
`for (d = 1; d < N; d *= 2) { T x = 0; if (t >= d) x = a[t - d]; barrier; a[t] += x; barrier; }`.
By one thread, one element after the other: `if (t == 0) for (int i = 1; i < N; i++) a[i] += a[i - 1];`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from warpwright.rewrites._code import NoMatchError, in_macro, squeezed
from warpwright.rewrites._interleaved import is_barrier, is_thread_number, statements_of
from warpwright.rewrites._layout import line_of
from warpwright.syntax.nodes import uncommented
from warpwright.syntax.source import Source


@dataclass(frozen=True, slots=True)
class Scan:
    """A running sum that `node` computes of the elements of `source` into `array`, for the first `bound` of them.

    `thread` is how the thread's index is written, `barrier` a barrier, `kept` the types, without spaces, of the
    variables that elements pass through. `exclusive`: each element gets the sum of those before it, `total`: and the
    element behind the last gets the sum of all. `serial`: one thread does it. `waits_first`: each step starts with its
    first barrier, and none follows the last.
    """

    node: Node
    array: str
    source: str
    thread: str
    bound: str
    barrier: str
    kept: tuple[str, ...]
    exclusive: bool = False
    total: bool = False
    serial: bool = False
    waits_first: bool = False


_KIND = r"(?:unsignedint|unsignedlonglong|longlong|unsigned|int|float|double|uint32_t|int32_t|uint|size_t)"
_ZERO = r"\(?0*(?:\.0*)?[fFuU]?\)?"
_WORD = r"[A-Za-z_]\w*?"


def doubling_scan(source: Source, block: Node, node: Node) -> Scan:
    """The scan that a loop by doubling offsets is. Raises NoMatchError for any other loop."""
    head = [node.child_by_field_name(f) for f in ("initializer", "condition", "update")]
    if None in head or in_macro(node):
        raise NoMatchError
    first, condition, update = (squeezed(source.node_code(n)) for n in head if n is not None)
    started = re.fullmatch(r"(?:unsignedint|unsigned|int|size_t|uint)(?P<step>\w+)=1[uU]?;?", first)
    step = started["step"] if started else ""
    s = re.escape(step)
    bound = re.fullmatch(rf"{s}<(?P<bound>[\w.]+)", condition)
    doubles = re.fullmatch(rf"{s}(?:\*=2[uU]?|<<=1|\+={s}|={s}(?:\*2|<<1))", update)
    if not started or bound is None or doubles is None:
        raise NoMatchError
    statements = statements_of(node.child_by_field_name("body"))
    barriers = [n for n in statements if is_barrier(n, source)]
    text = "".join(_unbraced("|" if n in barriers else squeezed(source.node_code(n))) for n in statements)
    waits_first = text.startswith("|") and not text.endswith("|")
    found = _step(s, text[1:] + "|" if waits_first else text)
    if found is None:
        raise NoMatchError(
            f"The loop at line {line_of(source, node)} does not read the element to the left, wait, add it and wait."
        )
    thread = _thread(source, block, found["t"])
    barrier = source.node_text(barriers[0])
    return Scan(node, found["a"], found["a"], thread, bound["bound"], barrier, (found["k"],), waits_first=waits_first)


def _thread(source: Source, block: Node, name: str) -> str:
    if not is_thread_number(source, block, name):
        raise NoMatchError(f"`{name}` is not known to be threadIdx.x throughout the kernel.")
    return name


def _unbraced(text: str) -> str:
    return text.replace("{", "").replace("}", "")


def _step(step: str, text: str) -> re.Match[str] | None:
    """The statements of one step, squeezed, each barrier as `|`: a value that is read, waited for, and added."""
    own, left = r"(?P=a)\[(?P=t)\]", rf"(?P=a)\[(?P=t)-{step}\]"
    tested, then = rf"if\((?P<t>[\w.]+)>={step}\)", rf"if\((?P=t)>={step}\)"
    kept = rf"(?P<k>{_KIND})(?P<v>{_WORD})"
    add = rf"(?:{then})?{own}(?:\+=(?P=v)|={own}\+(?P=v)|=(?P=v)\+{own});"
    both = rf"(?:{own}\+{left}|{left}\+{own})"
    forms = (
        rf"{kept}={_ZERO};{tested}(?P=v)=(?P<a>\w+)\[(?P=t)-{step}\];\|{add}\|",
        rf"{kept}=\(?(?P<t>[\w.]+)>={step}\)?\?(?P<a>\w+)\[(?P=t)-{step}\]:{_ZERO};\|{add}\|",
        rf"{kept};{tested}(?P=v)=(?P<a>\w+)\[(?P=t)-{step}\];\|{then}{own}\+=(?P=v);\|",
        rf"{kept}(?:={_ZERO})?;{tested}(?P=v)=(?={_WORD}\[)(?=(?P<a>\w+)\[){both};\|{then}{own}=(?P=v);\|",
        rf"{kept}=(?P<a>\w+)\[(?P<t>[\w.]+)\];{then}(?P=v)(?:\+={left}|={left}\+(?P=v)|=(?P=v)\+{left});\|{own}=(?P=v);\|",
    )
    return next((found for form in forms if (found := re.fullmatch(form, text))), None)


def serial_scan(source: Source, block: Node, node: Node) -> Scan:
    """The scan that the first thread of a block does alone in an `if` between two barriers. Raises NoMatchError for any
    other `if`."""
    clause, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
    tested = re.fullmatch(
        r"(?P<a>[\w.]+)==0[uU]?|0[uU]?==(?P<b>[\w.]+)|!(?P<c>[\w.]+)",
        squeezed(source.node_code(clause)) if clause else "",
    )
    if then is None or tested is None or in_macro(node) or node.child_by_field_name("alternative") is not None:
        raise NoMatchError
    statements = statements_of(then)
    loop = statements[-1] if statements and statements[-1].type == "for_statement" else None
    head = [loop.child_by_field_name(f) for f in ("initializer", "condition", "update")] if loop is not None else [None]
    if loop is None or None in head:
        raise NoMatchError
    first, condition, update = (squeezed(source.node_code(n)) for n in head if n is not None)
    started = re.fullmatch(r"(?:unsignedint|unsigned|int|size_t|uint)(?P<i>\w+)=(?P<start>[01])[uU]?;?", first)
    i = re.escape(started["i"]) if started else ""
    ended = re.fullmatch(rf"{i}(?P<sign><=?)(?P<bound>[\w.]+)", condition)
    if not started or ended is None or not re.fullmatch(rf"{i}\+\+|\+\+{i}|{i}\+=1", update):
        raise NoMatchError
    inner = statements_of(loop.child_by_field_name("body"))
    text = "".join(squeezed(source.node_code(n)) for n in [*statements[:-1]]) + "|"
    text += "".join(squeezed(source.node_code(n)) for n in inner)
    found = _one_after_the_other(i, started["start"] + ended["sign"], text)
    if found is None:
        raise NoMatchError(
            f"The loop at line {line_of(source, loop)} is not a running sum of the elements of an array."
        )
    name = next(n for n in (tested["a"], tested["b"], tested["c"]) if n)
    groups = found.groupdict()
    array = groups["a"] or ""
    kept = tuple(kind for kind in (groups.get("k"), groups.get("l")) if kind)
    return Scan(
        node,
        array,
        groups.get("b") or array,
        _thread(source, block, name),
        ended["bound"],
        _barrier_around(source, node),
        kept,
        exclusive="x" in groups,
        total=ended["sign"] == "<=",
        serial=True,
    )


def _one_after_the_other(i: str, range_: str, text: str) -> re.Match[str] | None:
    """`range_` is the loop's start and comparison; `text` what stands before the loop, a bar, and the loop's body. A
    group `x` marks sums of what stands before an element."""
    own, before = rf"(?P=a)\[{i}\]", rf"(?P=a)\[{i}-1\]"
    run = rf"(?P<k>{_KIND})(?P<r>{_WORD})={_ZERO};"
    grows = r"(?P=r)(?:\+=(?P=v)|=(?P=r)\+(?P=v)|=(?P=v)\+(?P=r));"
    taken = rf"(?P=v)=(?P<a>\w+)\[{i}\];{own}=(?P=r);{grows}"
    first = rf"(?P<a>\w+)\[0\]={_ZERO};\|"
    forms = {
        "0<": (
            rf"(?P<x>){run}\|(?P<l>{_KIND})(?P<v>{_WORD})=(?P<a>\w+)\[{i}\];{own}=(?P=r);{grows}",
            rf"(?P<x>){run}(?P<l>{_KIND})(?P<v>{_WORD});\|{taken}",
            rf"(?P<x>)(?P<l>{_KIND})(?P<v>{_WORD});{run}\|{taken}",
            rf"{run}\|(?P=r)\+=(?P<a>\w+)\[{i}\];{own}=(?P=r);",
            rf"{run}\|(?P=r)=(?P=r)\+(?P<a>\w+)\[{i}\];{own}=(?P=r);",
        ),
        "1<": (
            rf"\|(?P<a>\w+)\[{i}\]\+={before};",
            rf"\|(?P<a>\w+)\[{i}\]=(?:{own}\+{before}|{before}\+{own});",
            rf"(?P<x>){first}{own}={before}\+(?P<b>\w+)\[{i}-1\];",
            rf"(?P<x>){first}{own}=(?P<b>\w+)\[{i}-1\]\+{before};",
        ),
        "1<=": (
            rf"(?P<x>){first}{own}={before}\+(?P<b>\w+)\[{i}-1\];",
            rf"(?P<x>){first}{own}=(?P<b>\w+)\[{i}-1\]\+{before};",
        ),
    }
    found = (re.fullmatch(form, text) for form in forms.get(range_, ()))
    return next((m for m in found if m is not None and m.groupdict().get("b") != m["a"]), None)


def _barrier_around(source: Source, node: Node) -> str:
    """The barrier behind a statement, where one stands before it, too."""
    siblings = [n for n in uncommented(node.parent) if n.type != "preproc_call"]
    place = next((n for n, sibling in enumerate(siblings) if sibling == node), 0)
    behind = siblings[place + 1] if place + 1 < len(siblings) else None
    if place == 0 or behind is None or not (is_barrier(siblings[place - 1], source) and is_barrier(behind, source)):
        raise NoMatchError(f"What thread 0 does at line {line_of(source, node)} does not stand between two barriers.")
    return source.node_text(behind)

"""What may be taken from a model: one `__global__` function of plain device code, read as a syntax tree.

A model's text is untrusted input that the user's compiler would read. So nothing is taken that reaches outside the
function: no preprocessor, not even a pragma; no inline assembly, not even PTX; no launch; no call, type or reserved
name but those that are known here. What a compiler could read in another way than the syntax tree is refused in any
place: backslashes (lines that go on, universal character names), quotes (strings, raw strings, digits that a quote
separates), trigraphs and digraphs. What the
tree shows to be nonsense (an undeclared name, a store to a const array, no result) is not shown either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tree_sitter import Node

from warpwright.syntax.encoding import encoded, shown_bytes
from warpwright.syntax.nodes import descendants, is_called, walk
from warpwright.syntax.source import Source

LONGEST = 8000  # characters; a kernel beyond that is not what one comment asks for


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What needs no header: half arithmetic, for one, would need an #include.
_FLOAT_MATH = _names(
    """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc erfcinv erfinv exp exp10 exp2
    expm1 fabs fdim floor fma fmax fmin fmod hypot ilogb isfinite isinf isnan ldexp lgamma log log10 log1p log2 logb
    lrint lround nearbyint norm3df normcdf pow rcbrt remainder rhypot rint round rsqrt scalbn signbit sin sinh sinpi
    sqrt tan tanh tgamma trunc
"""
)
_OTHERS = _names(
    """
    abs llabs labs min max umin umax
    __cosf __exp10f __expf __fdividef __log10f __log2f __logf __powf __saturatef __sinf __tanf __fsqrt_rn __frcp_rn
    __fadd_rn __fmul_rn __fmaf_rn __fdiv_rn __frsqrt_rn
    __brev __byte_perm __clz __clzll __ffs __ffsll __popc __popcll __mul24 __mulhi __umulhi __umul24 __sad __usad
    __float_as_int __int_as_float __float_as_uint __uint_as_float __double_as_longlong __longlong_as_double
    __float2int_rn __float2int_rz __float2int_rd __float2int_ru __int2float_rn __uint2float_rn __double2float_rn
    __syncthreads __syncthreads_and __syncthreads_or __syncthreads_count __syncwarp __threadfence __threadfence_block
    __activemask __all_sync __any_sync __ballot_sync __match_any_sync __match_all_sync
    __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync
    __reduce_add_sync __reduce_max_sync __reduce_min_sync __reduce_and_sync __reduce_or_sync __reduce_xor_sync
    __ldg __ldca __ldcg __ldcs __stcg __stcs __stwb
    atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor
    atomicAdd_block atomicMax_block atomicMin_block
    clock clock64 __nanosleep
"""
)
_VECTORS = {f"make_{t}{n}" for t in ("char", "uchar", "short", "int", "uint", "float", "double") for n in (1, 2, 3, 4)}
DEVICE_FUNCTIONS = _FLOAT_MATH | {f"{name}f" for name in _FLOAT_MATH} | _OTHERS | _VECTORS

_BUILT_IN = _names("threadIdx blockIdx blockDim gridDim warpSize true false nullptr NULL INFINITY NAN FLT_MAX M_PI")
_WHOLE = _names("size_t ptrdiff_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uint dim3")
_WIDTHS = {
    "char": 4, "uchar": 4, "short": 4, "ushort": 4, "int": 4, "uint": 4, "float": 4, "long": 2, "ulong": 2,
    "longlong": 2, "ulonglong": 2, "double": 2,
}  # fmt: skip
KNOWN_TYPES = _WHOLE | {f"{name}{n}" for name, most in _WIDTHS.items() for n in range(1, most + 1)}
_RESERVED = _names("__global__ __shared__ __restrict__ __restrict __launch_bounds__")
_SPLICE_OR_TRIGRAPH = re.compile(r"\\\s*\n|\?\?[=/'()!<>-]")
_HIDES = "it has a spelling that hides preprocessor directives"
_OTHER_SPELLINGS = {
    '"': "a quote", "'": "a quote", "<:": "a digraph", ":>": "a digraph", "<%": "a digraph", "%>": "a digraph",
}  # fmt: skip
_HIDDEN_SPELLINGS = {"\\": "a backslash", "%:": "a digraph", "#": "a directive", "??": "a trigraph"}
_CASTS = frozenset({"static_cast", "reinterpret_cast", "const_cast"})
_REFUSED = {
    "gnu_asm_expression": "it has inline assembly",
    "asm_statement": "it has inline assembly",
    "kernel_call_syntax": "it launches a kernel",
    "new_expression": "it allocates memory",
    "delete_expression": "it frees memory",
    "throw_statement": "it throws",
    "try_statement": "it catches exceptions",
    "attribute_specifier": "it has compiler attributes",
    "attribute_declaration": "it has compiler attributes",
    "lambda_expression": "it has a lambda",
    "goto_statement": "it has a goto",
}


def refusal(code: str) -> str:
    """Why a model's kernel is not taken, as one clause; "" if it may be.

    >>> refusal("__global__ void f(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] = sqrtf(x[i]); }")
    ''
    >>> refusal("__global__ void f(const float *x) { x[threadIdx.x] = 0; }")
    'it writes to x, which it declares const'
    >>> refusal("__global__ void f() { system(1); }")
    'it calls system, which is no device function that is known here'
    >>> refusal("#include </etc/passwd>\\n__global__ void f() {}")
    'it has preprocessor directives'
    """
    return foreign(code) or _flaw(Source("generated.cu", encoded(code)))


def foreign(code: str) -> str:
    """Why a text is not taken for one kernel of plain device code, right or wrong; "" where it is."""
    if len(code) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if not code.isascii():
        return "it has characters outside ASCII"
    if _SPLICE_OR_TRIGRAPH.search(code):
        return _HIDES
    if not all(character.isprintable() or character in "\n\t" for character in code):
        return "it has control characters"
    source = Source("generated.cu", encoded(code))
    nodes = list(walk(source.root))
    for node in nodes:
        if node.type.startswith("preproc"):
            return "it has preprocessor directives"
        if node.type in _REFUSED:
            return _REFUSED[node.type]
    if source.root.has_error:
        return "it is not complete CUDA"
    functions = [node for node in source.root.named_children if node.type != "comment"]
    if len(functions) != 1 or functions[0].type != "function_definition":
        return "it is not one function alone"
    if not any(child.type == "__global__" for child in functions[0].children):
        return "it is not a __global__ function"
    if any(node.type == "function_definition" for node in nodes if node != functions[0]):
        return "it is not one function alone"
    for call in (node for node in nodes if node.type == "call_expression"):
        name = _called(source, call)
        if name is not None and name not in DEVICE_FUNCTIONS:
            return f"it calls {name}, which is no device function that is known here"
    return _foreign_words(source, nodes)


def _foreign_words(source: Source, nodes: list[Node]) -> str:
    """Why its words are not those of plain device code: found in its characters, whatever the tree makes of them."""
    plain = _without_comments(source)
    for sign, what in _OTHER_SPELLINGS.items():
        if sign in plain:
            return f"it has {what}, which a compiler may read in another way than its syntax tree"
    if "\\" in plain or "%:" in plain:
        return _HIDES
    if "#" in plain:
        return "it has preprocessor directives"
    if "::" in plain:
        return "it names something of a namespace"
    for word in re.findall(r"[A-Za-z_]\w*", plain):
        if word in _WORDS:
            return _WORDS[word]
        if word.startswith("__") and word not in _RESERVED and word not in DEVICE_FUNCTIONS:
            return f"it uses {word}, which is reserved for compilers"
    for node in nodes:
        if node.type == "type_identifier" and source.node_text(node) not in KNOWN_TYPES:
            return f"it uses the type {source.node_text(node)}, which is not known here"
    return ""


_WORDS = {
    word: reason
    for words, reason in (
        ("asm _Pragma", "it has inline assembly or a pragma"),
        ("static constinit thread_local", "it keeps something between launches"),
        ("operator using namespace typedef friend virtual", "it declares more than variables"),
        ("class struct union enum template", "it declares a type"),
        ("co_await co_yield co_return", "it has a coroutine"),
    )
    for word in words.split()
}


def _flaw(source: Source) -> str:
    """Why a kernel that may be read cannot be right; "" where the tree shows nothing of the kind."""
    function = next(descendants(source.root, "function_definition"))
    pointers: dict[str, bool] = {}  # whether what a pointer parameter points to is const
    names: list[str] = []
    declared = set(_BUILT_IN)
    for parameter in descendants(function, "parameter_declaration"):
        declarator = parameter.child_by_field_name("declarator")
        if declarator is None:
            return "it has a parameter without a name"
        name = next((source.node_text(n) for n in descendants(declarator, "identifier")), "")
        declared.add(name)
        names.append(name)
        if any(n.type in ("pointer_declarator", "array_declarator") for n in walk(declarator)):
            pointers[name] = any(n.type == "type_qualifier" and n.text == b"const" for n in parameter.children)
    body = function.child_by_field_name("body")
    if body is None:
        return "it has no body"
    for declarator in _declarators(body):
        declared |= {source.node_text(n) for n in [declarator, *descendants(declarator, "identifier")][:2]}
    used = {source.node_text(n) for n in descendants(body, "identifier") if not is_called(n)}
    unknown = sorted(used - declared)
    if unknown:
        return f"it uses {unknown[0]}, which it does not declare"
    idle = [name for name in names if name not in used]
    if idle:
        return f"it never uses its parameter {idle[0]}"
    for target in _stored_to(body):
        array = next((source.node_text(n) for n in descendants(target, "identifier")), "")
        if pointers.get(array):
            return f"it writes to {array}, which it declares const"
    if all(pointers.values()):
        return "it has no array to write its result to"
    return ""


def _declarators(body: Node) -> Iterator[Node]:
    for declaration in descendants(body, "declaration"):
        yield from declaration.children_by_field_name("declarator")


def _stored_to(body: Node) -> Iterator[Node]:
    """Subscripts and dereferences that are assigned to, incremented or decremented."""
    for node in descendants(body, "assignment_expression", "update_expression"):
        target = node.child_by_field_name("left") or node.child_by_field_name("argument")
        if target is not None and target.type in ("subscript_expression", "pointer_expression"):
            yield target


def _called(source: Source, call: Node) -> str | None:
    """The name of the function that is called; None for a cast that is written as a call."""
    function = call.child_by_field_name("function")
    if function is None:
        return "something without a name"
    if function.type == "primitive_type":
        return None
    if function.type == "template_function":
        name = function.child_by_field_name("name")
        if name is not None and source.node_text(name) in _CASTS:
            return None
    return " ".join(source.node_text(function).split())[:40]


def balanced_end(text: str) -> int | None:
    """The offset just after the brace that closes the first one of `text`; None where it is still open.

    Braces in comments, strings and characters do not count.

    >>> balanced_end("void f() { if (a) { '}'; } } // more")
    28
    >>> balanced_end("void f() { /* } */ ") is None
    True
    """
    depth, at = 0, 0
    while at < len(text):
        if text.startswith("//", at):
            at = _after(text, "\n", at)
        elif text.startswith("/*", at):
            at = _after(text, "*/", at + 2)
        elif text[at] in "\"'":
            at = _after_quoted(text, at)
        else:
            depth += (text[at] == "{") - (text[at] == "}")
            at += 1
            if depth <= 0 and text[at - 1] == "}":
                return at
    return None


def _after(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return found + len(mark) if found >= 0 else len(text)


def _after_quoted(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while at < len(text) and text[at] not in (quote, "\n"):
        at += 2 if text[at] == "\\" else 1
    return at + 1


def added_refusal(before: str, after: str, known: frozenset[str]) -> str:
    """Why a model's version of a user's kernel is not taken, as one clause; "" if it may be.

    What the user's own text does is the user's. So whatever is refused of a kernel that a model writes is refused of
    what `after` has more of than `before`: signs, words, statements; and it may call nothing new that is not `known`,
    with whatever arguments of a template.

    >>> known = DEVICE_FUNCTIONS | {"helper"}
    >>> added_refusal("__global__ void k() { helper(); }", "__global__ void k() { helper(); __syncwarp(); }", known)
    ''
    >>> added_refusal("__global__ void k() { }", '__global__ void k() { asm("trap;"); }', known)
    'it has inline assembly'
    >>> added_refusal("__global__ void k() { }", "__global__ void k() { system(0); }", known)
    'it calls system, which is no function that is known here'
    """
    if _SPLICE_OR_TRIGRAPH.search(before) or _SPLICE_OR_TRIGRAPH.search(after):
        return "it has lines that go on in the next, where comments and code are not told apart"
    old, new = Source("before.cu", encoded(before)), Source("after.cu", encoded(after))
    was, now = _counted(old), _counted(new)
    for kind, reason in _REFUSED.items():
        if now[kind] > was[kind]:
            return reason
    if any(now[kind] > was[kind] for kind in now if kind.startswith("preproc")):
        return "it has preprocessor directives"
    plain_before, plain_after = _without_comments(old), _without_comments(new)
    for sign, what in {**_OTHER_SPELLINGS, **_HIDDEN_SPELLINGS}.items():
        if plain_after.count(sign) > plain_before.count(sign):
            return f"it has {what}, which a compiler may read in another way than its syntax tree"
    words_before, words_after = (Counter(re.findall(r"[A-Za-z_]\w*", text)) for text in (plain_before, plain_after))
    for word in words_after:
        if word in _WORDS and words_after[word] > words_before[word]:
            return _WORDS[word]
        if word.startswith("__") and word not in words_before and word not in _RESERVED | known:
            return f"it uses {word}, which is reserved for compilers"
    called_before = set(_calls(old))
    for name in _calls(new):
        if name not in called_before and name.partition("<")[0] not in known:
            return f"it calls {name}, which is no function that is known here"
    return ""


def _calls(source: Source) -> Iterator[str]:
    calls = (_called(source, node) for node in walk(source.root) if node.type == "call_expression")
    return (name for name in calls if name is not None)


def _counted(source: Source) -> Counter[str]:
    return Counter(node.type for node in walk(source.root))


def _without_comments(source: Source) -> str:
    text = bytearray(source.data)
    for node in walk(source.root):
        if node.type == "comment":
            text[node.start_byte : node.end_byte] = b" " * (node.end_byte - node.start_byte)
    return shown_bytes(text)

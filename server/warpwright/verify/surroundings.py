"""Does a candidate ask where it runs, or how, when and where it is compiled, and the original not?

What such a one gives on another multiprocessor, in another folder or on another day no number of runs could show. Of
the compiler's PTX are read the special registers, and what is done with the bits of addresses; of the text, before
macros are expanded, what the preprocessor is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.emulator.addresses import looks_at_addresses
from warpwright.emulator.ptx.parse import parse
from warpwright.emulator.ptx.tokens import PtxError
from warpwright.syntax.encoding import decoded
from warpwright.syntax.nodes import walk
from warpwright.syntax.source import Source

_REGISTERS = {
    r"%(?:clock|clock_hi|clock64)": "the GPU's clock",
    r"%globaltimer(?:_lo|_hi)?": "the GPU's globaltimer",
    r"%smid|%nsmid": "on which multiprocessor it runs",
    r"%warpid|%nwarpid": "in which of the multiprocessor's warps it runs",
    r"%gridid|%current_graph_exec": "which launch it belongs to",
    r"%(?:dynamic|total|aggr)_smem_size|%reserved_smem_\w+": "how much shared memory it was given",
    r"%pm\d+(?:_64)?": "the GPU's performance counters",
}  # fmt: skip
_ASKED = {re.compile(rf"(?:{pattern})(?![\w$])"): words for pattern, words in _REGISTERS.items()}

_OF_TARGET = re.compile(
    r"__CUDA_ARCH\w*__|__CUDA_ARCH_\w+|__CUDACC_VER_\w+__|CUDART_VERSION|CUDA_VERSION|__cplusplus|__CUDACC__|__NVCC__|"
    r"__CUDACC_(?:EXTENDED_LAMBDA|RELAXED_CONSTEXPR)__|__CUDA_API_VERSION_MAJOR__|__cpp_\w+|__\w+_HEADER__|\w+_VERSION"
)
"""Macros of the architecture, the compiler's version and the language: other lines are compiled for others."""
_HARMLESS = frozenset({"__LINE__", "__COUNTER__", "__FUNCTION__", "__PRETTY_FUNCTION__", "__VA_ARGS__", "__VA_OPT__"})
_PREDEFINED = re.compile(r"__[A-Z][A-Z0-9_]*__")
_ASKING = re.compile(
    r"__has_(?:include|include_next|embed|builtin|attribute|cpp_attribute|feature)|__builtin_(?:FILE|LINE|source_location)"
    r"|source_location"
)
_JOINED = re.compile(r"\\\r?\n")
_ASSEMBLY = re.compile(rb"\b(?:asm|__asm__|__asm)\b")
_QUOTED = re.compile(r'"[^"]*"')
_WORD = re.compile(r"[A-Za-z_]\w*")
_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b(.*)$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_NO_MACROS = frozenset({"defined", "true", "false", "and", "or", "not"})


def asked_at_run_time(original: str, candidate: str) -> str:
    """What the candidate's PTX asks that the original's does not, as the end of a sentence; "" for nothing."""
    if original == candidate:
        return ""
    for pattern, words in _ASKED.items():
        if pattern.search(candidate) and not pattern.search(original):
            return words
    try:
        if looks_at_addresses(parse(candidate)) and not looks_at_addresses(parse(original)):
            return "where in memory its arrays lie"
    except PtxError:  # what the emulator cannot read, a GPU may run
        return ""
    return ""


def asked_of_the_compiler(original: Source, candidate: Source) -> str:
    """What the candidate's text asks of where and how it is compiled, and the original's does not; "" for nothing.

    What is asked of the architecture and of the compiler's version is `asked_of_the_target`.
    """
    old, new = _text(original), _text(candidate)
    for words in sorted(_asks(new) - _asks(old) - _of_target(new) - _of_the_host(candidate)):
        return words
    if _is_pasted(new) and not _is_pasted(old):
        return "names that it pastes together (`##`)"
    return ""


def asked_of_the_target(original: Source, candidate: Source) -> str:
    """The macros of the architecture or of the compiler's version that the candidate alone looks at; "" for none."""
    return " and ".join(sorted(_of_target(_text(candidate)) - _of_target(_text(original))))


def host_assembly(original: Source, candidate: Source) -> str:
    """Assembly outside of functions that the candidate alone has, which the host's assembler is given; "" for none."""
    known = {*_outside(original)}
    return next((text for text in _outside(candidate) if text not in known), "")


def _outside(source: Source) -> Iterator[str]:
    """The text of each `asm` that stands in no function."""
    for each in (source, *source.changed):
        functions = [node for node in walk(each.root) if node.type in ("function_definition", "lambda_expression")]
        for found in _ASSEMBLY.finditer(each.code):
            if not any(node.start_byte <= found.start() < node.end_byte for node in functions):
                yield each.line_text(each.position(found.start())[0]).strip()


def _text(source: Source) -> str:
    """The text and that of changed files, without comments and what literals say, each joined line as one."""
    return _JOINED.sub("", "\n".join(each.code_text() for each in (source, *source.changed)))


def _of_the_host(source: Source) -> frozenset[str]:
    """Predefined macros that only the bodies of host functions name, or macros that nothing else uses: an error check
    that prints `__FILE__` is none of a kernel's."""
    texts = [_JOINED.sub("", _without_host_bodies(each)) for each in (source, *source.changed)]
    lines = [line for text in texts for line in text.split("\n")]
    macros = {found[1]: line for line in lines if (found := _DEFINED.match(line))}
    reached = "\n".join(line for line in lines if not _DEFINED.match(line))
    todo = {name for name in _WORD.findall(reached) if name in macros}
    seen: set[str] = set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= {word for word in _WORD.findall(macros[name]) if word in macros and word not in seen}
    whole = "\n".join((reached, *(macros[name] for name in seen)))
    return frozenset(_PREDEFINED.findall(_text(source))) - frozenset(_PREDEFINED.findall(whole))


def _without_host_bodies(source: Source) -> str:
    """The text without comments, literals, and the bodies of functions that no kernel is or calls."""
    text = bytearray(source.code)
    for node in walk(source.root):
        body = node.child_by_field_name("body") if node.type == "function_definition" else None
        words = source.node_code(node)[: body.start_byte - node.start_byte] if body is not None else ""
        if body is not None and not re.search(r"__(?:global|device)__|\bconstexpr\b|\bauto\b", words):
            text[body.start_byte : body.end_byte] = re.sub(
                rb"[^\n]", b" ", source.code[body.start_byte : body.end_byte]
            )
    return decoded(bytes(text))


def _asks(text: str) -> frozenset[str]:
    """Predefined macros, questions to the preprocessor, and what its conditions name that the text does not define."""
    found = {word for word in _PREDEFINED.findall(text) if word not in _HARMLESS} | {*_ASKING.findall(text)}
    defined = {*_DEFINED.findall(text)}
    for condition in _CONDITION.findall(text):
        found |= {*_WORD.findall(_QUOTED.sub("", condition))} - defined - _NO_MACROS
    return frozenset(found)


def _of_target(text: str) -> frozenset[str]:
    return frozenset(word for word in _asks(text) if _OF_TARGET.fullmatch(word))


def _is_pasted(text: str) -> bool:
    return "##" in text or "%:" in text

"""Names that C++ and the written text leave free."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import replace

from warpwright.formulas.functions import FUNCTIONS
from warpwright.formulas.model import Formula, Stage, Tensor
from warpwright.formulas.tree import Expr, Load, Name, Range, Reduce, rebuilt
from warpwright.writer.helpers import HELPERS

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await
co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do
double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace
new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return
short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_CUDA = """
threadIdx blockIdx blockDim gridDim warpSize dim3 cudaStream_t cudaError_t int8_t int16_t int32_t int64_t uint8_t
uint16_t uint32_t uint64_t size_t std thrust half nullptr_t INFINITY NAN INT_MIN LLONG_MIN M_PI stream workspace place
is_packed fits_int are_aligned elements Index value
lane warp block row rows mask abs min max main errno assert
j0 j1 pack turning along across batch is_row is_result wanted part total values before so_far kParts
from word packed kWord kWords kGranule kBodies kCols kLanes kOuts kRows kStep kTile kPerLane kVector kPacks kSide
kThreads kBlocks
"""
_FUNCTIONS = frozenset({"gamma", "y0", "y1", "yn", "jn", "signal", "time", "clock", "rand"})
"""Of C's headers, and of no written text: no names for a function, but for arrays, numbers and sizes."""
_MACROS = """
BIG_ENDIAN BUFSIZ BYTE_ORDER CHAR_BIT CLOCKS_PER_SEC DECIMAL_DIG EDOM EOF ERANGE FLT_DIG FLT_EPSILON FLT_RADIX
DBL_DIG DBL_EPSILON HUGE_VAL HUGE_VALF HUGE_VALL LITTLE_ENDIAN LONG_BIT MAXFLOAT MAX_CANON MAX_INPUT NULL NZERO
PIPE_BUF SNAN SNANF SNANL WORD_BIT WEOF linux math_errhandling sched_priority stderr stdin stdout unix
"""
"""Of the compiler and the headers that a text includes, besides those that end as limits do."""
_IS_LIMIT = re.compile(r"[A-Z][A-Z0-9_]*_(?:MAX|MIN|WIDTH)")
_HOST = "is_aligned aligned_bytes are_countable grid_of has_shared bytes"
_LIBRARY = {f"{each}f" for each in FUNCTIONS} | FUNCTIONS.keys()
_WORDS = f"{_CPP} {_CUDA} {_MACROS} {_HOST}"
RESERVED = frozenset({*_FUNCTIONS, *_WORDS.split(), *_LIBRARY, *HELPERS})
"""Names that a text uses for something else."""
_IS_OF_COMPILER = re.compile(r"_(?=[_A-Z])")


def is_reserved(name: str) -> bool:
    """Whether a text or a header uses the name for something else, or C++ keeps it for compilers.

    >>> is_reserved("int"), is_reserved("N_MAX"), is_reserved("_N"), is_reserved("_n")
    (True, True, True, False)
    """
    return name in RESERVED or bool(_IS_LIMIT.fullmatch(name) or _IS_OF_COMPILER.match(name))


def free_name(name: str, taken: Container[str] = ()) -> str:
    """The name, or one like it that is free.

    >>> free_name("int"), free_name("__x"), free_name("p.x"), free_name("x", {"x"})
    ('int_', 'x', 'p_x', 'x_')
    """
    free = name.replace(".", "_")
    if _IS_OF_COMPILER.match(free):
        bare = free.lstrip("_")
        free = bare if bare[:1].isalpha() else f"v{bare}"
    while (is_reserved(free) and free not in _FUNCTIONS) or free in taken:
        free += "_"
    return free


def function_name(name: str) -> str:
    """The name, or one like it that a function may have.

    >>> function_name("gamma"), free_name("gamma"), function_name("softmax")
    ('gamma_', 'gamma', 'softmax')
    """
    return free_name(name, _FUNCTIONS)


def part_name(name: str, stage: Stage) -> str:
    """What is written for a stage; one of a field of a struct has no point in it."""
    return f"{name}_{stage.name.replace('.', '_')}"


def with_free_names(formula: Formula) -> Formula:
    """The formula with other names for what has one that is taken; each name stands for one thing.

    >>> from warpwright.formulas.resolve import formula_of
    >>> tuple(with_free_names(formula_of("y[i] = int[i] * gamma[i]")).tensors)
    ('int_', 'gamma', 'y')
    """
    arrays = {each.array for each in formula.tensors.values()}
    plain = {each.name for each in formula.stages} - formula.tensors.keys()
    groups = (sorted(arrays), list(formula.scalars), list(formula.sizes), sorted(plain), list(formula.dims))
    taken: set[str] = set()
    new: dict[str, dict[str, str]] = {"value": {}, "dim": {}}
    for number, names in enumerate(groups):
        kind = "dim" if number in (2, 4) else "value"
        for name in names:
            free = free_name(name, taken)
            taken.add(free)
            new[kind][name] = free
    return renamed(formula, new["value"], new["dim"])


def renamed(formula: Formula, values: Mapping[str, str], dims: Mapping[str, str]) -> Formula:
    """The formula with other names for some of its arrays, stages and numbers (`values`), and for dimensions and sizes
    (`dims`)."""

    def name_of(tensor: str) -> str:
        base, dot, field = tensor.partition(".")
        return f"{values.get(base, base)}{dot}{field}" if dot else values.get(tensor, tensor)

    def change(node: Expr) -> Expr:
        match node:
            case Name(name=name):
                return replace(node, name=dims.get(name) or values.get(name, name))
            case Load(tensor=tensor):
                return replace(node, tensor=name_of(tensor))
            case Reduce(ranges=ranges):
                return replace(node, ranges=tuple(_range(each, dims) for each in ranges))
        return node

    def of(node: Expr) -> Expr:
        return rebuilt(node, change)

    def tensor(each: Tensor) -> Tensor:
        strides = each.strides and tuple(map(of, each.strides))
        base = values.get(each.base, each.base)
        return replace(each, name=name_of(each.name), extents=tuple(map(of, each.extents)), strides=strides, base=base)

    def stage(each: Stage) -> Stage:
        own = tuple(dims.get(name, name) for name in each.dims)
        return replace(each, name=name_of(each.name), dims=own, value=of(each.value), index=tuple(map(of, each.index)))

    return replace(
        formula,
        tensors={name_of(name): tensor(each) for name, each in formula.tensors.items()},
        scalars={values.get(name, name): kind for name, kind in formula.scalars.items()},
        dims={dims.get(name, name): of(extent) for name, extent in formula.dims.items()},
        sizes=tuple(dims.get(name, name) for name in formula.sizes),
        stages=tuple(stage(each) for each in formula.stages),
        written=tuple(map(name_of, formula.written)),
    )


def _range(each: Range, dims: Mapping[str, str]) -> Range:
    return replace(each, name=dims.get(each.name, each.name))

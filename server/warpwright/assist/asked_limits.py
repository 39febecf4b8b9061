"""What words ask of a kernel beside what it computes: a GPU, sizes, memory at most, tensor cores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.formulas.model import Formula
from warpwright.formulas.tree import Name

UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_BYTES = r"(?P<count>\d{1,18}(?:\.\d+)?)\s*(?P<unit>[kmg]i?)b(?:ytes?)?\b"
_GPUS = {
    r"(?:tesla )?v100": 70,
    r"(?:tesla )?t4|rtx 20[678]0": 75,
    r"a100|a30": 80,
    r"a10g?|a40|rtx a\d000|rtx 30[5-9]0": 86,
    r"l4|l40s?|rtx 6000 ada|rtx 40[5-9]0": 89,
    r"h100|h200|gh200": 90,
    r"b200|gb200": 100,
    r"b300|gb300": 103,
    r"rtx 50[5-9]0": 120,
}
"""Names of GPUs, without the maker's, by compute capability."""
_GPU = "|".join(_GPUS)
_LEAD = (
    r"(?:(?:\band\s+)?\b(?:with(?:in)?|in|on|for|under|below|using|at)\s+)?"
    r"(?:(?:at most|no more than|up to|max(?:imum)?|less than|an?|the)\s+)*"
)
_CLAUSES = {
    "memory": rf"{_BYTES}(?:\s+of)?(?:\s+(?:device|gpu|global))?(?:\s+(?:memory|v?ram))?",
    "arch": rf"(?:sm_(?P<sm>\d{{2,3}}[af]?)\b|compute capability (?P<capability>\d+\.\d)|"
    rf"(?:nvidia |geforce )*\b(?P<gpu>{_GPU})(?: super| ti)?\b)",
    "tensor cores": r"tensor[ -]cores?\b",
}
_SIZE = r"\b(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<size>\d+)\b(?!\.\d)"
_INDEXED = re.compile(r"\b([A-Za-z_]\w*)((?:\s?\[\s*\w+(?:\s*,\s*\w+)*\s*\])+)")


@dataclass(frozen=True, slots=True)
class AskedLimits:
    """`most_bytes` of device memory, `arch` as nvcc names it, each where it is said; `sizes` by the names that the
    words have."""

    most_bytes: int | None = None
    arch: str = ""
    sizes: Mapping[str, int] = field(default_factory=dict)
    tensor_cores: bool = False


def asked_limits(words: str) -> tuple[str, AskedLimits]:
    """The words that are left, and what the others ask for.

    >>> asked_limits("softmax of x[R][C], R = 8192, in 24 GB on an RTX 4090 with tensor cores")
    ('softmax of x[R][C]', AskedLimits(most_bytes=24000000000, arch='sm_89', sizes={'R': 8192}, tensor_cores=True))
    >>> asked_limits("y = 3 * x, where N is odd")[0]
    'y = 3 * x, where N is odd'
    """
    most, arch, tensor_cores = None, "", False
    for what, clause in _CLAUSES.items():
        found = re.search(rf"(?<!\w){_LEAD}{clause}", words, re.IGNORECASE)
        if found is None:
            continue
        words = f"{words[: found.start()]} {words[found.end() :]}"
        if what == "memory":
            most = bytes_in(found)
        elif what == "arch":
            arch = f"sm_{found['sm'] or _capability(found)}"
        else:
            tensor_cores = True
    indexed = {name for _, shape in _INDEXED.findall(words) for name in re.findall(r"[A-Za-z_]\w*", shape)}
    sizes: dict[str, int] = {}

    def taken(found: re.Match[str]) -> str:
        if found["name"] not in indexed and not found["name"].isupper():
            return found[0]
        sizes[found["name"]] = int(found["size"])
        return ""

    words = re.sub(rf"(?:(?<=[,;])|(?<=\bwith )|(?<=\bfor )|(?<=\bwhere )|(?<=\band ))\s*{_SIZE}", taken, words)
    if not (sizes or arch or tensor_cores or most is not None):
        return words, AskedLimits()
    words = re.sub(r"\b(?:with|for|at|where|and)\s*(?=[,;.]|$)", "", words)
    words = re.sub(r"\s*[,;](?:\s*[,;])+", ",", re.sub(r"[ \t]+", " ", words))
    return words.strip(" ,;\n"), AskedLimits(most, arch, sizes, tensor_cores)


def bytes_said(text: str) -> int | None:
    """
    >>> bytes_said("24GB"), bytes_said("1.5 GiB"), bytes_said("1000"), bytes_said("much")
    (24000000000, 1610612736, 1000, None)
    """
    if plain := re.fullmatch(r"\s*(\d{1,18})\s*B?\s*", text, re.ASCII):
        return int(plain[1])
    found = re.fullmatch(_BYTES, text.strip(), re.IGNORECASE)
    return None if found is None else bytes_in(found)


def bytes_in(found: re.Match[str]) -> int:
    return int(float(found["count"]) * UNITS[found["unit"].lower()])


def _capability(found: re.Match[str]) -> str:
    if found["capability"]:
        return found["capability"].replace(".", "")
    return str(next(number for names, number in _GPUS.items() if re.fullmatch(names, found["gpu"], re.IGNORECASE)))


def named_sizes(sizes: Mapping[str, int], words: str, formula: Formula) -> dict[str, int]:
    """The sizes of a formula: those of these names, and those that the words call so where they index an array.

    >>> from warpwright.formulas.resolve import formula_of
    >>> named_sizes({"rows": 9, "C": 4}, "sum of x[rows][cols]", formula_of("y[r] = sum[c] x[r, c]"))
    {'R': 9, 'C': 4}
    """
    called: dict[str, str] = {}
    for name, shape in _INDEXED.findall(words):
        if name in formula.tensors:
            own = formula.tensors[name].extents
            said = re.findall(r"\w+", shape)
            pairs = zip(said, own, strict=True) if len(said) == len(own) else ()
            called.update({word: extent.name for word, extent in pairs if isinstance(extent, Name)})
    return {called.get(name, name): number for name, number in sizes.items()}

"""The modifiers that each opcode may have: one that nobody reads would change what an instruction does, unseen.

An opcode that is not listed is checked by its own translator. Types are checked where they are used.
"""

from __future__ import annotations

from warpwright.emulator.ptx.model import Instruction
from warpwright.emulator.ptx.types import TYPE_BYTES

_ROUNDING = "rn rz rm rp"
_COMPARE = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz"
_SPACES = "global shared shared::cta shared::cluster local const param param::entry param::func"
_ORDER = "weak volatile relaxed acquire release acq_rel sc mmio cta cluster gpu sys"
_CACHE = "ca cg cs lu cv wb wt nc unified"
_HINTS = ("L1::", "L2::")
_APPROXIMATE = f"approx ftz {_ROUNDING}"

_FORMS: dict[str, str] = {
    "abs": "ftz",
    "activemask": "",
    "add": f"cc sat ftz {_ROUNDING}",
    "addc": "cc",
    "and": "",
    "applypriority": "global",
    "atom": f"{_SPACES} {_ORDER} add min max and or xor exch cas inc dec noftz v2 v4 v8",
    "bar": "sync arrive red warp aligned cta and or popc",
    "barrier": "sync arrive wait red aligned cta cluster acquire release relaxed and or popc",
    "bfe": "",
    "bfi": "",
    "bfind": "shiftamt",
    "bmsk": "clamp wrap",
    "brev": "",
    "clz": "",
    "cnot": "",
    "copysign": "",
    "cos": _APPROXIMATE,
    "cvta": f"to {_SPACES}",
    "discard": "global L2",
    "div": f"full {_APPROXIMATE}",
    "dp2a": "lo hi",
    "dp4a": "",
    "ex2": _APPROXIMATE,
    "fence": f"{_ORDER} proxy alias async mbarrier_init {_SPACES}",
    "fma": f"ftz sat relu {_ROUNDING}",
    "fns": "",
    "getctarank": "shared::cluster",
    "isspacep": _SPACES,
    "ld": f"{_SPACES} {_ORDER} {_CACHE} v2 v4 v8",
    "ldu": f"{_SPACES} v2 v4",
    "lg2": _APPROXIMATE,
    "lop3": "and or",
    "mad": f"hi lo wide cc sat ftz {_ROUNDING}",
    "mad24": "hi lo sat",
    "madc": "hi lo cc",
    "match": "any all sync",
    "max": "ftz NaN xorsign abs relu",
    "mapa": "shared::cluster",
    "mbarrier": (
        "init inval arrive arrive_drop expect_tx complete_tx try_wait test_wait parity acquire release relaxed cta "
        "cluster shared shared::cta shared::cluster"
    ),
    "membar": "cta gl sys proxy alias",
    "min": "ftz NaN xorsign abs relu",
    "mov": "",
    "mul": f"hi lo wide sat ftz {_ROUNDING}",
    "mul24": "hi lo",
    "neg": "ftz",
    "not": "",
    "or": "",
    "popc": "",
    "prefetch": "global local L1 L2",
    "prefetchu": "L1",
    "prmt": "f4e b4e rc8 ecl ecr rc16",
    "rcp": _APPROXIMATE,
    "red": f"{_SPACES} {_ORDER} add min max and or xor inc dec noftz v2 v4 v8",
    "redux": "sync add min max and or xor",
    "rem": "",
    "rsqrt": _APPROXIMATE,
    "sad": "",
    "selp": "",
    "set": _COMPARE,
    "setp": _COMPARE,
    "shf": "l r wrap clamp",
    "shfl": "sync up down bfly idx",
    "shl": "",
    "shr": "",
    "sin": _APPROXIMATE,
    "slct": "ftz",
    "sqrt": _APPROXIMATE,
    "st": f"{_SPACES} {_ORDER} {_CACHE} v2 v4 v8",
    "sub": f"cc sat ftz {_ROUNDING}",
    "subc": "cc",
    "szext": "clamp wrap",
    "tanh": _APPROXIMATE,
    "testp": "finite infinite number notanumber normal subnormal",
    "vote": "sync all any uni ballot",
    "xor": "",
}
_KNOWN = {opcode: frozenset(form.split()) | TYPE_BYTES.keys() for opcode, form in _FORMS.items()}


def unknown_modifier(instruction: Instruction) -> str | None:
    """The first modifier that no translator reads; None where all are known or the opcode is not listed.

    >>> unknown_modifier(Instruction("st", ("async", "shared", "u32"), (), None, None, 1))
    'async'
    >>> unknown_modifier(Instruction("ld", ("global", "L1::no_allocate", "v4", "u32"), (), None, None, 1))
    """
    known = _KNOWN.get(instruction.opcode)
    if known is None or known.issuperset(instruction.modifiers):
        return None
    return next((m for m in instruction.modifiers if m not in known and not m.startswith(_HINTS)), None)

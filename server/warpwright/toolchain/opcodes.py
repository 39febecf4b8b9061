"""What each instruction of machine code (SASS) does: its family, and the memory that it accesses, in one table.

Source of the names: CUDA Binary Utilities, "Instruction Set Reference", Turing to Blackwell (sm_75 to sm_121).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from warpwright.facts.model import AccessKind, Space


class Family(StrEnum):
    """What kind of work an instruction is. OTHER is an opcode that the table does not have."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    COPY = "copy"  # from one memory to another, past the registers
    TEXTURE = "texture"  # and surfaces
    FP64 = "FP64"
    FP32 = "FP32"
    FP16 = "FP16"  # and BF16
    TENSOR = "tensor core"
    SPECIAL = "special function"
    CONVERSION = "conversion"
    INTEGER = "integer"
    MOVE = "move"
    WARP = "warp"  # between the lanes of a warp
    BARRIER = "barrier"  # and fences
    CONTROL = "control"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """One access of an instruction; `space` is None for a generic address."""

    space: Space | None
    kind: AccessKind


_FAMILIES = {
    Family.LOAD: "LD LDC LDCU LDG LDGMC LDL LDS LDSM LDT LDTM ULDC ULDG",
    Family.STORE: "ST STAS STG STL STS STSM STT STTM USTGR UMEMSETS",
    Family.ATOMIC: "ATOM ATOMG ATOMS RED REDAS REDG REDS UREDGR",
    Family.COPY: "LDGSTS UBLKCP UBLKPF UBLKRED UTCCP UTCSHIFT UTMACCTL UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG",
    Family.TEXTURE: "SUATOM SULD SUQ SURED SUST TEX TLD TLD4 TMML TXA TXD TXQ",
    Family.FP64: "DADD DFMA DMNMX DMUL DSETP",
    Family.FP32: (
        "FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FMNMX FMNMX3 FMUL FMUL2 FMUL32I FSEL FSET FSETP FSWZADD FHADD FHFMA"
    ),
    Family.FP16: "HADD2 HADD2_32I HFMA2 HFMA2_32I HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 VHMNMX",
    Family.TENSOR: (
        "BMMA DMMA HMMA IMMA OMMA QMMA BGMMA HGMMA IGMMA QGMMA WARPGROUP WARPGROUPSET MOVM "
        "UTCHMMA UTCIMMA UTCMXQMMA UTCOMMA UTCQMMA"
    ),
    Family.SPECIAL: "MUFU",
    Family.CONVERSION: "F2F F2FP F2I F2IP FRND I2F I2FP I2I I2IP",
    Family.INTEGER: (
        "BMSK BREV FLO IABS IADD IADD2 IADD3 IADD32I IDP IDP4A IMAD IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP "
        "LOP3 LOP32I PLOP3 POPC PSETP SGXT SHF SHL SHR VABSDIFF VABSDIFF4 VIADD VIADDMNMX VIMNMX VIMNMX3 "
        "UCLEA UVIRTCOUNT"
    ),
    Family.MOVE: (
        "CS2R CS2UR LEPC GETLMEMBASE SETLMEMBASE MOV MOV32I P2R PRMT R2B R2P R2UR S2R S2UR SEL UP2UR UR2UP USETMAXREG "
        "USETSHMSZ UGETNEXTWORKID UTCATOMSWS B2R"
    ),
    Family.WARP: "CREDUX ELECT MATCH REDUX SHFL VOTE VOTE_VTG VOTEU",
    Family.BARRIER: (
        "ACQBULK ACQSHMINIT ARRIVES BAR CCTL CCTLL CCTLT CGAERRBAR DEPBAR ERRBAR FENCE LDGDEPBAR MEMBAR SYNCS "
        "UCGABAR_ARV UCGABAR_WAIT UTCBAR WARPSYNC"
    ),
    Family.CONTROL: (
        "BMOV BPT BRA BREAK BRX BRXU BSSY BSYNC CALL ENDCOLLECTIVE EXIT JMP JMX JMXU KILL NANOSLEEP NOP PMTRIG PREEXIT "
        "QSPC RET RPCMOV RTT YIELD SETCTAID"
    ),
}
_FAMILY_OF = {opcode: family for family, opcodes in _FAMILIES.items() for opcode in opcodes.split()}

_GLOBAL_LOAD = MemoryUse(Space.GLOBAL, AccessKind.LOAD)
_GLOBAL_STORE = MemoryUse(Space.GLOBAL, AccessKind.STORE)
_GLOBAL_ATOMIC = MemoryUse(Space.GLOBAL, AccessKind.ATOMIC)
_SHARED_LOAD = MemoryUse(Space.SHARED, AccessKind.LOAD)
_SHARED_STORE = MemoryUse(Space.SHARED, AccessKind.STORE)
_SHARED_ATOMIC = MemoryUse(Space.SHARED, AccessKind.ATOMIC)
_CONSTANT_LOAD = MemoryUse(Space.CONSTANT, AccessKind.LOAD)
_MEMORY: dict[str, tuple[MemoryUse, ...]] = {
    "LDG": (_GLOBAL_LOAD,),
    "STG": (_GLOBAL_STORE,),
    "LDS": (_SHARED_LOAD,),
    "STS": (_SHARED_STORE,),
    "LDL": (MemoryUse(Space.LOCAL, AccessKind.LOAD),),
    "STL": (MemoryUse(Space.LOCAL, AccessKind.STORE),),
    "LDC": (_CONSTANT_LOAD,),
    "LDCU": (_CONSTANT_LOAD,),
    "ULDC": (_CONSTANT_LOAD,),
    "LD": (MemoryUse(None, AccessKind.LOAD),),
    "ST": (MemoryUse(None, AccessKind.STORE),),
    "LDSM": (_SHARED_LOAD,),
    "STSM": (_SHARED_STORE,),
    "LDGMC": (_GLOBAL_LOAD,),  # of a multicast object
    "LDGSTS": (_GLOBAL_LOAD, _SHARED_STORE),
    "STAS": (_SHARED_STORE,),  # of another block of the cluster
    "REDAS": (_SHARED_ATOMIC,),
    "ATOM": (MemoryUse(None, AccessKind.ATOMIC),),
    "ATOMG": (_GLOBAL_ATOMIC,),
    "ATOMS": (_SHARED_ATOMIC,),
    "RED": (_GLOBAL_ATOMIC,),  # before sm_90; a reduction at a generic address is an ATOM
    "REDG": (_GLOBAL_ATOMIC,),
    "REDS": (_SHARED_ATOMIC,),
}

_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "F64": 8, "128": 16, "256": 32}
_VECTOR = re.compile(r"B?[FSU](\d+)x(\d+)")
_IS_ZERO = re.compile(r"\S+, -?RZ, -?RZ\b")


def family_of(opcode: str, operands: str = "") -> Family:
    """The family of an instruction. What the uniform datapath does is what its other form does.

    >>> family_of("LDG.E.128").value, family_of("DFMA").value, family_of("UIADD3.64").value, family_of("NEW3").value
    ('load', 'FP64', 'integer', 'other')

    Multiplications that only move a number count as moves: ptxas spreads moves over the units that are free.

    >>> family_of("IMAD.MOV.U32").value, family_of("HFMA2.MMA", "R9, -RZ, RZ, 1.875, 0").value
    ('move', 'move')
    """
    name, _, modifiers = opcode.partition(".")
    if name == "IMAD" and modifiers.startswith("MOV"):
        return Family.MOVE
    if name in {"HFMA2", "HFMA2_32I"} and _IS_ZERO.match(operands):
        return Family.MOVE
    return _FAMILY_OF.get(name) or _FAMILY_OF.get(name.removeprefix("U"), Family.OTHER)


def memory_uses(opcode: str) -> tuple[MemoryUse, ...]:
    """What an instruction accesses; one that reads one memory and writes another has two."""
    return _MEMORY.get(opcode.partition(".")[0], ())


def width_of(opcode: str) -> int:
    """Bytes per lane of a memory instruction: four where it names no width.

    >>> width_of("LDG.E"), width_of("LDS.U16"), width_of("STG.E.128"), width_of("ATOMG.E.CAS.64.STRONG.GPU")
    (4, 2, 16, 8)
    >>> [width_of(each) for each in ("LDSM.16.MT88.4", "LDSM.8.MT1616", "REDG.E.ADD.F32x4.RN", "LDG.E.ENL2.256")]
    [16, 8, 16, 32]
    """
    name, *modifiers = opcode.split(".")
    if name in {"LDSM", "STSM"}:  # matrices of 128 bytes, or of 256: a register or two of each lane
        size = 8 if any(m.endswith("1616") for m in modifiers) else 4
        return size * next((int(m) for m in modifiers if m in {"2", "4"}), 1)
    for modifier in modifiers:
        if modifier in _WIDTHS:
            return _WIDTHS[modifier]
        if vector := _VECTOR.fullmatch(modifier):
            return int(vector[1]) * int(vector[2]) // 8
    return 4


def is_double(opcode: str) -> bool:
    """Whether an instruction computes in double precision, converts to or from it, or is a part of such a division.

    >>> [is_double(each) for each in ("DFMA", "F2F.F64.F32", "I2F.F64", "MUFU.RCP64H", "F2F.F16.F32")]
    [True, True, True, True, False]
    """
    name, *modifiers = opcode.split(".")
    match _FAMILY_OF.get(name):
        case Family.FP64:
            return True
        case Family.TENSOR:
            return name == "DMMA"
        case Family.CONVERSION:
            return "F64" in modifiers
        case Family.SPECIAL:
            return any(m.endswith("64H") for m in modifiers)
    return False

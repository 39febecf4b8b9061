"""What of a kernel is not run, by name, before it runs.

Which instructions run is known by the translators alone: here they are asked, and what they refuse is put into words.
"""

from __future__ import annotations

from pathlib import PurePath

from warpwright.emulator.program import outline
from warpwright.emulator.ptx.model import Instruction, Module
from warpwright.emulator.translate.registry import UnsupportedError, translator_of

_FEATURES = {
    "a bulk copy (TMA)": ("cp.async.bulk", "cp.reduce.async.bulk", "tensormap.", "applypriority.", "discard."),
    "tensor memory (tcgen05)": ("tcgen05.",),
    "a launch of more clusters by the kernel (clusterlaunchcontrol)": ("clusterlaunchcontrol.",),
    "a texture or surface": ("tex.", "tld4.", "txq.", "suld.", "sust.", "sured.", "suq.", "istypep."),
    "programmatic dependent launch (griddepcontrol)": ("griddepcontrol.",),
    "an exchange of registers between warps (setmaxnreg)": ("setmaxnreg.",),
    "memory of several GPUs (multimem)": ("multimem.",),
    "a stack whose size is known at run time only": ("alloca.", "stacksave.", "stackrestore."),
    "a video instruction": ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset"),
}
"""Names for what the engine refuses; one that it runs after all never gets here."""


def unsupported(module: Module, kernel: str) -> list[str]:
    """One sentence for each thing that keeps a kernel from being run, in the order of the PTX; empty where it runs.

    Each names the source line (or the line of the PTX) and the instruction. Raises KeyError for an unknown kernel.
    """
    function = module.functions[kernel]
    if function.body is None or not function.is_kernel:
        return [f"{kernel} is not a kernel with a body."]
    try:
        begun = outline(module, kernel)
    except UnsupportedError as error:
        return [f"{_capital(str(error))}."]
    first: dict[str, Instruction] = {}
    rows: dict[str, set[int]] = {}
    for writer in begun.writers():
        for instruction, refusal in writer.refusals():
            what = _in_words(instruction, refusal)
            if what not in first or instruction.row < first[what].row:
                first[what] = instruction
            rows.setdefault(what, set()).add(instruction.row)
    sentences: list[str] = []
    for what, instruction in sorted(first.items(), key=lambda found: found[1].row):
        others = len(rows[what]) - 1
        more = f", and {others} more like it" if others else ""
        sentences.append(f"{_where(instruction)}: {what}{more}.")
    return sentences


def _in_words(instruction: Instruction, refusal: UnsupportedError) -> str:
    """What is refused: a feature by its name, an opcode that nobody knows, or what the translator says of a form."""
    name = instruction.name
    for feature, prefixes in _FEATURES.items():
        if name.startswith(prefixes):
            return f"{feature} is not emulated (`{name}`)"
    if translator_of(instruction.opcode) is None:
        return f"the instruction `{name}` is not known to the emulator"
    said = str(refusal)
    return said.replace(name, f"`{name}`") if name in said else f"{said} (`{name}`)"


def _where(instruction: Instruction) -> str:
    place = instruction.place
    return f"{PurePath(place.file).name}:{place.line}" if place else f"line {instruction.row} of the PTX"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

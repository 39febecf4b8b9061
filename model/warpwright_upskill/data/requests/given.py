"""What already stands beside a comment: parameters in C, tensors in Python."""

from __future__ import annotations

from random import Random

from warpwright.formulas.model import Formula, Tensor
from warpwright.formulas.printer import shown

from warpwright_upskill.data.requests.compose import Parts
from warpwright_upskill.data.requests.vocabulary import C_TYPES, SIZES, TORCH_TYPES


def c_signature(parts: Parts, chance: Random) -> str:
    """`const float* x, float* out, int rows, int cols`, in one of the habits that people have."""
    formula = parts.formula
    restrict = chance.choice(("", "", "", " __restrict__"))
    star = chance.choice(("* ", "* ", " *", "*"))
    const = chance.random() < 0.85
    pointers = []
    for name, type_, role in _arrays(formula):
        kind = chance.choice(C_TYPES[type_])
        qualifier = "const " if role == "in" and const else ""
        mark = f"*{restrict} " if restrict else star if star != "*" else "* "
        pointers.append(f"{qualifier}{kind}{mark}{name}")
    numbers = [f"{C_TYPES[type_][0]} {name}" for name, type_ in formula.scalars.items()]
    integer = chance.choice(("int", "int", "int", "size_t", "int64_t", "unsigned int", "long long"))
    sizes = [f"{integer} {each}" for each in _size_names(parts, chance)]
    order = chance.random()
    listed = (
        pointers + sizes + numbers
        if order < 0.6
        else pointers + numbers + sizes
        if order < 0.9
        else sizes + pointers + numbers
    )
    if chance.random() < 0.12:
        name = chance.choice(("kernel", "fused_op", "forward", "my_kernel", "run", "compute", "op_kernel"))
        return f"__global__ void {name}({', '.join(listed)})"
    return ", ".join(listed)


def torch_signature(parts: Parts, chance: Random) -> str:
    """`x: [R, C] bf16, w: [C]`, `def f(x, w, eps)` and the like."""
    formula = parts.formula
    style = chance.randrange(4)
    told = []
    for name, type_, role in _arrays(formula):
        if role == "out" and chance.random() < 0.5:
            continue
        tensor = next(each for each in formula.tensors.values() if each.array == name)
        shape = ", ".join(shown(each) for each in tensor.extents)
        kind = TORCH_TYPES[type_]
        told.append(
            (
                f"{name}: Tensor[{shape}]" + (f" {kind}" if kind != "float32" else ""),
                f"{name} ({shape}) {kind}",
                f"{name}: {kind}[{shape}]",
                f"torch.Tensor {name} [{shape}]" + (f" {kind}" if kind != "float32" else ""),
            )[style]
        )
    told += [f"{name}: {'int' if type_[0] in 'iu' else 'float'}" for name, type_ in formula.scalars.items()]
    return ", ".join(told)


def _arrays(formula: Formula) -> list[tuple[str, str, str]]:
    """Name, type and role of each array that is handed over, inputs first."""
    found: dict[str, tuple[str, str, str]] = {}
    tensors: list[Tensor] = sorted(formula.tensors.values(), key=lambda each: each.role == "out")
    for each in tensors:
        role = "in-out" if each.array in found and found[each.array][2] != each.role else each.role
        found[each.array] = (each.array, each.type, role)
    return list(found.values())


def _size_names(parts: Parts, chance: Random) -> list[str]:
    taken = {*parts.names.values()}
    names = []
    for each in parts.formula.sizes:
        pool = SIZES.get(each, (each,))
        name = next((name for name in chance.sample(pool, len(pool)) if name not in taken), f"num_{each.lower()}")
        taken.add(name)
        names.append(name)
    if parts.rank >= 2 and parts.rank == len(names) and parts.operator.shape == "map" and chance.random() < 0.2:
        return names
    return names

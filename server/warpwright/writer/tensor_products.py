"""Products of f16 and bf16: one kernel whose template has an instance for each schedule, and when each is launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpwright.formulas.extents import at_sizes, is_constant
from warpwright.formulas.model import Tensor
from warpwright.formulas.tree import Call, Expr, Num, product
from warpwright.schedules.rules import TensorRule
from warpwright.writer.code import Kernel, Launch, Path, ceiling
from warpwright.writer.contraction_mma import pad_kernel, template_arguments, tensor_product
from warpwright.writer.product_layout import Layout, kernel_of
from warpwright.writer.product_text import ProductText, in_words
from warpwright.writer.types import NAMES


def tensor_products(made: ProductText, rules: Sequence[TensorRule], name: str) -> Layout:
    """The kernel, the paths to its instances in the order of the rules, and copies of operands whose rows are no whole
    16-byte words."""
    scope, own = made.scope(), f"{name}_kernel"
    described, parameters = made.product(own, scope, made.operands(scope), stored=False)
    text = tensor_product(described)
    helpers = {"copy16", f"mma_{described.type}", "matrix_descriptor"}
    helpers |= {f"wgmma_{described.type}_{each.schedule.tile_n}" for each in rules}
    helpers |= {each for each in ("load_matrices", "load_matrices_turned") if f"{each}(" in text}
    kernels = [kernel_of(made, scope, own, text, parameters, helpers)]
    copies, pad, pads = _padded(made, name)
    if pad is not None:
        kernels.append(pad)
    left, right = described.a.array, described.b.array
    names: dict[str, Expr] = {}
    paths: list[Path] = []
    for rule in rules:
        schedule = rule.schedule
        tiles = made.tiles(schedule.tile_m, schedule.tile_n)
        names[f"tiles_{schedule.tile_m}x{schedule.tile_n}" if len(rules) > 1 else "tiles"] = tiles
        least = [Call(">=", (tiles, Num(rule.least_tiles)))] if rule.least_tiles else []
        most = [Call("<=", (tiles, Num(rule.most_tiles)))] if rule.most_tiles else []
        fits = (*least, *most, *made.fits())
        launch = Launch(
            own, (tiles, Num(1), Num(1)), (schedule.threads, 1, 1), shared_bytes=schedule.shared,
            template=template_arguments(schedule),
        )  # fmt: skip
        whole = in_words(made.lengths, 64 if rule.is_for_lines else 8)
        if whole is not None:
            reason = "Rows are whole 128-byte lines." if rule.is_for_lines else "Rows are whole 16-byte words."
            paths.append(Path((launch,), (*whole, *fits), dict.fromkeys((left, right), 16), reason, schedule))
        if pad is not None and not rule.is_for_lines:
            launches = (pads, replace(launch, arrays={left: copies[0].name, right: copies[-1].name}))
            needed, some = copies[0].extents[0], Call(">=", (made.extents["depth"], Num(1)))
            paths.append(Path(launches, (needed, some, *fits), {}, "Rows get zeros at their ends first.", schedule))
    return Layout(kernels, paths, names, copies)


def _padded(made: ProductText, name: str) -> tuple[list[Tensor], Kernel | None, Launch]:
    """Copies of both operands in rows of whole 16-byte words, one of an array that is both, the kernel that makes them
    and its launch. They are made where a row is no whole number of words; no kernel where that is never so, or where
    the operands are different parts of one array, or what follows the sum reads them, too."""
    shape, own, scope = made.shape, f"{name}_pad", made.scope()
    copies: list[Tensor] = []
    rests: list[Expr] = []
    words: list[Expr] = []
    declared: dict[str, str] = {}
    arrays: set[str] = set()
    for side, length, free in zip((shape.left, shape.right), made.lengths, ("row", "col"), strict=True):
        tensor = made.places.tensors[side.loads[0].tensor]
        batch = [made.formula.dims[each] for each in made.batch_of(side.loads[0])]
        outer = product([*batch, made.extents[free if side.inner == "depth" else "depth"]])
        row = ceiling(length, 8)
        copies.append(Tensor(f"{tensor.array}_padded", tensor.type, (outer, product([row, Num(8)])), "out"))
        arrays.add(tensor.array)
        rests.append(Call("%", (length, Num(8))))
        words.append(product([outer, row]))
        declared[copies[-1].name] = f"{NAMES[tensor.type]}* __restrict__ {copies[-1].name}"
    rest = rests[0] if rests[0] == rests[1] else Call("+", (rests[0], rests[1]))
    needed: Expr = Call(">=", (rest, Num(1)))
    is_one = copies[0].name == copies[1].name
    read_after = {made.places.tensors[each].array for each in made.read_after if each in made.places.tensors}
    is_served = not (is_one and copies[0] != copies[1]) and read_after.isdisjoint(arrays)
    grid = (ceiling(Call("max", (words[0], words[1])), 256), Num(1 if is_one else 2), Num(1))
    launch = Launch(own, grid, (256, 1, 1))
    if (all(map(is_constant, rests)) and not at_sizes(needed, {})) or not is_served:
        return [], None, launch
    copies = copies[:1] if is_one else copies
    described, parameters = made.product(own, scope, made.operands(scope), others=declared, result=False)
    kernel = kernel_of(made, scope, own, pad_kernel(described), parameters, {"pad_word"})
    return [replace(each, extents=(needed, *each.extents)) for each in copies], kernel, launch

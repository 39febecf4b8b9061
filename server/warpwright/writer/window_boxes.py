"""What a thread of a kernel of windows reads into registers: boxes of elements, by packs where they lie inside of the
array."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from warpwright.formulas.bounds import Polynomial, expression, plus, polynomial, scaled
from warpwright.formulas.tree import Call, Expr, Load, Name, Num
from warpwright.formulas.types import TYPES, computed
from warpwright.schedules.windows import Axis, Box, Pass
from warpwright.writer.text import listed
from warpwright.writer.types import NAMES, literal
from warpwright.writer.window_frame import Frame


@dataclass
class Boxes:
    """The boxes of a kernel; `read` has each with its name."""

    frame: Frame
    read: list[tuple[Box, str]] = field(default_factory=list)

    def put(self, each: Pass, own: dict[Load, tuple[Box, str]]) -> None:
        """Loads of boxes stand for their elements."""
        for load, (box, name) in own.items():
            text = name
            for n in _wide(box):
                at = self._beside_first(box.axes[n], load.index[n], each)
                text += f"[{self.frame.scope.expressions.of(expression(at))}]"
            self.frame.scope.places[load] = (text, computed(TYPES[box.tensor.type]))

    def _beside_first(self, axis: Axis, index: Expr, each: Pass) -> Polynomial:
        """Where in its box an element lies."""
        terms = dict(polynomial(index) or {})
        found: Polynomial = {(): -axis.low} if axis.low else {}
        for key, factor in terms.items():
            if key in axis.base and key != (each.stepped,) and not (len(key) == 1 and key[0] in axis.by):
                continue
            if len(key) == 1 and key[0] in axis.by:
                found = plus(found, {(self.frame.tiles[key[0]][0],): factor})
            elif key == (each.stepped,):
                found = plus(found, {(self.frame.step_names(each.stepped)[0],): factor})
            else:
                found = plus(found, {key: factor})
        return found

    def loaded(self, box: Box, each: Pass) -> str:
        """Reads a box into registers; its name."""
        scope, body = self.frame.scope, self.frame.body
        tensor = box.tensor
        kind = computed(TYPES[tensor.type])
        name = scope.free(f"{tensor.array}_near")
        taken = [other for _, other in self.read]
        while name in taken:
            name += "_"
        self.read.append((box, name))
        scope.used[tensor.array] = None
        wide = _wide(box)
        sizes = {n: self._size(box.axes[n]) for n in wide}
        body(f"{NAMES[kind.name]} {name}{''.join(f'[{sizes[n]}]' for n in wide)};")
        variables = dict(
            zip(
                wide,
                [scope.free(v) for v in ("along", "down", "deep", "far", "farther")][: len(wide)][::-1],
                strict=True,
            )
        )
        tests = [test for n in range(len(box.axes)) for test in self._inside(box, n, each)]
        is_far = isinstance(box.outside, str)
        if not tests:
            self._packs(box, each, name, sizes, variables)
        elif not is_far and not any((each.stepped,) in axis.base for axis in box.axes):
            self._rows_inside(box, each, name, sizes, variables)
        else:
            first, *more = _broken(tests, 110 - 4 * body.depth)
            body(f"if ({first}")
            for line in more:
                body(f"        {line}")
            body.lines[-1] += ") {"
            body.depth += 1
            self._packs(box, each, name, sizes, variables)
            body.depth -= 1
            body("} else {")
            body.depth += 1
            (self._one_by_one if is_far else self._rows_inside)(box, each, name, sizes, variables)
            body.depth -= 1
            body("}")
        return name

    def _size(self, axis: Axis) -> str:
        span = axis.high - axis.low + 1
        text = ""
        for dim, by in axis.by.items():
            size = self.frame.tiles[dim][1]
            text += f"{size}" if by == 1 else f"{by} * {size}"
            span -= by
        if not text:
            return str(span)
        return f"{text} + {span}" if span > 0 else f"{text} - {-span}" if span < 0 else text

    def _base(self, axis: Axis, each: Pass) -> Polynomial:
        """Where the axis begins for the thread's first result."""
        names = {**self.frame.firsts}
        if each.stepped:
            names[each.stepped] = self.frame.step_names(each.stepped)[1]
        made: Polynomial = {}
        for key, factor in axis.base.items():
            made = plus(made, {tuple(sorted(names.get(name, name) for name in key)): factor})
        return made

    def _start(self, axis: Axis, each: Pass) -> Expr:
        return expression(plus(self._base(axis, each), {(): axis.low} if axis.low else {}))

    def _inside(self, box: Box, n: int, each: Pass) -> list[str]:
        """Tests that all of an axis lies inside of the array."""
        axis, extent = box.axes[n], box.tensor.extents[n]
        bounds, base = self.frame.scope.expressions.bounds, self._base(axis, each)
        tests = []
        least = plus(axis.base, {(): axis.low} if axis.low else {})
        if not bounds.not_negative(least):
            tests.append(self._compared(plus(base, {(): axis.low} if axis.low else {})))
        size = polynomial(extent) or {}
        rest = plus(size, scaled(plus(axis.base, {(): axis.high + 1} if axis.high != -1 else {}), -1))
        packed = n == box.inner and self.frame.found.col in axis.by
        if (
            not axis.by
            and not packed
            and each.stepped not in {k for key in axis.base for k in key}
            and bounds.not_negative(rest)
        ):
            return tests
        end = plus(base, {(): axis.high + 1} if axis.high != -1 else {})
        for dim, by in axis.by.items():
            end = plus(end, {(self.frame.tiles[dim][1],): by, (): -by})
        if n == box.inner and (len(box.axes) == 1 or box.tensor.strides is not None) and self.by_packs(box):
            end = plus(end, {("kVector",): 1, (): -1})  # the last pack may reach beyond the last element
        tests.append(self._compared(plus(size, scaled(end, -1))))
        return tests

    def _compared(self, terms: Polynomial) -> str:
        """`i_first >= 1` for i_first - 1, which shall not be negative."""
        left = {key: factor for key, factor in terms.items() if factor > 0}
        right = {key: -factor for key, factor in terms.items() if factor < 0}
        one, other = (self.frame.scope.expressions.of(expression(each)) for each in (left, right))
        return f"{other} <= {one}" if any(key for key in right) else f"{one} >= {other}"

    @contextmanager
    def _along(self, over: Iterable[int], sizes: Mapping[int, str], variables: Mapping[int, str]) -> Iterator[None]:
        """Loops over axes of a box."""
        body = self.frame.body
        depth = body.depth
        for n in over:
            body.begin_unrolled(variables[n], sizes[n])
        yield
        body.end(depth)

    def _packs(self, box: Box, each: Pass, name: str, sizes: Mapping[int, str], variables: Mapping[int, str]) -> None:
        """Reads a box that lies inside of the array."""
        scope, inner = self.frame.scope, box.axes[box.inner]
        outer = [n for n in sizes if n != box.inner]
        index: list[Expr] = []
        for n, axis in enumerate(box.axes):
            at = self._start(axis, each) if n != box.inner else expression(self._base(axis, each))
            index.append(_plus(at, variables[n]) if n in outer else at)
        row = f"{name}{''.join(f'[{variables[n]}]' for n in outer)}"
        with self._along(outer, sizes, variables):
            place = scope.element(box.tensor, index)
            if not inner.is_wide:
                self.frame.body(f"{row} = {self._value(box, place)};")
            else:
                scope.expressions.helpers.add("load_near")
                self.frame.body(f"load_near<{self._moved_at_once(box)}, {-inner.low}>({row}, &{place});")

    def _moved_at_once(self, box: Box) -> str:
        return "kVector" if self.by_packs(box) else "1"

    def by_packs(self, box: Box) -> bool:
        """Whether packs of it may be aligned: few weights may begin anywhere."""
        inner = box.axes[box.inner]
        return self.frame.found.col in inner.by or any(
            (each.stepped,) in inner.base for each in self.frame.found.passes
        )

    def _value(self, box: Box, place: str) -> str:
        kind = TYPES[box.tensor.type]
        return place if computed(kind) == kind or kind.kind != "float" else f"static_cast<float>({place})"

    def _outside(self, box: Box) -> str:
        kind = computed(TYPES[box.tensor.type])
        return literal(box.outside.value if isinstance(box.outside, Num) else 0, kind)

    def _rows_inside(
        self, box: Box, each: Pass, name: str, sizes: Mapping[int, str], variables: Mapping[int, str]
    ) -> None:
        """Reads a box row by row, with a number for what lies outside of the array; what is no result's element may lie
        there too."""
        scope, body, inner = self.frame.scope, self.frame.body, box.axes[box.inner]
        outer = [n for n in sizes if n != box.inner]
        row = f"{name}{''.join(f'[{variables[n]}]' for n in outer)}"
        depth = body.depth
        index: list[Expr] = []
        tests: list[str] = []
        for n, axis in enumerate(box.axes):
            at = self._start(axis, each) if n != box.inner else expression(self._base(axis, each))
            if n in outer:
                body.begin_unrolled(variables[n], sizes[n])
                at = _plus(at, variables[n])
            if (n != box.inner or not inner.is_wide) and self._inside(box, n, each):
                at, own = self._at_border(box, n, at)
                tests += own
            index.append(at)
        place, inside = scope.element(box.tensor, index), " && ".join(tests)
        if not inner.is_wide:
            value = self._value(box, place)
            body(f"{row} = {f'{inside} ? {value} : {self._outside(box)}' if inside else value};")
        else:
            scope.expressions.helpers.add("load_inside")
            extent = scope.expressions.of(box.tensor.extents[box.inner])
            count = f"{inside} ? {extent} : 0" if inside else extent
            kind = NAMES[computed(TYPES[box.tensor.type]).name]
            other = self._outside(box)
            if kind not in ("float", "int") and not (kind == "double" and other[-1].isdigit()):  # INFINITY is a float
                other = f"static_cast<{kind}>({other})"
            head = f"load_inside<{self._moved_at_once(box)}, {-inner.low}>("
            first = scope.expressions.of(index[box.inner])
            body.add(listed([row, f"&{place}", first, count, other], head, ");", 116 - 4 * body.depth))
        body.end(depth)

    def _one_by_one(
        self, box: Box, each: Pass, name: str, sizes: Mapping[int, str], variables: Mapping[int, str]
    ) -> None:
        """Reads each element by itself, from inside of the array for one that lies outside."""
        scope, body = self.frame.scope, self.frame.body
        depth = body.depth
        index: list[Expr] = []
        for n, axis in enumerate(box.axes):
            at = self._start(axis, each)
            if n in variables:
                body.begin_unrolled(variables[n], sizes[n])
                at = _plus(at, variables[n])
            if self._inside(box, n, each):
                at, _ = self._at_border(box, n, at)
            index.append(at)
        value = self._value(box, scope.element(box.tensor, index))
        body(f"{name}{''.join(f'[{variables[n]}]' for n in sizes)} = {value};")
        body.end(depth)

    def _at_border(self, box: Box, n: int, at: Expr) -> tuple[Expr, list[str]]:
        """The index with a name, and the conditions under which its element is there."""
        scope, body, axis = self.frame.scope, self.frame.body, box.axes[n]
        extent = scope.expressions.of(box.tensor.extents[n])
        named = next(iter(axis.by), "") or next(
            (k for key in axis.base for k in key if k in self.frame.formula.dims), ""
        )
        name = scope.free(f"{named}_at" if named else f"at_{n}")
        if isinstance(box.outside, str):
            helper = {"clamp": "clamped", "wrap": "wrapped", "reflect": "mirrored"}[box.outside]
            scope.expressions.helpers.add(helper)
            body(f"const int {name} = {helper}<int>({scope.expressions.of(at)}, {extent});")
            return Name(name), []
        body(f"const int {name} = {scope.expressions.of(at)};")
        least = plus(axis.base, {(): axis.low} if axis.low else {})
        below = [] if scope.expressions.bounds.not_negative(least) else [f"{name} >= 0"]
        return Name(name), [*below, f"{name} < {self.frame.factor(box.tensor.extents[n])}"]


def _wide(box: Box) -> list[int]:
    """The axes along which it has several elements, the one that lies along memory last."""
    wide = [n for n, axis in enumerate(box.axes) if axis.is_wide]
    return sorted(wide, key=lambda n: n == box.inner)


def _plus(at: Expr, variable: str) -> Expr:
    return Name(variable) if at == Num(0) else Call("+", (at, Name(variable)))


def _broken(tests: Sequence[str], width: int) -> list[str]:
    """Conditions on lines of so many characters."""
    lines, line = [], ""
    for number, each in enumerate(tests):
        piece = each + (" &&" if number + 1 < len(tests) else "")
        if line and len(line) + len(piece) + 1 > width:
            lines.append(line)
            line = ""
        line = f"{line} {piece}".lstrip()
    return [*lines, line]

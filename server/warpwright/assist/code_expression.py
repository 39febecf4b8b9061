"""Formulas of expressions of torch and NumPy in a comment: `torch.softmax(x, dim=-1)`, `out = F.gelu(x @ w + b)`; and
of equations without an index, `w -= lr * grad`, above a signature that has all of their names and one size.

The text is parsed, never run. What is called is looked up in the table of wordings; what is not there makes no formula.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from warpwright.assist.signature import Parameter
from warpwright.assist.worded_names import DIMS, Names, UnfitError
from warpwright.assist.wording import Array, Said
from warpwright.assist.wording_table import operations

_RESULT = re.compile(r"^\s*([A-Za-z_]\w*)\s*=(?!=)\s*")
_CHANGED = re.compile(r"([A-Za-z_]\w*)\s*([-+*/])=\s*")
_HEADING = re.compile(
    r"\s*(?:(?:plain|simple|elementwise|element-wise|fused|one)\s+)*"
    r"(?:ema|exponential moving average|sgd|gradient descent|axpby|axpy|saxpy|lerp|linear interpolation|blend|update|"
    r"weight decay|momentum|kernel|todo)(?:\s+(?:step|update|kernel))?\s*[:,]\s*",
    re.IGNORECASE,
)
"""What an equation may be called before it: it changes nothing of what that says."""
_MODULES = ("torch", "F", "np", "numpy", "torch.nn.functional", "nn.functional", "math")
_CALLS = {
    "neg": "negate", "negative": "negate", "absolute": "abs", "mv": "matvec", "mm": "matmul", "bmm": "batched_matmul",
    "amax": "max", "amin": "min", "maximum": "larger", "minimum": "smaller", "sub": "subtract", "mul": "multiply",
    "div": "divide", "mse_loss": "mse", "l1_loss": "mae", "swish": "silu", "special.logsumexp": "logsumexp",
}  # fmt: skip
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_NUMBERS = frozenset(("alpha", "beta", "eps", "epsilon", "scale", "lr", "temperature", "tau", "lam"))
_BIASES = frozenset(("bias", "b"))
_ARRAYS = frozenset(("x", "y", "z", "u", "v", "dy", "grad", "gate", "residual"))
"""Names of arrays where nothing else says what they are."""
_MATRIX = re.compile(r"[A-Z]|mat")
_VECTOR = re.compile(r"vec|(?:^|_)[uv](?:_|\d|$)")
MOST_CHARACTERS = 400
MOST_NODES = 200


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression over dimensions; along those in `kept` it has one element."""

    text: str
    dims: tuple[str, ...]
    kept: frozenset[str] = frozenset()

    @property
    def inner(self) -> str:
        return self.text if re.fullmatch(r"\w+(\[[^\[\]]*\])?", self.text) else f"({self.text})"


def in_code(comment: str, names: Names, rank: int) -> str:
    """The formula of an expression for arrays of a rank. Raises UnfitError."""
    tree = _parsed(comment)
    if tree is None:
        raise UnfitError
    certain = {*_ARRAYS, *_BIASES, *_handed_over(tree)}
    if not names.signature and {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)} - certain - _KNOWN:
        raise UnfitError  # an array or a number: nothing says which
    reader = _Reader(names, rank)
    value = reader.value(tree)
    dims = tuple(each for each in value.dims if each not in value.kept)
    result = names.result("y", names.read, is_new=False)
    index = f"[{', '.join(dims)}]" if dims else ""
    where = f" where {', '.join(reader.stages)}" if reader.stages else ""
    return f"{names.declarations('')}{result}{index} = {value.text}{where}"


def equation_in(comment: str, signature: Sequence[Parameter]) -> str:
    """The equation that a comment is whose names are all of a signature with one size; "" where it is none.

    >>> from warpwright.assist.signature import parameters
    >>> equation_in("SGD step: w -= lr * g", parameters("float* w, const float* g, float lr, int n"))
    'w = w - (lr * g)'
    """
    if sum(each.is_size for each in signature) != 1:
        return ""
    text = re.sub(r"(?<=[\d.])f\b", "", _HEADING.sub("", comment, count=1).strip().rstrip(".;"))
    if changed := _CHANGED.match(text):
        text = f"{changed[1]} = {changed[1]} {changed[2]} ({text[changed.end() :]})"
    tree = _parsed(text) if _RESULT.match(text) else None
    if tree is None:
        return ""
    if any(isinstance(each, ast.Div) for each in ast.walk(tree)) and any(
        each.pointer and each.is_whole for each in signature
    ):
        return ""  # of whole numbers or of their values
    known = {each.name for each in signature}
    called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
    names = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and id(each) not in called}
    return text if names and names - {*_MODULES} <= known else ""


def said_in_code(comment: str) -> tuple[Said, int] | None:
    """The result that an expression is assigned to, and the least rank of its arrays; None for what is none."""
    tree = _parsed(comment)
    if tree is None:
        return None
    found = _RESULT.match(comment)
    said = Said(result=Array(found[1]) if found else None)
    ranks = [1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            ranks += [2] if _called(node)[0] in ("layer_norm", "rms_norm") else []
            each = operations().get(_CALLS.get(_called(node)[0], _called(node)[0]))
            if each is not None and each.kind in ("rows", "reduce"):
                ranks += [_least_rank(arg) for arg in (*node.args, *(k.value for k in node.keywords if k.arg in _AXES))]
    return said, max(ranks)


_AXES = ("dim", "axis")
_KNOWN = _NUMBERS | {*_MODULES}


def _handed_over(tree: ast.expr) -> set[str]:
    """What is the argument of a function, has a method, or is multiplied as a matrix."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=function, args=args):
                found |= {each.id for each in args if isinstance(each, ast.Name)}
                found |= {function.id} if isinstance(function, ast.Name) else set()
            case ast.Tuple(elts=inner) | ast.List(elts=inner):  # sizes
                found |= {each.id for each in inner if isinstance(each, ast.Name)}
            case ast.Attribute(value=ast.Name(id=name)):
                found.add(name)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                found |= {each.id for each in (left, right) if isinstance(each, ast.Name)}
    return found


def _is_vector(names: Sequence[str]) -> bool:
    """Whether one of the names says that it is a vector's."""
    return any(_VECTOR.search(each) for each in names)


def name_in_code(comment: str) -> str:
    """What a function that computes the expression may be called: its outermost call.

    >>> name_in_code("y = torch.softmax(x, dim=-1)")
    'softmax'
    """
    tree = _parsed(comment)
    called = _called(tree)[0] if isinstance(tree, ast.Call) else ""
    return re.sub(r"\W", "_", called)


def is_called_in(comment: str) -> bool:
    """Whether something is called in a comment or multiplied as matrices, as in an expression of torch."""
    return re.search(r"\w\(|@", comment) is not None


def _parsed(comment: str) -> ast.expr | None:
    """The expression that a comment is."""
    text = _RESULT.sub("", comment.strip().rstrip(".;"))
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return tree if sum(1 for _ in ast.walk(tree)) <= MOST_NODES else None


def _least_rank(node: ast.expr) -> int:
    number = _integer(node)
    return 1 if number is None else 2 if number < 0 else number + 1 if number else 2


def _integer(node: ast.expr | None) -> int | None:
    try:
        found = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and -4 <= found < 4 else None


def _called(node: ast.expr | None) -> tuple[str, ast.expr | None]:
    """The function that is called, and the value that it is a method of."""
    if not isinstance(node, ast.Call):
        return "", None
    if isinstance(node.func, ast.Name):
        return node.func.id, None
    if isinstance(node.func, ast.Attribute):
        owner = ast.unparse(node.func.value)
        return (node.func.attr, None) if owner in _MODULES else (node.func.attr, node.func.value)
    return "", None


class _Reader:
    def __init__(self, names: Names, rank: int) -> None:
        if not 1 <= rank <= len(DIMS):
            raise UnfitError
        self.names = names
        self.base = DIMS[rank - 1]
        self.stages: list[str] = []

    def value(self, node: ast.expr, dims: tuple[str, ...] | None = None) -> _Value:
        """The value of a node; of an array over `dims` where they are given."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return _Value(repr(number), ())
            case ast.Name(id=name):
                return self._named(name, self.base if dims is None else dims)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                found = self.value(operand, dims)
                return _Value(f"-{found.inner}", found.dims, found.kept)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return self._product(left, right)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
                return self._both(left, right, f"{{a}} {_SIGNS[type(op)]} {{b}}", dims)
            case ast.Call():
                return self._call(node, dims)
        raise UnfitError

    def _named(self, name: str, dims: tuple[str, ...]) -> _Value:
        if name in self.names.numbers or (name in _NUMBERS and name not in self.names.signature):
            return _Value(self.names.number(name), ())
        if name not in self.names.read:
            self.names.operand(name, name, 0)
        elif self.ranks.get(name) not in (None, len(dims)):
            raise UnfitError
        self.ranks[name] = len(dims)
        return _Value(f"{name}[{', '.join(dims)}]" if dims else name, dims)

    @property
    def ranks(self) -> dict[str, int]:
        return self.names.ranks

    def _both(self, left: ast.expr, right: ast.expr, form: str, dims: tuple[str, ...] | None) -> _Value:
        one = self.value(left, dims)
        own = one.dims or dims
        if own and isinstance(right, ast.Name) and right.id in _BIASES and len(own) > 1:
            own = own[-1:]  # of a layer: the same for each row
        other = self.value(right, own)
        wide = one.dims if len(one.dims) >= len(other.dims) else other.dims
        for each in (one, other):
            if each.dims not in (wide, ()) and each.dims != wide[-1:]:
                raise UnfitError
        kept = one.kept & other.kept if one.dims and other.dims else one.kept | other.kept
        return _Value(form.format(a=one.inner, b=other.inner), wide, kept)

    def _product(self, left: ast.expr, right: ast.expr) -> _Value:
        turned = isinstance(right, ast.Attribute) and right.attr in ("T", "mT")
        right = right.value if isinstance(right, ast.Attribute) and turned else right
        if not isinstance(left, ast.Name) or not isinstance(right, ast.Name) or left.id == right.id:
            raise UnfitError
        if len(self.base) > 2:
            raise UnfitError
        names = (left.id, right.id)
        if not self.names.signature and (len({bool(_MATRIX.search(each)) for each in names}) > 1 or _is_vector(names)):
            raise UnfitError  # x @ A, p_vec @ w: a vector, likely
        a = self._named(left.id, ("i", "k"))
        b = self._named(right.id, ("j", "k") if turned else ("k", "j"))
        return _Value(f"sum[k] {a.text} * {b.text}", ("i", "j"))

    def _call(self, node: ast.Call, dims: tuple[str, ...] | None) -> _Value:
        called, owner = _called(node)
        args = [*([owner] if owner is not None else []), *node.args]
        options = {each.arg or "": each.value for each in node.keywords}
        if not args or "" in options or any(isinstance(each, ast.Starred) for each in args):
            raise UnfitError
        if called in ("layer_norm", "rms_norm"):
            return self._normalised(called, args, options)
        if called == "linear":
            return self._linear(args)
        if called == "clamp" and len(args) == 3 and not options:
            low, high = (self._bound(each) for each in args[1:])
            found = self.value(args[0], dims)
            return _Value(f"clamp({found.text}, {low}, {high})", found.dims, found.kept)
        if called == "gelu" and "approximate" in options:
            is_tanh = ast.unparse(options.pop("approximate")) == "'tanh'"
            called = "gelu_tanh" if is_tanh else "gelu"
        if called in ("max", "min") and len(args) == 2 and _integer(args[1]) is None:
            called = {"max": "larger", "min": "smaller"}[called]
        each = operations().get(_CALLS.get(called, called))
        if each is None or each.number:
            raise UnfitError
        if each.kind == "map" and len(args) == 1 and not options:
            found = self.value(args[0], dims)
            return _Value(each.value.format(v=found.inner), found.dims, found.kept)
        if each.kind == "two" and len(args) == 2 and not options:
            return self._both(args[0], args[1], each.value, dims)
        if each.name == "matmul" and len(args) == 2 and not options:
            return self._product(*args)
        if each.kind == "own" and len(args) == len(each.inputs) and not options and each.name in _PLAIN:
            return self._own(each.inputs, each.result, each.value, args)
        if each.kind in ("rows", "reduce"):
            if called in ("max", "min") and (len(args) > 1 or options):
                raise UnfitError  # torch gives places beside the values
            return self._along(each.name, args, options)
        raise UnfitError

    def _bound(self, node: ast.expr) -> str:
        """A limit of `clamp`: a number, or an array where a signature says so."""
        if isinstance(node, ast.Name) and not self.names.signature:
            raise UnfitError  # torch takes both, and nothing says which
        return self.value(node).text

    def _own(self, inputs: Sequence[str], result: str, value: str, args: Sequence[ast.expr]) -> _Value:
        read = []
        for each, arg in zip(inputs, args, strict=True):
            if not isinstance(arg, ast.Name):
                raise UnfitError
            dims = tuple(each.rstrip("]").partition("[")[2].split(", "))
            self._named(arg.id, dims)
            read.append(arg.id)
        index = result.rstrip("]").partition("[")[2]
        return _Value(value.format(*read), tuple(index.split(", ")) if index else ())

    def _along(self, name: str, args: Sequence[ast.expr], options: Mapping[str, ast.expr]) -> _Value:
        each = operations()[name]
        said = {key: value for key, value in options.items() if key not in (*_AXES, "keepdim", "keepdims")}
        axis = options.get("dim") or options.get("axis") or (args[1] if len(args) == 2 else None)
        if said or len(args) > 2:
            raise UnfitError
        found = self.value(args[0])
        if found.kept or not found.dims:
            raise UnfitError
        number = _integer(axis)
        if axis is not None and (number is None or not -len(found.dims) <= number < len(found.dims)):
            raise UnfitError
        if number is None and each.kind == "rows":
            raise UnfitError
        along = found.dims if number is None else (found.dims[number],)
        keeps = ast.unparse(options.get("keepdim") or options.get("keepdims") or ast.Constant(False)) == "True"
        if each.kind == "reduce":
            text = each.value.format(c=", ".join(along), v=found.inner)
            kept = tuple(dim for dim in found.dims if dim not in along)
            return _Value(text, found.dims, frozenset(along)) if keeps else _Value(text, kept)
        return self._rows(name, found, along[0], {})

    def _rows(self, name: str, found: _Value, c: str, more: Mapping[str, str]) -> _Value:
        each = operations()[name]
        row = [dim for dim in found.dims if dim != c]
        index = f"[{', '.join(row)}]" if row else ""
        known = {"c": c, "v": found.inner, "vj": re.sub(rf"\b{c}\b", "j", found.inner), **more}
        for stage in each.where:
            own, _, text = stage.partition(" = ")
            free = self.names.free(own)
            self.stages.append(f"{free}{index} = {text.format(**known)}")
            known[own] = f"{free}{index}"
        return _Value(each.value.format(**known), found.dims)

    def _normalised(self, called: str, args: Sequence[ast.expr], options: Mapping[str, ast.expr]) -> _Value:
        order = ["weight", "bias", "eps"] if called == "layer_norm" else ["weight", "eps"]
        given = dict(zip(order, args[2:], strict=False)) | dict(options)
        shape = args[1] if len(args) > 1 else options.get("normalized_shape")
        given.pop("normalized_shape", None)
        one = not isinstance(shape, ast.Tuple | ast.List) or len(shape.elts) == 1
        if shape is None or not one or given.keys() - {*order} or (called == "rms_norm" and "eps" not in given):
            raise UnfitError
        found = self.value(args[0])
        c = found.dims[-1] if found.dims else ""
        if not c or found.kept:
            raise UnfitError
        eps = self.value(given["eps"]).text if "eps" in given else "1e-5"
        made = self._rows(called, found, c, {"eps": eps})
        text = made.text
        for role, sign in (("weight", "*"), ("bias", "+")):
            node = given.get(role)
            if node is None or (isinstance(node, ast.Constant) and node.value is None):
                continue
            if not isinstance(node, ast.Name):
                raise UnfitError
            text = f"{text} {sign} {self._named(node.id, (c,)).text}"
        return _Value(text, made.dims)

    def _linear(self, args: Sequence[ast.expr]) -> _Value:
        if len(args) not in (2, 3) or not all(isinstance(each, ast.Name) for each in args):
            raise UnfitError
        x, w, *bias = (each.id for each in args if isinstance(each, ast.Name))
        text = f"sum[k] {self._named(x, ('i', 'k')).text} * {self._named(w, ('j', 'k')).text}"
        if bias:
            text = f"({text}) + {self._named(bias[0], ('j',)).text}"
        return _Value(text, ("i", "j"))


_PLAIN = frozenset(("dot", "outer", "matvec", "batched_matmul", "mse", "mae"))
"""Operations of their own that torch has with the same arguments."""

"""Which conditions the compiler turns into predicates, and what that does to the counts.

The machine code of a short `if` has no branch: every warp that comes to it issues the instructions, and the lanes in
which the condition is false are off. Nsight Compute counts such an instruction for a warp with no lane on too, as a
request that moves nothing: `if (tid == 0) out[b] = s[0];` in a block of eight warps loads 1/8 wavefront per request.

The limits below are what nvcc 13.0 -O3 does for sm_90 with bodies of one to twelve instructions under a bounds
check, a test of one lane, a uniform test and a test of data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warpwright.facts import ir

Key = tuple[str, int, int, str]

LIMIT = 20
"""The cost of a side up to which it is predicated."""
ACCESS = 2
OPERATION = 1
"""The cost of an access and of an operation: a product and a sum become one, and many are part of an address."""
FIRST_LOAD, FIRST_STORE = 2, 8
"""The cost of the first access of a side to an array in global memory, whose address has to be made."""
NEVER = 1000
"""The cost of what keeps a branch: a loop, a call, an atomic, a barrier, a division, a way out."""


@dataclass(slots=True)
class Side:
    """One side of a condition, over all warps that came to it. Weights are requests of the launch."""

    executed: float = 0.0
    skipped: float = 0.0  # came with lanes on, and in none of them was the condition this side's
    cost: int = 0
    nests: bool = False  # holds a condition of its own over accesses: of nested ones the innermost is predicated
    requests: dict[Key, float] = field(default_factory=lambda: {})


@dataclass(slots=True)
class Sides:
    """Both sides of one condition; `last` where the kernel ends behind it."""

    last: bool
    then: Side = field(default_factory=Side)
    otherwise: Side | None = None

    @property
    def all(self) -> list[Side]:
        return [self.then] if self.otherwise is None else [self.then, self.otherwise]

    @property
    def predicated(self) -> bool:
        """Whether the compiler makes predicates of this condition.

        At the end of a kernel the lanes that fail a test leave it instead; of sides that were not seen to run
        nothing is known.
        """
        sides = self.all
        if (self.last and len(sides) == 1) or not any(side.executed for side in sides):
            return False
        return not any(side.cost > LIMIT or side.nests for side in sides)


def mark_last(body: ir.Stmt) -> None:
    """Mark the conditions and calls of a function's body behind which nothing of it follows."""
    match body:
        case ir.Evaluate():
            body.last = True
        case ir.Block(body=statements):
            if statements:
                mark_last(statements[-1])
        case ir.If(then=then, otherwise=otherwise):
            body.last = True
            mark_last(then)
            if otherwise is not None:
                mark_last(otherwise)
        case _:
            return


def is_constant(node: ir.Expr) -> bool:
    """Whether a condition is known to the compiler: made of literals, macros and template arguments alone."""
    match node:
        case ir.Const():
            return True
        case ir.Unary(operand=inner) | ir.Cast(operand=inner):
            return is_constant(inner)
        case ir.Binary(left=left, right=right) | ir.Logical(left=left, right=right):
            return is_constant(left) and is_constant(right)
        case _:
            return False


def is_access(node: ir.Expr) -> bool:
    """Whether an arm of `?:` is a load, perhaps converted or computed with."""
    match node:
        case ir.Index() | ir.Deref() | ir.Member(arrow=True):
            return True
        case ir.Unary(operand=inner) | ir.Cast(operand=inner) | ir.Member(base=inner):
            return is_access(inner)
        case ir.Binary(left=left, right=right):
            return is_access(left) or is_access(right)
        case _:
            return False

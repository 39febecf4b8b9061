"""A thread reads memory that nothing has written.

## Why is this bad?

Shared memory starts with whatever the block before left there, and memory from `cudaMalloc` with what was freed. A
value of it is often zero in a test and something else in use.

## Example

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Use instead

```cuda
__global__ void smooth(float *out, const float *in) {
  __shared__ float tile[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  tile[threadIdx.x + 1] = in[i];
  if (threadIdx.x < 2)
    tile[129 * threadIdx.x] = 0.0f;
  __syncthreads();
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1] + tile[threadIdx.x + 2];
}

void run(const float *host) {
  float *out, *in;
  cudaMalloc(&out, 8192 * sizeof(float));
  cudaMalloc(&in, 8192 * sizeof(float));
  cudaMemcpy(in, host, 8192 * sizeof(float), cudaMemcpyHostToDevice);
  smooth<<<64, 128>>>(out, in);
}
```

## Limits

- From the text, of shared memory only reads are reported that no thread of the block writes, or the same one later: of
  arrays that are only subscripted, at a launch whose block the text gives, where all of its accesses follow from it.
- From the text, of a thread's own array: elements of numbers that it reads before it sets any of that place, of arrays
  of the kernel that are only subscripted.
- From the text, of a thread's own number: one that is declared without a value, set in one `if` without `else` that
  some threads of a warp do not enter, and read behind it by all, other than as an argument.
- From the text, of global memory: what a launch reads before the threads meet, and no other thread writes, of memory
  that the host function allocates and hands to this launch first; and what the kernel only ever adds to by atomics.
- The others are found by a run: `warpwright check --profile`, or a profile in the editor. A run shows one launch on
  made-up values; where threads may miss a barrier, what is read after it is not judged.
- Of global memory, arrays that the kernel only writes before the launch's own stores. There is no fix to press.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from warpwright.facts.model import Basis, Divergence, Kernel, Space
from warpwright.facts.profile import FaultKind
from warpwright.facts.types import builtin_type
from warpwright.rules.base import Finding, Severity
from warpwright.rules.faults import of_runs
from warpwright.rules.words import because, code, launch_evidence, launch_of, launch_related
from warpwright.syntax.nodes import ancestors, declared_name, descendants

severity = Severity.ERROR

_PARTED = (Divergence.PARTIAL, Divergence.EVERY_WARP)
_JUMPS = ("return_statement", "break_statement", "continue_statement", "goto_statement")
_CHOOSES = ("conditional_expression", "lambda_expression", "argument_list")


def check(kernel: Kernel) -> Iterator[Finding]:
    read = [*_read(kernel), *_unset(kernel)]
    yield from read
    parted = any(fault.kind == FaultKind.BARRIER_NOT_REACHED and len(fault.threads) > 1 for fault in kernel.faults)
    missed = kernel.missed_waits or kernel.doubtful_waits or any(barrier.divergent for barrier in kernel.barriers)
    if not parted and not missed:
        yield from of_runs(kernel, FaultKind.UNINITIALISED_READ, told=read)


def _read(kernel: Kernel) -> Iterator[Finding]:
    for read in kernel.unwritten:
        launch = launch_of(kernel, read.launch)
        if launch is None:
            continue
        byte, thread = f"byte {read.address:,}", f"thread {read.thread}"
        what = f"{thread} reads {byte}, never written"
        if read.space is Space.GLOBAL:
            what = f"{thread} reads {byte}, never written by host or kernel"
        yield Finding(
            span=read.span,
            message=f"Uninitialised read of `{read.array}`: {what}{because(launch, Basis.EXACT)}",
            evidence={"array": read.array, "byte": read.address, "thread": read.thread, **launch_evidence(launch)},
            related=launch_related(launch),
        )


def _unset(kernel: Kernel) -> Iterator[Finding]:
    """Numbers of a thread that are read where part of a warp has not set them."""
    source, body = kernel.source, kernel.node.child_by_field_name("body") if kernel.node is not None else None
    parted = {branch.span.key: branch for branch in kernel.branches if branch.divergence in _PARTED}
    if body is None or not parted:
        return
    for declaration in descendants(body, "declaration"):
        typed, block = declaration.child_by_field_name("type"), declaration.parent
        if block is None or block.type != "compound_statement" or typed is None:
            continue
        if builtin_type(source.node_code(typed)) is None or "__shared__" in source.node_code(declaration):
            continue
        for declarator in declaration.children_by_field_name("declarator"):
            name = declared_name(source, declarator)
            uses = [n for n in descendants(body, "identifier") if source.node_code(n) == name]
            if declarator.type != "identifier" or len(uses) < 3 or uses[0] != declarator:
                continue
            branch = _sets_in_branch(uses[1], block)
            clause = branch.child_by_field_name("condition") if branch is not None else None
            test = clause.child_by_field_name("value") if clause is not None else None
            if branch is None or test is None or source.span(test).key not in parted:
                continue
            behind = next((n for n in uses[2:] if n.start_byte >= branch.end_byte), None)
            if behind is None or not _is_read_by_all(behind, branch, block):
                continue
            launch = launch_of(kernel, parted[source.span(test).key].launch)
            yield Finding(
                span=source.span(behind),
                message=f"Uninitialised read of `{name}`: set only where {code(source.node_code(test))} holds"
                f"{because(launch, Basis.EXACT)}",
                evidence={"array": name, "condition": source.node_code(test), **launch_evidence(launch)},
                related=launch_related(launch),
            )


def _sets_in_branch(use: Node, block: Node) -> Node | None:
    """The `if` of a block, without an `else`, that does nothing but run straight and set the variable."""
    assignment = use.parent
    statement = assignment.parent if assignment is not None else None
    if assignment is None or statement is None or statement.type != "expression_statement":
        return None
    if assignment.type != "assignment_expression" or assignment.child_by_field_name("left") != use:
        return None
    operator, around = assignment.child_by_field_name("operator"), statement.parent
    if around is not None and around.type == "compound_statement":
        around = around.parent
    if operator is None or operator.type != "=" or around is None or around.type != "if_statement":
        return None
    plain = around.child_by_field_name("alternative") is None and around.parent == block
    return around if plain and not any(True for _ in descendants(around, *_JUMPS)) else None


def _is_read_by_all(use: Node, branch: Node, block: Node) -> bool:
    """Whether a use behind the branch is a read that every thread makes which comes to the branch."""
    between = [n for n in block.named_children if branch.end_byte <= n.start_byte < use.start_byte]
    if not between or between[-1].type not in ("expression_statement", "declaration"):
        return False
    if any(each.type in _JUMPS or any(True for _ in descendants(each, *_JUMPS)) for each in between):
        return False
    for around in ancestors(use):
        if around == between[-1]:
            break
        operator = around.child_by_field_name("operator")
        if around.type in _CHOOSES or (operator is not None and operator.type in ("&&", "||")):
            return False
    parent = use.parent
    is_set = parent is not None and parent.type == "assignment_expression" and parent.child_by_field_name("left") == use
    taken = parent is not None and parent.type == "pointer_expression"
    assigned = parent.child_by_field_name("operator") if is_set and parent is not None else None
    return not taken and not (is_set and assigned is not None and assigned.type == "=")

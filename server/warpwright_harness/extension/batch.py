"""A batch: several calls that a side makes in one go, on inputs of the judge's, and what is seen of them afterwards.

All calls of the checks and of the timing are such batches, timed alike, so that nothing tells a side which is which.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright_harness.buffers import ArraySpec, bits
from warpwright_harness.extension.arena import ArenaError, aligned, new_memory
from warpwright_harness.extension.side import Side, SideError

GUARD_BYTES = 4096
ONCE_SECONDS = 60.0
STEPS = 64
"""Places, 256 bytes apart, at which an input may lie in its buffer."""
SPIN_CYCLES, SPIN_SPREAD = 400_000, 100_000
"""A kernel that spins so long (about 0.2 ms) goes ahead of each call, so that the GPU never waits for Python, and what
does not wait for the stream reads its inputs before they are there. The side times it too: how long it has to take is
known to the judge."""
POISONS = (0x7FFDA5A5, 0x7FFB5A5B, 0x7FFD5AA5, 0x7FFBA55A)
"""Around inputs, and in memory that outputs may get. All are NaN as float and as double."""
Values = Mapping[str, torch.Tensor]
_SCALARS = (
    "float32", "float64", "float16", "bfloat16", "bool", "int8", "uint8", "int16", "int32", "int64",
)  # fmt: skip


@dataclass(frozen=True)
class Parameters:
    """The arguments of every call at one shape: tensors by name, and numbers as they are."""

    described: Sequence[Mapping[str, Any]]

    @property
    def tensors(self) -> list[ArraySpec]:
        return [
            ArraySpec(a["name"], a["scalar"], 1, "in-out", _count(a["sizes"]), a["limit"])
            for a in self.described
            if a["kind"] == "tensor"
        ]

    @property
    def bytes(self) -> int:
        return sum(spec.scalars * int(spec.dtype.itemsize) for spec in self.tensors)


@dataclass(frozen=True)
class Output:
    """A tensor that a call returned: `data` are its elements in order, in the judge's memory."""

    scalar: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    device: str
    shares: tuple[str, ...]
    data: torch.Tensor


@dataclass(frozen=True)
class Called:
    """One call: what it returned, and what it left of its inputs. `changed` are the inputs that it wrote to;
    `outside` are those around which it wrote."""

    outputs: tuple[Output, ...]
    inputs: Values
    changed: frozenset[str]
    outside: frozenset[str]
    microseconds: float


@dataclass(frozen=True)
class Batch:
    """`wall_us` is what the whole of it took by the judge's clock, `cycle_us` what a cycle of a spinning kernel took by
    the side's; `replaced` are functions of torch and Python that the side's process no longer has as they were."""

    calls: tuple[Called, ...]
    wall_us: float
    cycle_us: float
    replaced: frozenset[str]


def run_batch(
    side: Side, parameters: Parameters, values: Sequence[Values], order: random.Random, *, flush: bool, device: str
) -> Batch:
    """Make a call for each of `values`, in their order. Raises SideError and ArenaError."""
    needs = 0
    while True:
        question, results = _laid_out(parameters, values, order, flush=flush)
        expected = results + len(values) * 3 * (parameters.bytes + (64 << 10)) + (1 << 20)
        size = max(needs, expected)
        if side.memory is None or side.memory.raw.numel() < size:
            side.memory = None
            side.share(new_memory(size, device))
        memory = side.memory
        assert memory is not None
        for call, tensors in zip(question["calls"], values, strict=True):
            for argument in call["arguments"]:
                if argument["kind"] == "tensor":
                    memory.at(argument["from"], argument["bytes"]).copy_(_raw(tensors[argument["name"]]))
        memory.raw[results:].fill_(order.randrange(1, 255))
        _wait(device)
        started = time.perf_counter()
        answer = side.ask(question)
        wall = (time.perf_counter() - started) * 1e6
        if "needs" not in answer:
            break
        if needs:
            raise SideError("its results have other sizes from call to call")
        needs = 2 * int(answer["needs"])
    try:
        return _read(side, question, values, answer, wall)
    except (KeyError, TypeError, ValueError, AttributeError, ArenaError) as error:
        raise SideError(f"its process answered what cannot be ({type(error).__name__}: {error})") from None


def changed_since(side: Side, batch: Batch) -> bool:
    """Whether an output of the last batch holds other bits now than right after its call. Raises SideError."""
    memory = side.memory
    assert memory is not None
    first = [[output.data.clone() for output in call.outputs] for call in batch.calls]
    size = sum(aligned(d.numel() * d.element_size()) for call in first for d in call)
    results = memory.raw.numel() - aligned(size) - 256
    results -= results % 256
    answer = side.ask({"ask": "again", "results": results})
    for places, outputs in zip(answer["calls"], first, strict=True):
        for place, data in zip(places, outputs, strict=True):
            now = memory.at(int(place), data.numel() * data.element_size()).view(data.dtype)
            if not torch.equal(bits(now), bits(data)):
                return True
    return False


def _laid_out(
    parameters: Parameters, values: Sequence[Values], order: random.Random, *, flush: bool, guarded: bool = True
) -> tuple[dict[str, Any], int]:
    """The question, and where the results begin: inputs first, each of them in a buffer of its own at a drawn place.

    Without guards an input lies alone in an allocation of its size, for a tool that watches allocations.
    """
    place = 0
    poison = order.choice(POISONS)
    calls = []
    for tensors in values:
        arguments: list[dict[str, Any]] = []
        for argument in parameters.described:
            if argument["kind"] != "tensor":
                arguments.append(dict(argument))
                continue
            tensor = tensors[argument["name"]]
            size = tensor.numel() * tensor.element_size()
            start = GUARD_BYTES + 256 * order.randrange(STEPS) if guarded else 0
            room = GUARD_BYTES + 256 * STEPS + aligned(size) + GUARD_BYTES if guarded else -(-size // 4) * 4
            arguments.append({
                "kind": "tensor",
                "name": argument["name"],
                "keyword": argument["keyword"],
                "dtype": argument["scalar"],
                "sizes": list(argument["sizes"]),
                "from": place,
                "bytes": size,
                "start": start,
                "room": room,
            })  # fmt: skip
            place += aligned(size)
        calls.append({"arguments": arguments, "poison": poison})
    for call, spin in zip(calls, spins_of(len(calls), order), strict=True):
        call["spin"] = spin
    return {"ask": "batch", "calls": calls, "flush": flush, "results": place}, place


def spins_of(calls: int, order: random.Random) -> list[int]:
    """Cycles for each of so many calls, drawn; of as many calls they are as many in all.

    >>> spins = spins_of(5, random.Random(1))
    >>> sum(spins) == 5 * SPIN_CYCLES, len(set(spins)) > 2, min(spins) > SPIN_CYCLES - SPIN_SPREAD
    (True, True, True)
    """
    drawn = [order.randrange(1, SPIN_SPREAD) for _ in range(calls // 2)]
    spins = [SPIN_CYCLES + sign * each for each in drawn for sign in (1, -1)] + [SPIN_CYCLES] * (calls % 2)
    order.shuffle(spins)
    return spins


def _read(
    side: Side, question: Mapping[str, Any], values: Sequence[Values], answer: Mapping[str, Any], wall: float
) -> Batch:
    memory = side.memory
    assert memory is not None
    calls = []
    for call, tensors, seen, took in zip(
        question["calls"], values, answer["calls"], answer["microseconds"], strict=True
    ):
        outputs = tuple(_output(memory.at(int(o["at"]), int(o["bytes"])), o) for o in seen["outputs"])
        inputs: dict[str, torch.Tensor] = {}
        changed, outside = set(), set()
        for argument in call["arguments"]:
            if argument["kind"] != "tensor":
                continue
            name, start, size = argument["name"], argument["start"], argument["bytes"]
            raw = memory.at(int(seen["inputs"][name]), argument["room"])
            inputs[name] = raw[start : start + size].view(tensors[name].dtype)
            if not torch.equal(raw[start : start + size], _raw(tensors[name])):
                changed.add(name)
            if not _is_poison(raw, 0, start, call["poison"]) or not _is_poison(raw, start + size, None, call["poison"]):
                outside.add(name)
        calls.append(Called(outputs, inputs, frozenset(changed), frozenset(outside), float(took)))
    cycles = sum(call["spin"] for call in question["calls"])
    return Batch(tuple(calls), wall, sum(map(float, answer["spins"])) / cycles, frozenset(map(str, answer["replaced"])))


def _is_poison(raw: torch.Tensor, start: int, end: int | None, poison: int) -> bool:
    """Whether the bytes [start, end) are the poison's, which is repeated every four bytes from the first of `raw`."""
    whole = -(-start // 4) * 4
    pattern = poison.to_bytes(4, "little")
    if bytes(raw[start:whole].tolist()) != pattern[start % 4 :][: whole - start]:
        return False
    return bool((raw[whole:end].view(torch.int32) == poison).all())


def _output(raw: torch.Tensor, described: Mapping[str, Any]) -> Output:
    sizes = tuple(int(size) for size in described["sizes"])
    scalar = str(described["dtype"])
    if scalar not in _SCALARS:
        raise SideError(f"its result has the type {scalar}, which is not compared")
    data = raw.view(getattr(torch, scalar))
    if data.numel() != _count(sizes):
        raise ValueError(f"{data.numel()} elements of {_count(sizes)}")
    strides = tuple(int(step) for step in described["strides"])
    shares = tuple(map(str, described["shares"]))
    return Output(scalar, sizes, strides, str(described["device"]), shares, data)


def _raw(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.reshape(-1).to(torch.uint8)


def _count(sizes: Sequence[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def call_once(
    side: Side, parameters: Parameters, values: Values, order: random.Random, *, ask: str, place: str, guarded: bool
) -> Mapping[str, Any]:
    """One call of which no results are looked at; the answer to `ask`. Raises SideError and ArenaError."""
    question, results = _laid_out(parameters, [values], order, flush=False, guarded=guarded)
    if side.memory is None or side.memory.raw.numel() < results:
        side.memory = None
        side.share(new_memory(results + 256, place))
    assert side.memory is not None
    for argument in question["calls"][0]["arguments"]:
        if argument["kind"] == "tensor":
            side.memory.at(argument["from"], argument["bytes"]).copy_(_raw(values[argument["name"]]))
    _wait(place)
    answer: Mapping[str, Any] = side.ask({**question, "ask": ask}, ONCE_SECONDS)
    return answer

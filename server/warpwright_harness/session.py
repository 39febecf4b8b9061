"""One request as objects: the two kernels, the cases, and how to launch either side on given values."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from warpwright_harness.buffers import POISONS, ArraySpec, Buffer, bits
from warpwright_harness.device import Function, Module, pointer_argument, scalar_argument, struct_argument, synchronize
from warpwright_harness.events import Emit

DEVICE = "cuda"
Values = Mapping[str, torch.Tensor]


class MisbehaviourError(Exception):
    """A kernel did what it must not: wrote outside its arrays or into an input. The message says what and where."""

    def __init__(self, side: str, text: str) -> None:
        super().__init__(text)
        self.side = side


@dataclass(frozen=True)
class Outputs:
    """What one launch left: the output arrays, and where the poison still stands."""

    values: Mapping[str, torch.Tensor]
    poisoned: Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One shape. `scalars` are arguments by name; `launches` hold (grid, block, dynamic shared bytes) by side."""

    index: int
    shape: Mapping[str, int]
    arrays: tuple[ArraySpec, ...]
    scalars: Mapping[str, float]
    launches: Mapping[str, tuple[list[int], list[int], int]]
    distributions: tuple[str, ...]
    check: bool
    time: bool

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        return tuple(s for s in self.arrays if s.is_input)

    @property
    def outputs(self) -> tuple[ArraySpec, ...]:
        return tuple(s for s in self.arrays if s.is_output)


class Session:
    """The kernels of one request, loaded; a context manager that unloads them."""

    def __init__(self, request: Mapping[str, Any], emit: Emit) -> None:
        self.request = request
        self.emit = emit
        self.seed = int(request["seed"])
        self._stack = ExitStack()
        self._functions: dict[str, Function] = {}

    def __enter__(self) -> Session:
        torch.zeros(1, device=DEVICE)  # makes torch's context current, in which the driver then loads
        for side in ("candidate", "baseline"):
            described = self.request[side]
            module = self._stack.enter_context(Module(Path(described["cubin"]).read_bytes()))
            self._functions[side] = module.function(described["function"])
        return self

    def __exit__(self, *exception: object) -> None:
        self._functions.clear()
        self._stack.close()
        if exception[0] is None:
            torch.cuda.empty_cache()

    def cases(self) -> tuple[Case, ...]:
        return tuple(self._case(i, c) for i, c in enumerate(self.request["cases"]))

    def _case(self, index: int, described: Mapping[str, Any]) -> Case:
        arrays = tuple(
            ArraySpec(
                a["name"],
                a["scalar"],
                int(a["components"]),
                a["role"],
                int(described["counts"][a["name"]]),
                described["limits"].get(a["name"]),
            )
            for argument in self.request["arguments"]
            for a in (argument["members"] if argument["kind"] == "struct" else [argument])
            if a["kind"] == "array"
        )
        launches = {
            side: (described[side]["grid"], described[side]["block"], int(described[side]["shared"]))
            for side in ("baseline", "candidate")
        }
        return Case(
            index,
            described["shape"],
            arrays,
            described["scalars"],
            launches,
            tuple(described["distributions"]),
            bool(described["check"]),
            bool(described["time"]),
        )

    def begin(self, phase: str, case: Case, side: str) -> None:
        """Tell the parent what runs next, so that a hang or a crash has a culprit."""
        self.emit({"event": "begin", "phase": phase, "case": case.index, "side": side})

    def buffers(self, case: Case) -> dict[str, Buffer]:
        return {spec.name: Buffer(spec, DEVICE) for spec in case.arrays}

    def launch(self, side: str, case: Case, buffers: Mapping[str, Buffer]) -> None:
        """Start one side on the current stream. Raises LaunchRefusedError or CudaFaultError."""

        def value(argument: Mapping[str, Any]) -> Any:
            if argument["kind"] == "struct":
                return struct_argument(argument["bytes"], [(m["offset"], value(m)) for m in argument["members"]])
            if argument["kind"] == "array":
                return pointer_argument(buffers[argument["name"]].address)
            return scalar_argument(argument["scalar"], case.scalars[argument["name"]])

        arguments = [value(argument) for argument in self.request["arguments"]]
        grid, block, shared = case.launches[side]
        function = self._functions[side]
        stream = torch.cuda.current_stream().cuda_stream
        function.module.launch(function, grid, block, shared, stream, arguments)

    def run(self, side: str, case: Case, buffers: Mapping[str, Buffer], values: Values, poison: int) -> Outputs:
        """Fill, launch, wait, and look for damage. Raises MisbehaviourError, LaunchRefusedError or CudaFaultError."""
        for spec in case.arrays:
            buffers[spec.name].fill(poison, values.get(spec.name))
        synchronize()
        self.begin("check", case, side)
        self.launch(side, case, buffers)
        synchronize()
        for spec in case.arrays:
            buffer = buffers[spec.name]
            if not buffer.guards_intact(poison):
                raise MisbehaviourError(side, f"it writes outside {spec.name}, whose extent is {spec.count:,}")
            if not spec.is_output and not bool((bits(buffer.data) == bits(values[spec.name])).all()):
                raise MisbehaviourError(side, f"it changes its input {spec.name}")
        return Outputs(
            {s.name: buffers[s.name].data.clone() for s in case.outputs},
            {s.name: buffers[s.name].poisoned(poison) for s in case.outputs},
        )

    def run_twice(self, side: str, case: Case, values: Values) -> tuple[Outputs, Outputs]:
        """Two runs in fresh memory that holds a different poison in each: what depends on it shows."""
        buffers = self.buffers(case)
        first, second = (self.run(side, case, buffers, values, poison) for poison in POISONS)
        return first, second


def load_reference(path: str) -> Callable[..., Mapping[str, torch.Tensor]]:
    """The `reference` function of a user's module. Raises whatever the module raises."""
    spec = importlib.util.spec_from_file_location("warpwright_user_reference", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Mapping[str, torch.Tensor]] = module.reference
    return function


def call_reference(
    reference: Callable[..., Mapping[str, torch.Tensor]], case: Case, values: Values, wide: bool
) -> dict[str, torch.Tensor]:
    """The reference's outputs, flat; `wide` computes in float64. Inputs and scalars are passed by name."""
    inputs = {s.name: values[s.name].double() if wide and s.is_float else values[s.name].clone() for s in case.inputs}
    outputs = reference(**inputs, **case.scalars)
    return {name: tensor.reshape(-1) for name, tensor in outputs.items()}

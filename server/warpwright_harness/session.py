"""One request as objects: the two kernels, the cases, and how to launch either side on given values."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch

from warpwright_harness import variables
from warpwright_harness.arguments import kernel_arguments, moved_addresses, passed_addresses
from warpwright_harness.buffers import ArraySpec, Buffer, Inputs, bits, fingerprint, guards_broken, poisons_of
from warpwright_harness.device import (
    Function,
    Launch,
    Launches,
    LaunchRefusedError,
    Module,
    synchronize,
)
from warpwright_harness.events import Emit
from warpwright_harness.prints import captured
from warpwright_harness.shared_memory import SharedMemory
from warpwright_harness.variables import Variable

DEVICE = "cuda"
MOST_STATE_BYTES = 256 << 20
"""Of a module's variables whose first contents are kept, to be put back."""
Values = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class Damage:
    """What a launch did that it must not, in words; `kinds` are those of fault that it may be, of an array where it is
    known of which."""

    text: str
    kinds: tuple[str, ...] = ()
    array: str = ""


class MisbehaviourError(Exception):
    """A kernel did what it must not: wrote outside its arrays or into an input. The message says what and where;
    `fault` says it for an event."""

    def __init__(self, side: str, damage: Damage) -> None:
        super().__init__(damage.text)
        self.side = side
        self.fault = {"said": damage.text, "kinds": list(damage.kinds), "array": damage.array}


@dataclass(frozen=True)
class Outputs:
    """What one launch left: the output arrays and variables, and where the poison still stands; the lines that it
    printed."""

    values: Mapping[str, torch.Tensor]
    poisoned: Mapping[str, torch.Tensor]
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One shape. `scalars` are arguments by name; `launches` hold (grid, block, dynamic shared bytes) by side, and
    `repeats` how often each kernel of a side is launched (see `moved_addresses`), nothing where all are launched once;
    `is_more` says that the case is tried beside others, and shows nothing by itself; `variables` are those of the file
    that host code sets, `results` those of which both sides are compared; `offsets`
    are for `passed_addresses`."""

    index: int
    shape: Mapping[str, int]
    arrays: tuple[ArraySpec, ...]
    scalars: Mapping[str, float]
    launches: Mapping[str, tuple[list[int], list[int], int]]
    repeats: Mapping[str, list[Any]]
    distributions: tuple[str, ...]
    check: bool
    time: bool
    is_more: bool = False
    variables: tuple[ArraySpec, ...] = ()
    results: tuple[ArraySpec, ...] = ()
    offsets: Mapping[str, int] = field(default_factory=dict)

    @property
    def compared(self) -> tuple[ArraySpec, ...]:
        """What a launch leaves, in arrays and in variables of the file."""
        return (*self.outputs, *self.results)

    @property
    def inputs(self) -> tuple[ArraySpec, ...]:
        return (*(s for s in self.arrays if s.is_input), *self.variables)

    @property
    def outputs(self) -> tuple[ArraySpec, ...]:
        return tuple(s for s in self.arrays if s.is_output)


class Session:
    """The kernels of one request, loaded in this order; a context manager that unloads them."""

    def __init__(
        self, request: Mapping[str, Any], emit: Emit, order: tuple[str, ...] = ("candidate", "baseline")
    ) -> None:
        self.request = request
        self.emit = emit
        self.order = order
        self.seed = int(request["seed"])
        self.poisons = poisons_of(self.seed)
        self._stack = ExitStack()
        self._functions: dict[str, tuple[tuple[Function, tuple[str, ...]], ...]] = {}
        self._modules: dict[str, Module] = {}
        self._variables: dict[str, dict[str, Variable]] = {}
        self._begun: dict[str, dict[str, bytes]] = {}

    def __enter__(self) -> Session:
        torch.zeros(1, device=DEVICE)  # makes torch's context current, in which the driver then loads
        self._shared_memory = self._stack.enter_context(SharedMemory())
        for side in self.order:
            described = self.request[side]
            image = Path(described["cubin"]).read_bytes()
            if hashlib.sha256(image).hexdigest() != described["sha256"]:
                raise LaunchRefusedError(f"the {side}'s cubin is not the one that was compiled")
            module = self._stack.enter_context(Module(image))
            self._modules[side] = module
            self._functions[side] = tuple(
                (module.function(launch["function"]), tuple(launch["arguments"])) for launch in described["launches"]
            )
            found = [v for v in variables.variables_in(image) if variables.is_known(module, v)]
            self._variables[side] = {v.name: v for v in found}
            writable = [v for v in self._variables[side].values() if not v.is_constant]
            if sum(v.size for v in writable) <= MOST_STATE_BYTES:
                self._begun[side] = {v.name: variables.read(module, v) for v in writable}
        return self

    def __exit__(self, *exception: object) -> None:
        self._functions.clear()
        self._modules.clear()
        self._stack.close()
        if exception[0] is None:
            torch.cuda.empty_cache()

    def cases(self) -> tuple[Case, ...]:
        return tuple(self._case(i, c) for i, c in enumerate(self.request["cases"]))

    def _case(self, index: int, described: Mapping[str, Any]) -> Case:
        def spec(array: Mapping[str, Any]) -> ArraySpec:
            name = array["name"]
            count, limit = int(described["counts"][name]), described["limits"].get(name)
            return ArraySpec(
                name,
                array["scalar"],
                int(array["components"]),
                array["role"],
                count,
                limit,
                tuple(self.request["thresholds"]),
                tuple(self.request["scales"]),
                name in self.request["guarded"],
            )

        arrays = tuple(
            spec(a)
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
            {side: described[side]["repeats"] for side in launches},
            tuple(described["distributions"]),
            bool(described["check"]),
            bool(described["time"]),
            bool(described.get("more", False)),
            tuple(map(spec, self.request["variables"])),
            tuple(map(spec, self.request.get("results", ()))),
            described["offsets"],
        )

    @property
    def floating_scalars(self) -> tuple[str, ...]:
        """The names of the floating-point numbers that the kernels are passed."""
        return tuple(
            a["name"]
            for argument in self.request["arguments"]
            for a in (argument["members"] if argument["kind"] == "struct" else [argument])
            if a["kind"] == "scalar" and "float" in a["scalar"]
        )

    def begin(self, phase: str, case: Case, side: str) -> None:
        """Tell the parent what runs next, so that a hang or a crash has a culprit."""
        self.emit({"event": "begin", "phase": phase, "case": case.index, "side": side})

    def buffers(self, case: Case) -> dict[str, Buffer]:
        return {spec.name: Buffer(spec, DEVICE) for spec in case.arrays}

    def launch(self, side: str, case: Case, buffers: Mapping[str, Buffer]) -> None:
        """Start one side on the current stream. Raises LaunchRefusedError or CudaFaultError."""
        self.prepared(side, case, buffers).start(torch.cuda.current_stream().cuda_stream)

    def prepared(self, side: str, case: Case, buffers: Mapping[str, Buffer]) -> Launch | Launches:
        """One side on these buffers, to be started many times. Raises LaunchRefusedError."""
        starts = {name: buffer.address for name, buffer in buffers.items()}
        addresses = passed_addresses(self.request["arguments"], starts, case.offsets)
        grid, block, shared = case.launches[side]
        described = {argument["name"]: argument for argument in self.request["arguments"]}
        launches = []
        for (function, names), repeat in zip_longest(self._functions[side], case.repeats[side]):
            for moved in moved_addresses(addresses, names, repeat):
                arguments = kernel_arguments([described[name] for name in names], moved, case.scalars)
                launches.append(function.module.prepare(function, grid, block, shared, arguments))
        return launches[0] if len(launches) == 1 else Launches(tuple(launches))

    def run(
        self,
        side: str,
        case: Case,
        buffers: Mapping[str, Buffer],
        values: Values,
        poison: int,
        *,
        goes_on: bool = False,
    ) -> Outputs:
        """Fill, launch, wait, and look for damage. One that `goes_on` finds in the file's variables what the launch
        before it left there. Raises MisbehaviourError, LaunchRefusedError or CudaFaultError."""
        sealed = values if isinstance(values, Inputs) else Inputs(values)
        for spec in case.arrays:
            buffers[spec.name].fill(poison, sealed.get(spec.name))
        if not goes_on:
            self._begin_results(side, case, poison)
            self.set_variables(side, case, sealed)
        synchronize()
        self.begin("check", case, side)
        self.poison_shared_memory(poison)
        with captured(bool(self.request.get("prints"))) as printed:
            self.launch(side, case, buffers)
            synchronize()
        if damage := _damage(case, buffers, sealed, poison):
            raise MisbehaviourError(side, damage)
        left = {spec.name: self._result(side, spec, poison) for spec in case.results}
        return Outputs(
            {
                **{s.name: buffers[s.name].data.clone() for s in case.outputs},
                **{n: data for n, (data, _) in left.items()},
            },
            {
                **{s.name: buffers[s.name].poisoned(poison) for s in case.outputs},
                **{name: mask for name, (_, mask) in left.items()},
            },
            tuple(printed),
        )

    def _begin_results(self, side: str, case: Case, poison: int) -> None:
        """Put into the variables that are compared what they hold when the program starts, or the poison where a kernel
        only writes them."""
        for spec in case.results:
            name = variables.variable_named(spec.name, self._variables[side])
            if name is not None:
                begun = self._begun.get(side, {}).get(name)
                content = _poison_bytes(spec, poison) if not spec.is_input else begun
                if content is not None:
                    variables.write(self._modules[side], self._variables[side][name], content)

    def _result(self, side: str, spec: ArraySpec, poison: int) -> tuple[torch.Tensor, torch.Tensor]:
        """What one of these variables holds, and where the poison still stands; one that the compiler left out of a
        module holds what it began with."""
        name = variables.variable_named(spec.name, self._variables[side])
        filled = _poison_bytes(spec, poison)
        if name is not None:
            content = variables.read(self._modules[side], self._variables[side][name])
        elif spec.is_input:
            content = self._first_content(spec)
        else:
            content = filled
        held, reference = (
            torch.frombuffer(bytearray(each.ljust(len(filled), b"\0")[: len(filled)]), dtype=spec.dtype).to(DEVICE)
            for each in (content, filled)
        )
        return held, bits(held) == bits(reference)

    def _first_content(self, spec: ArraySpec) -> bytes:
        for side, known in self._variables.items():
            name = variables.variable_named(spec.name, known)
            if name is not None:
                return self._begun.get(side, {}).get(name, b"")
        return b""

    def begin_again(self, side: str) -> bool:
        """Put back what all of one side's variables held when they were loaded; False where that is not known."""
        if side not in self._begun:
            return False
        self.set_state(side, self._begun[side])
        return True

    def poison_shared_memory(self, word: int) -> None:
        """Have the next launch find `word` wherever it reads shared memory that it has not written."""
        self._shared_memory.poison(word)

    def set_variables(self, side: str, case: Case, values: Values) -> None:
        """Put the values of the file's variables into one side's module, as host code does. Raises
        LaunchRefusedError."""
        for spec in case.variables:
            name = variables.variable_named(spec.name, self._variables[side])
            if name is not None:  # a compiler leaves out what a kernel does not use
                content = bits(values[spec.name]).cpu().numpy().tobytes()
                variables.write(self._modules[side], self._variables[side][name], content)

    def state(self, side: str) -> dict[str, bytes]:
        """What one side's `__device__` variables hold now, but those that host code sets. Raises LaunchRefusedError."""
        module, known = self._modules[side], self._variables[side]
        given = {variables.variable_named(v["name"], known) for v in self.request["variables"]}
        return {
            name: variables.read(module, variable)
            for name, variable in known.items()
            if not variable.is_constant and name not in given
        }

    def set_state(self, side: str, state: Mapping[str, bytes]) -> None:
        """Put contents that `state` gave back, or others as long. Raises LaunchRefusedError."""
        for name, content in state.items():
            variables.write(self._modules[side], self._variables[side][name], content)

    def run_twice(self, side: str, case: Case, values: Values) -> tuple[Outputs, Outputs]:
        """Two runs in fresh memory that holds a different poison in each, shared memory too: what depends on it
        shows."""
        buffers = self.buffers(case)
        first, second = (self.run(side, case, buffers, values, poison) for poison in self.poisons)
        return first, second


def _poison_bytes(spec: ArraySpec, poison: int) -> bytes:
    size = spec.scalars * int(spec.dtype.itemsize)
    return (poison.to_bytes(4, "little") * -(-size // 4))[:size]


def _damage(case: Case, buffers: Mapping[str, Buffer], sealed: Inputs, poison: int) -> Damage | None:
    """What a launch did that it must not. All is asked of the device before it is waited for."""
    kept = [spec for spec in case.arrays if spec.is_input]
    unchanged = [spec for spec in case.arrays if not spec.is_output]
    broken = guards_broken([buffers[spec.name] for spec in case.arrays], poison).to(torch.int64)
    marks = [fingerprint(sealed[s.name]).view(1) for s in kept]
    moved = [(bits(buffers[s.name].data) != bits(sealed[s.name])).any().view(1) for s in unchanged]
    answers = iter(torch.cat([broken, *marks, *moved]).tolist())
    outside = [spec for spec in case.arrays if next(answers)]
    not_its_own = [spec for spec in kept if next(answers) != sealed.prints[spec.name]]
    changed = [spec for spec in unchanged if next(answers)]
    for spec in case.arrays:
        if spec in outside:
            text = f"it writes outside {spec.name}, whose extent is {spec.count:,}"
            return Damage(text, ("out-of-bounds",), spec.name)
        if spec in not_its_own:
            return Damage(f"it writes into memory that is not its own, the judge's {spec.name}", ("out-of-bounds",))
        if spec in changed:
            return Damage(f"it changes its input {spec.name}")
    return None


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

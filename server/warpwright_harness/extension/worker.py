"""A side's process: loads one extension, and calls it as its judge says until the channel closes.

All that this process has of torch and of the system is taken before the extension is loaded; what the extension puts in
its place is not used, and is told to the judge. No verdict is made here.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from warpwright_harness.extension.arena import ALIGNMENT, Memory, aligned, open_memory
from warpwright_harness.extension.channel import Channel, ChannelError
from warpwright_harness.extension.clock import Clock
from warpwright_harness.extension.watched import Watched

MOST_FILE_BYTES = 256 << 20
"""Of a file that an extension writes."""
LEAD_CYCLES = 60_000
"""A kernel that spins so long (about 0.03 ms) goes ahead of the one that is timed, so that this one does not wait for
Python either."""
_PR_SET_PDEATHSIG = 1  # with the thread that started this process
_empty, _clone, _copy, _contiguous = torch.empty, torch.Tensor.clone, torch.Tensor.copy_, torch.Tensor.contiguous
_fill, _sum = torch.Tensor.fill_, torch.sum
_Tensor = torch.Tensor


def serve(descriptor: int) -> int:
    """Answer questions on the socket `descriptor` until it closes; 0 at its end."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError):  # a lower limit stands
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE_BYTES, MOST_FILE_BYTES))
    channel = Channel(socket.socket(fileno=descriptor))
    side: _Side | None = None
    while True:
        try:
            question = channel.receive(None)
        except ChannelError:
            return 0
        answer: dict[str, Any]
        try:
            if side is None:
                side = _Side(question)
            answer = side.answer(question, channel)
        except Exception as error:  # an extension may raise anything
            answer = {"failed": _sentence(error)}
        channel.send({**answer, "number": question["number"]})


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


class _Call:
    """One call of a batch: its tensors lie in private memory between guards, at places that the judge draws."""

    def __init__(self, described: Mapping[str, Any], device: str) -> None:
        self.described = described
        self.buffers: dict[str, torch.Tensor] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        for argument in described["arguments"]:
            if argument["kind"] != "tensor":
                continue
            raw = _fill(_empty(argument["room"] // 4, dtype=torch.int32, device=device), described["poison"])
            raw = raw.view(torch.uint8)
            inside = raw[argument["start"] : argument["start"] + argument["bytes"]]
            self.buffers[argument["name"]] = raw
            self.tensors[argument["name"]] = inside.view(getattr(torch, argument["dtype"])).view(argument["sizes"])

    def fill(self, memory: Memory) -> None:
        """Put the input's values in, on the current stream."""
        for argument in self.described["arguments"]:
            if argument["kind"] == "tensor":
                name = argument["name"]
                start = argument["start"]
                inside = self.buffers[name][start : start + argument["bytes"]]
                _copy(inside, memory.at(argument["from"], argument["bytes"]))

    def passed(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for argument in self.described["arguments"]:
            value = self.tensors[argument["name"]] if argument["kind"] == "tensor" else argument["value"]
            if argument["keyword"]:
                named[argument["name"]] = value
            else:
                positional.append(value)
        return positional, named


class _Side:
    """The extension, loaded, and what the last batch left."""

    def __init__(self, question: Mapping[str, Any]) -> None:
        if question["tied"]:  # to the judge; a tool that starts this process has threads that come and go
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        self.device: str = question["device"]
        self.clock = Clock(self.device)
        self.junk = torch.ones(question["flush_bytes"] // 4, dtype=torch.float32, device=self.device)
        self.sum = torch.zeros((), dtype=torch.float32, device=self.device)
        self.memory: Memory | None = None
        self.function: Callable[..., Any] | None = None
        self.watched = Watched()
        self.calls: list[_Call] = []
        self.outputs: list[list[torch.Tensor]] = []
        self.sizes: list[int] = []

    def answer(self, question: Mapping[str, Any], channel: Channel) -> dict[str, Any]:
        match question["ask"]:
            case "load":
                self.function = _load(question)
                return {}
            case "memory":
                self.calls, self.outputs, self.memory = [], [], None
                self.memory = open_memory(question["memory"], channel.descriptor())
                return {}
            case "batch":
                return self._batch(question)
            case "again":
                return self._again(question)
            case "call":
                self._call(question)
                return {}
            case "profile":
                return self._profile(question)
        raise ValueError(f"the question {question['ask']} is not known")

    def _batch(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Make all calls, each timed, and put what they gave and what they left of their inputs into the memory."""
        assert self.memory is not None
        assert self.function is not None
        self.calls, self.outputs = [], []
        self._poison(question["calls"][0]["poison"], len(question["calls"]))
        self.calls = [_Call(described, self.device) for described in question["calls"]]
        snapshots: list[list[torch.Tensor]] = []
        self.clock.synchronize()
        for call in self.calls:
            positional, named = call.passed()
            self.clock.spin(LEAD_CYCLES)
            self.clock.start()
            self.clock.spin(call.described["spin"])
            self.clock.stop()
            call.fill(self.memory)
            if question["flush"]:
                _sum(self.junk, dim=0, out=self.sum)  # by reading, so that nothing has to be written back later
            self.clock.start()
            returned = self.function(*positional, **named)
            self.clock.stop()
            outputs = _tensors(returned)
            snapshots.append([_clone(_contiguous(t)) if t.device == self.junk.device else t for t in outputs])
            self.outputs.append(outputs)
        self.clock.synchronize()
        place = question["results"]
        returned_bytes = sum(aligned(_size(t)) for copies in snapshots for t in copies)
        kept_bytes = sum(aligned(_size(raw)) for call in self.calls for raw in call.buffers.values())
        needs = place + 2 * returned_bytes + kept_bytes + 2 * ALIGNMENT  # the returned once more, for `again`
        if needs > self.memory.raw.numel():
            self.clock.take()
            return {"needs": needs}
        answers: list[dict[str, Any]] = []
        for call, outputs, copies in zip(self.calls, self.outputs, snapshots, strict=True):
            described = []
            for output, copy in zip(outputs, copies, strict=True):
                described.append({**self._described(output, call), "at": place, "bytes": _size(copy)})
                place = self._put(copy, place)
            kept = {}
            for name, raw in call.buffers.items():
                kept[name] = place
                place = self._put(raw, place)
            answers.append({"outputs": described, "inputs": kept})
        self.clock.synchronize()
        self.sizes = [_size(copy) for copy in snapshots[0]]
        times = self.clock.take()
        return {
            "calls": answers,
            "spins": times[::2],
            "microseconds": times[1::2],
            "replaced": self.watched.replaced(),
        }

    def _again(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """What the outputs of the last batch hold now."""
        self.clock.synchronize()
        place = question["results"]
        calls = []
        for outputs in self.outputs:
            places = []
            for output in outputs:
                places.append(place)
                place = self._put(_contiguous(output), place)
            calls.append(places)
        self.clock.synchronize()
        return {"calls": calls, "replaced": self.watched.replaced()}

    def _call(self, question: Mapping[str, Any]) -> None:
        """One call, for a tool that watches the process."""
        self._ready(question)()
        self.clock.synchronize()

    def _ready(self, question: Mapping[str, Any]) -> Callable[[], object]:
        """The question's first call, with its arguments in place and nothing else under way."""
        assert self.memory is not None
        assert self.function is not None
        call = _Call(question["calls"][0], self.device)
        call.fill(self.memory)
        positional, named = call.passed()
        self.clock.synchronize()
        return partial(self.function, *positional, **named)

    def _profile(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The kernels that one call ran: (name, microseconds), as CUPTI saw them."""
        from torch.profiler import ProfilerActivity, profile

        call = self._ready(question)
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            call()
            self.clock.synchronize()
        ran = [(event.name, float(event.self_device_time_total)) for event in seen.events() or []]
        return {"ran": [(name, took) for name, took in ran if took > 0]}

    def _put(self, tensor: torch.Tensor, place: int) -> int:
        """Copy a contiguous tensor to a place of the memory; the next place. Raises ArenaError."""
        assert self.memory is not None
        size = _size(tensor)
        room = self.memory.at(place, size)
        if size:
            _copy(room, tensor.detach().reshape(-1).view(torch.uint8))
        return place + aligned(size)

    def _poison(self, poison: int, times: int) -> None:
        """Leave the poison in the memory that the allocator will give next for outputs of the sizes seen last."""
        taken = [
            _fill(_empty(-(-size // 4), dtype=torch.int32, device=self.device), poison)
            for size in self.sizes * times
            if 0 < size <= 64 << 20
        ]
        del taken

    def _described(self, tensor: torch.Tensor, call: _Call) -> dict[str, Any]:
        storage = tensor.untyped_storage()
        start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        shared = [
            name for name, raw in call.buffers.items() if start < raw.data_ptr() + raw.numel() and raw.data_ptr() < end
        ]
        return {
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "sizes": list(tensor.shape),
            "strides": list(tensor.stride()),
            "device": tensor.device.type,
            "shares": shared,
        }


def _size(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _tensors(returned: Any) -> list[torch.Tensor]:
    """A tensor, a tuple or list of them, or None, as a list. Raises TypeError for anything else."""
    if returned is None:
        return []
    listed = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    for one in listed:
        if not isinstance(one, _Tensor):
            raise TypeError(f"it returned a {type(one).__name__}, which is no tensor")
    return listed


def _load(question: Mapping[str, Any]) -> Callable[..., Any]:
    """The bound function. Raises whatever loading raises."""
    path, module, space, name = (question[key] for key in ("library", "module", "namespace", "name"))
    if space:
        torch.ops.load_library(path)
        function: Callable[..., Any] = getattr(getattr(torch.ops, space), name)
        return function
    spec = importlib.util.spec_from_file_location(module, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{Path(path).name} is not a Python module")
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    bound: Callable[..., Any] = getattr(loaded, name)
    return bound

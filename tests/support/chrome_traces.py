"""torch.profiler's Chrome traces, made by hand: events as Kineto writes them. Times in microseconds."""

from __future__ import annotations

from itertools import count
from typing import Any

MAIN = 100
Events = list[dict[str, Any]]


class Maker:
    """Events in the order in which they are made; a kernel begins when the one before has ended."""

    def __init__(self) -> None:
        self.events: Events = []
        self.gpu_free = 0.0
        self._correlations = count(1)

    def host(self, category: str, name: str, start: float, length: float, thread: int = MAIN, **args: Any) -> None:
        event = {"ph": "X", "cat": category, "name": name, "pid": MAIN, "tid": thread, "ts": start, "dur": length}
        self.events.append({**event, "args": args})

    def op(self, name: str, start: float, length: float, thread: int = MAIN) -> None:
        self.host("cpu_op", name, start, length, thread, **{"External id": 1})

    def frame(self, name: str, start: float, length: float) -> None:
        self.host("python_function", name, start, length, **{"Python id": 1})

    def launch(
        self, at: float, length: float, name: str = "void at::native::vectorized_elementwise_kernel<4>(int)",
        grid: tuple[int, int, int] = (8, 1, 1), thread: int = MAIN,
    ) -> float:  # fmt: skip
        """An operator of 8 us that launches for 4; the end of its kernel."""
        correlation = next(self._correlations)
        self.op("aten::add", at, 8, thread)
        self.host("cuda_runtime", "cudaLaunchKernel", at + 2, 4, thread, cbid=211, correlation=correlation)
        start = max(self.gpu_free, at + 6)
        self.gpu("kernel", name, start, length, correlation=correlation, grid=[*grid], block=[128, 1, 1])
        return self.gpu_free

    def copy(self, at: float, host: float, length: float, kind: str, size: int) -> None:
        """A cudaMemcpyAsync of `host` us, its copy takes `length`; `kind` as in "HtoD (Pageable -> Device)"."""
        correlation = next(self._correlations)
        self.host("cuda_runtime", "cudaMemcpyAsync", at, host, cbid=41, correlation=correlation)
        self.gpu(
            "gpu_memcpy", f"Memcpy {kind}", max(self.gpu_free, at + 2), length, correlation=correlation, bytes=size
        )

    def gpu(self, category: str, name: str, start: float, length: float, **args: Any) -> None:
        event = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": length}
        self.events.append({**event, "args": {"device": 0, "stream": 7, "context": 1, **args}})
        self.gpu_free = start + length

    def document(self) -> dict[str, Any]:
        return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": self.events}

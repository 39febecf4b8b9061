"""How many operations torch counts on work of its own: those of matrix products, convolutions and attentions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry


def operations_counted(work: Callable[[], object]) -> float:
    """What torch counts on work of its own: a multiplication and an addition are two. 0 where it counts nothing, or the
    work fails; a CUDA error is raised."""
    for counter in (_Counting, partial(FlopCounterMode, display=False)):
        try:
            with counter() as counting:
                work()
                torch.cuda.synchronize()
        except Exception as error:  # a user's module may raise anything
            if "CUDA error" in str(error):
                raise
        else:
            return float(counting.get_total_flops())
    return 0.0


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """What `FlopCounterMode` counts on plain operators, by torch's own formulas. That one knows higher-order operators
    too, and imports all that compiles, which takes as long as torch itself."""

    def __init__(self) -> None:
        super().__init__()
        self._flops = 0.0

    def get_total_flops(self) -> float:
        return self._flops

    def _dispatched(
        self, operator: Any, _types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if not isinstance(operator, torch._ops.OpOverload):
            return NotImplemented
        named = dict(kwargs or {})
        with self:
            made_of_others = operator.decompose(*args, **named)
        if made_of_others is not NotImplemented:
            return made_of_others
        result = operator(*args, **named)
        if (formula := flop_registry.get(operator.overloadpacket)) is not None:
            self._flops += formula(*args, **named, out_val=result)
        return result


# Not in the class's body: what is there, torch wraps in what imports all that compiles.
_Counting.__torch_dispatch__ = _Counting._dispatched

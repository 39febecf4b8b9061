"""An operator takes float alone, and says nothing of autocast.

## Why is this bad?

Under `torch.autocast` the layers before it give half or bfloat16. An operator that takes float alone then throws
"expected scalar type Float but found Half"; with a registration for autocast its inputs are cast.

## Example

```cuda
#include <torch/extension.h>

__global__ void scale_kernel(float *y, const float *x, float a, int64_t n);

torch::Tensor scale(torch::Tensor x, double a) {
  TORCH_CHECK(x.is_contiguous());
  auto y = torch::empty_like(x);
  int64_t n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), x.data_ptr<float>(), a, n);
  return y;
}

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
```

## Use instead

```cuda
#include <torch/extension.h>
#include <ATen/autocast_mode.h>

__global__ void scale_kernel(float *y, const float *x, float a, int64_t n);

torch::Tensor scale(torch::Tensor x, double a) {
  TORCH_CHECK(x.is_contiguous());
  auto y = torch::empty_like(x);
  int64_t n = x.numel();
  scale_kernel<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), x.data_ptr<float>(), a, n);
  return y;
}

torch::Tensor scale_autocast(torch::Tensor x, double a) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::Autocast);
  return scale(at::autocast::cached_cast(at::kFloat, x), a);
}

TORCH_LIBRARY(ours, m) { m.def("scale(Tensor x, float a) -> Tensor"); }
TORCH_LIBRARY_IMPL(ours, CUDA, m) { m.impl("scale", &scale); }
TORCH_LIBRARY_IMPL(ours, Autocast, m) { m.impl("scale", &scale_autocast); }
```

## Limits

- Of operators of a TORCH_LIBRARY that take the pointers of their tensors as float. A `custom_fwd` in the package
  counts as a registration for all. The fix is offered where an implementation stands in the file of the schema; with
  others, or with torch's stable ABI, register it from Python.
"""

from __future__ import annotations

from collections.abc import Iterator

from warpwright.cuda.extension.entries import Registration
from warpwright.cuda.extension.unit import Unit, is_of_stable_abi
from warpwright.rules.base import Cure, Finding, Severity
from warpwright.rules.cures import cure, free_name, include
from warpwright.rules.torch._ops import OF_BACKWARD, called, defined, gives_tensor, implementations
from warpwright.rules.torch._tensors import dispatches, flow, launches_below
from warpwright.syntax.edits import TextEdit
from warpwright.syntax.nodes import enclosing, function_declarator

severity = Severity.HINT

_REGISTERED = ("Autocast", "AutocastCUDA", "register_autocast", "CompositeImplicitAutograd")


def check_unit(unit: Unit) -> Iterator[Finding]:
    if any(b"custom_fwd" in script.source.data for script in unit.scripts):
        return
    for each in defined(unit):
        if OF_BACKWARD.search(each.name) or not gives_tensor(each) or "!" in each.text:
            continue
        if not unit.registered(each.space, each.name).isdisjoint(_REGISTERED):
            continue
        for bound in implementations(unit, each):
            function = bound.function
            if not launches_below(unit, function) or any(any(dispatches(unit, f)) for f in unit.reached(function)):
                continue
            types = {use.type for name in function.tensors for use in flow(unit, function, name).uses}
            if "float" in types and not types & {"at::Half", "c10::Half", "at::BFloat16", "c10::BFloat16"}:
                yield Finding(
                    span=each.source.span(each.at),
                    message=(
                        f"`{called(each)}` takes float alone and throws under torch.autocast\n"
                        "Register it with torch.library.register_autocast, or for the key Autocast."
                    ),
                    evidence={"operator": called(each), "types": sorted(types)},
                    kernel=each.name,
                    cure=_cure(unit, each),
                )
                break


def _cure(unit: Unit, operator: Registration) -> Cure | None:
    """The operator again, below autocast, with its tensors cast, in the signature of an implementation of this file."""
    here = [each.function for each in implementations(unit, operator) if each.function.source is operator.source]
    if not here or is_of_stable_abi(operator.source) or here[0].node.type == "lambda_expression":
        return None
    function, source = here[0], operator.source
    declarator, kind = function_declarator(function.node), function.node.child_by_field_name("type")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    if listed is None or kind is None or not all(name for name, _ in function.parameters):
        return None
    name = free_name(source.text(), f"{operator.name}_autocast", f"{operator.name}_below_autocast")
    given = ", ".join(
        f"at::autocast::cached_cast(at::kFloat, {each})" if each in function.tensors else each
        for each, _ in function.parameters
    )
    block = enclosing(operator.at, "function_definition")
    text = (
        f"\n\n{source.node_code(kind)} {name}{source.node_code(listed)} {{\n"
        "  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);\n"
        f'  static const auto below = c10::Dispatcher::singleton().findSchemaOrThrow("{called(operator)}", '
        f'"{operator.overload}").typed<decltype({function.name})>();\n'
        f"  return below.call({given});\n}}\n\n"
        f'TORCH_LIBRARY_IMPL({operator.space}, Autocast, m) {{ m.impl("{operator.text.partition("(")[0]}", &{name}); }}'
    )
    if block is None:
        return None
    return cure(
        "Cast its tensors under autocast",
        include(source, "ATen/autocast_mode.h"),
        include(source, "ATen/core/dispatch/Dispatcher.h"),
        TextEdit(block.end_byte, block.end_byte, text),
    )

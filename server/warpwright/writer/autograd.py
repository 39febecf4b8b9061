"""The C++ file that tells autograd of an operator: where an argument requires a gradient, what is kept of the forward
and the call of the backward's operator; else the operator at once.

In C++, as a derivative that is registered from Python is asked in each call, also where no gradient is wanted: about
ten microseconds, more than most kernels that are worth one launch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from warpwright.formulas.derivative import Derivative
from warpwright.formulas.model import Formula
from warpwright.formulas.types import TYPES
from warpwright.writer.code import Code
from warpwright.writer.extension import arguments_of, operator_name, scalar_words, size_sources, unread_sizes
from warpwright.writer.names import free_name, renamed
from warpwright.writer.text import Text, listed

_READ = {"int": "toInt()", "float": "toDouble()", "bool": "toBool()", "SymInt": "toSymInt()"}
"""How a number that was kept is read again, by its type in a schema."""


def autograd_text(forward: Code, library: str, backward: Code, back: Derivative) -> str:
    """Of an operator with a backward."""
    formula, other = forward.formula, backward.formula
    # What is written has other names in place of those that C++ keeps: names of both sides are compared as such.
    own = {free_name(each): each for each in (*formula.tensors, *formula.sizes, *formula.scalars)}
    other = renamed(other, _names(own, [*other.tensors, *other.scalars]), _names(own, other.sizes))
    gradients = {own.get(each, each) for each in map(free_name, back.given.values())}
    back = Derivative(
        back.text,
        {own.get(free_name(result), result): name for result, name in back.given.items()},
        {own.get(free_name(name), name): result for name, result in back.made.items()},
    )
    inputs = [each.name for each in formula.inputs]
    kept = [each.name for each in other.inputs if each.name not in gradients]
    kept += [each for each in inputs if each not in kept and _tells(formula, other, each)]
    numbers = [each for each in arguments_of(other) if each in arguments_of(formula) and each not in inputs]
    body = Text()
    if kept:
        body("const auto kept = ctx->get_saved_variables();")
    results = [each.name for each in formula.tensors.values() if each.role == "out"]
    places = {back.given[each]: f"gradients[{place}]" for place, each in enumerate(results) if each in back.given}
    places |= {each: f"kept[{place}]" for place, each in enumerate(kept)}
    sources = size_sources(formula)
    passed = []
    for each in arguments_of(other):
        if each in places:
            passed.append(places[each])
        elif each in unread_sizes(other) and each in sources:
            tensor, place = sources[each]
            passed.append(f"{places[tensor]}.sym_size({place})")
        else:
            passed.append(f'ctx->saved_data["{each}"].{_READ[_words(formula)[each][0]]}')
    made = [each.name for each in other.tensors.values() if each.role == "out"]
    bound = made[0] if len(made) == 1 else f"[{', '.join(made)}]"
    body.add(listed(passed, f"const auto {bound} = call_backward(", ");", 100))
    given = [back.made.get(each, "at::Tensor()") for each in arguments_of(formula)]
    body.add(listed(given, "return {", "};", 100))
    keeps = [f"ctx->save_for_backward({{{', '.join(kept)}}});"] if kept else []
    keeps += [f'ctx->saved_data["{each}"] = {each};' for each in numbers]
    return _text(forward, library, (backward,), keeps, body.lines)


def _names(own: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {each: own[free_name(each)] for each in names if free_name(each) in own}


def stub_text(forward: Code, library: str, why: str) -> str:
    """Of an operator whose backward is still to be written: it says so where it is called."""
    said = json.dumps(f"{operator_name(forward)} has no backward. {why}", ensure_ascii=False)
    body = [
        "// To be written; forward() has to keep what it needs: ctx->save_for_backward, ctx->saved_data.",
        "TORCH_CHECK_NOT_IMPLEMENTED(",
        f"    false, {said});",
        "return {};",
    ]
    return _text(forward, library, (), [], body)


def _text(forward: Code, library: str, others: Sequence[Code], keeps: Sequence[str], body: Sequence[str]) -> str:
    formula, name = forward.formula, operator_name(forward)
    results = [each.name for each in formula.tensors.values() if each.role == "out"]
    taken = [f"{_words(formula)[each][1]} {each}" for each in arguments_of(formula)]
    handed = ", ".join(arguments_of(formula))
    text = Text()
    for header in ("ATen/core/dispatch/Dispatcher.h", "torch/csrc/autograd/custom_function.h", "torch/library.h"):
        text(f"#include <{header}>")
    text()
    text("namespace {")
    text()
    _calls(text, "call_forward", formula, library, name)
    for each in others:
        _calls(text, "call_backward", each.formula, library, operator_name(each))
    text("struct Derivative : torch::autograd::Function<Derivative> {")
    text.depth += 1
    made = "at::Tensor" if len(results) == 1 else "torch::autograd::variable_list"
    text.add(listed(["torch::autograd::AutogradContext* ctx", *taken], f"static {made} forward(", ") {"))
    text.depth += 1
    text("const at::AutoDispatchBelowADInplaceOrView below;")
    text.add(keeps)
    if len(results) == 1:
        text(f"return call_forward({handed});")
    else:
        text(f"const auto [{', '.join(results)}] = call_forward({handed});")
        text(f"return {{{', '.join(results)}}};")
    text.depth -= 1
    text("}")
    text()
    text("static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,")
    text("                                              torch::autograd::variable_list gradients) {")
    text.depth += 1
    text.add(body)
    text.depth -= 1
    text("}")
    text.depth -= 1
    text("};")
    text()
    text.add(listed(taken, f"{_result(formula)} {name}_autograd(", ") {"))
    text.depth += 1
    floats = [each.name for each in formula.inputs if TYPES[each.type].is_float]
    wanted = " || ".join(f"{each}.requires_grad()" for each in floats)
    wanted = f"at::GradMode::is_enabled() && {f'({wanted})' if len(floats) > 1 else wanted}"
    if len(results) == 1:
        text(f"if ({wanted}) return Derivative::apply({handed});")
    else:
        with text.block(f"if ({wanted})"):
            text(f"const torch::autograd::variable_list made = Derivative::apply({handed});")
            text(f"return {{{', '.join(f'made[{place}]' for place in range(len(results)))}}};")
    text("const at::AutoDispatchBelowADInplaceOrView below;")
    text(f"return call_forward({handed});")
    text.depth -= 1
    text("}")
    text()
    text("}  // namespace")
    text()
    with text.block(f"TORCH_LIBRARY_IMPL({library}, Autograd, m)"):
        text(f'm.impl("{name}", &{name}_autograd);')
    return f"{text}\n"


def _calls(text: Text, function: str, formula: Formula, library: str, name: str) -> None:
    """A function that calls an operator through the dispatcher."""
    types = [_words(formula)[each][1] for each in arguments_of(formula)]
    taken = [f"{kind} {each}" for kind, each in zip(types, arguments_of(formula), strict=True)]
    text.add(listed(taken, f"{_result(formula)} {function}(", ") {"))
    text.depth += 1
    text("static const auto op = c10::Dispatcher::singleton()")
    text(f'    .findSchemaOrThrow("{library}::{name}", "")')
    text.add(listed(types, f"    .typed<{_result(formula)}(", ")>();", 104))
    text(f"return op.call({', '.join(arguments_of(formula))});")
    text.depth -= 1
    text("}")
    text()


def _words(formula: Formula) -> dict[str, tuple[str, str]]:
    """Of each argument its type in a schema, and in C++ above the kernels, where sizes may be symbols."""
    words = {each.name: ("Tensor", "const at::Tensor&") for each in formula.inputs}
    words |= dict.fromkeys(unread_sizes(formula), ("SymInt", "c10::SymInt"))
    return words | {each: scalar_words(kind) for each, kind in formula.scalars.items()}


def _result(formula: Formula) -> str:
    made = sum(each.role == "out" for each in formula.tensors.values())
    return "at::Tensor" if made == 1 else f"std::tuple<{', '.join(['at::Tensor'] * made)}>"


def _tells(forward: Formula, backward: Formula, tensor: str) -> bool:
    """Whether a size that the backward is handed is one of this tensor's."""
    sources = size_sources(forward)
    return any(sources.get(size, ("", 0))[0] == tensor for size in unread_sizes(backward))

"""What is applied to an operator's input before, and to its result behind it: expressions and the words for them."""

from __future__ import annotations

from dataclasses import dataclass

from warpwright_upskill.data.requests.phrases import lines


@dataclass(frozen=True, slots=True)
class Clause:
    """`text` has {v} for the value that it is applied to, {F} for its dimensions, {last} for the last of them. `says`
    are nouns with {x} for the input where it stands before, clauses behind the operator's words where behind."""

    name: str
    text: str
    says: tuple[str, ...]


def _clause(name: str, text: str, says: str) -> Clause:
    return Clause(name, text, lines(says))


ACTIVATIONS = {
    "relu": ("relu", "ReLU", "a relu", "F.relu"),
    "gelu": ("gelu", "GELU", "exact gelu (erf)", "erf-based GELU", "F.gelu"),
    "silu": ("silu", "SiLU", "swish", "F.silu"),
    "tanh": ("tanh", "a tanh", "torch.tanh"),
    "sigmoid": ("sigmoid", "a sigmoid", "logistic function", "torch.sigmoid"),
    "gelu_tanh": (
        "tanh-approximated gelu",
        "gelu (tanh approximation)",
        "F.gelu(approximate='tanh')",
        "gelu_tanh",
        "approximate gelu (the tanh one)",
    ),
    "softplus": ("softplus", "F.softplus", "log(1+exp(.))"),
    "exp": ("exp", "an exponential", "torch.exp", "exponentiation"),
    "square": ("square", "squaring"),
    "abs": ("abs", "absolute value", "magnitude"),
}


def _activated(name: str, words: tuple[str, ...]) -> Clause:
    word = "<" + "|".join(each for each in words if "|" not in each) + ">"
    return _clause(
        name,
        f"{name}({{v}})",
        f"""
        then {word}
        followed by {word}
        with {word} <fused|on top|at the end|as epilogue|on the result>
        and apply {word} <to it|to the result|>
        + {word}
        {word} <afterwards|on the output|after that>
        pass the result through {word}
        <fuse|fold> in {word}
        """,
    )


AFTER: tuple[Clause, ...] = (
    *(_activated(name, words) for name, words in ACTIVATIONS.items()),
    _clause(
        "scale",
        "{alpha} * ({v})",
        """
        then <scale|multiply> by {alpha}
        scaled by {alpha}
        times <the scalar|scalar|> {alpha}
        multiply the result by <a scalar|the scalar|the argument> {alpha}
        result *= {alpha}
        """,
    ),
    _clause(
        "residual",
        "({v}) + {res}[{F}]",
        """
        then add <the residual|residual|> {res}
        plus <the residual|a residual connection|skip connection> {res}
        and add {res} <elementwise|back|at the end|>
        + {res} (<same shape|residual|skip>)
        <adding|with> {res} <as residual|as a skip connection|added on top>
        """,
    ),
    _clause(
        "gated",
        "({v}) * {gate}[{F}]",
        """
        then <multiply|gate> <elementwise|pointwise|> <by|with> {gate}
        times {gate} elementwise
        and multiply <it|the result> by {gate} (same shape)
        gated by {gate}
        """,
    ),
    _clause(
        "clamp",
        "clamp({v}, -1, 1)",
        """
        clamped to [-1, 1]
        then clip to -1..1
        , clip the result between -1 and 1
        and clamp the output to the range -1 to 1
        """,
    ),
    _clause(
        "clamp6",
        "clamp({v}, 0, 6)",
        """
        then relu6
        clamped to [0, 6]
        and clip to 0..6 at the end
        """,
    ),
    _clause(
        "clamp_args",
        "clamp({v}, {lo}, {hi})",
        """
        clamped <to|between> {lo} and {hi}
        then clip to [{lo}, {hi}]
        with the result limited to the range {lo}..{hi}
        """,
    ),
    _clause(
        "bias",
        "({v}) + {b}[{last}]",
        """
        then add <a|the> bias vector {b} <over the last dim|along the last dimension|per column|>
        plus bias {b} <broadcast over rows|(one per column)|per output feature>
        with <a|> bias {b} added <per column|along the last axis>
        + {b} (broadcast along the last dim)
        """,
    ),
    _clause(
        "leaky",
        "{v0} if {v0} > 0 else 0.01 * {v0}",
        """
        then leaky relu <with slope 0.01|(0.01)>
        followed by leaky_relu, negative slope 0.01
        """,
    ),
    _clause(
        "sqrt_abs",
        "sqrt(abs({v}))",
        """
        then take sqrt of the absolute value
        followed by sqrt(|.|)
        """,
    ),
    _clause(
        "negate",
        "-({v})",
        """
        then negate <it|the result|>
        with the sign flipped
        and return the negative of that
        """,
    ),
    _clause(
        "plus_one",
        "({v}) + 1",
        """
        plus one
        then add 1
        """,
    ),
    _clause(
        "halve",
        "0.5 * ({v})",
        """
        times 0.5
        then halve it
        divided by two
        multiplied by one half
        """,
    ),
    _clause(
        "tanh_cap",
        "30 * tanh(({v}) / 30)",
        """
        then soft-cap <at 30|with 30 * tanh(. / 30)>
        with softcapping (30*tanh(v/30))
        """,
    ),
)

BEFORE: tuple[Clause, ...] = (
    *(
        _clause(
            name,
            f"{name}({{v}})",
            f"""
        {name.replace("gelu_tanh", "tanh-gelu")}({{x}})
        {{x}} after <{"|".join(words[:2])}>
        <{words[0]} of {{x}}|{words[0]} applied to {{x}}>
        """,
        )
        for name, words in ACTIVATIONS.items()
        if name != "square"
    ),
    _clause(
        "square",
        "({v}) ** 2",
        """
        {x} squared
        the squares of {x}
        {x}^2
        {x}**2
        """,
    ),
    _clause(
        "scale",
        "{alpha} * {v}",
        """
        {alpha} * {x}
        {x} scaled by {alpha}
        {x} times {alpha} (a scalar)
        """,
    ),
    _clause(
        "temperature",
        "({v}) / {tau}",
        """
        {x} / {tau}
        {x} divided by {tau}
        {x} scaled by 1/{tau}
        """,
    ),
    _clause(
        "residual",
        "{v} + {res}[{F}]",
        """
        {x} + {res}
        the sum of {x} and <the residual|> {res}
        {x} plus <residual|skip connection|> {res}
        """,
    ),
    _clause(
        "gated",
        "{v} * {gate}[{F}]",
        """
        {x} * {gate}
        the elementwise product of {x} and {gate}
        {x} times {gate} <elementwise|pointwise>
        """,
    ),
    _clause(
        "difference",
        "({v} - {other}[{F}])",
        """
        {x} - {other}
        the difference <between {x} and {other}|{x} minus {other}>
        """,
    ),
    _clause(
        "bias",
        "({v} + {b}[{last}])",
        """
        {x} + {b} (<bias over the last dim|bias broadcast along rows|one bias per column>)
        {x} with bias {b} added along the last dimension
        """,
    ),
    _clause(
        "halve",
        "0.5 * {v}",
        """
        0.5 * {x}
        half of {x}
        """,
    ),
    _clause(
        "shift_one",
        "({v} + 1)",
        """
        {x} + 1
        one plus {x}
        """,
    ),
)

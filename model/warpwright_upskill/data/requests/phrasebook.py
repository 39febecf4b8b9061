"""What stands around a request: how people begin, what else they ask for, what they call an input and a layout."""

from __future__ import annotations

from warpwright_upskill.data.requests.vocabulary import ROLES

LEADS = (
    "",
    "",
    "",
    "",
    "",
    "",
    "kernel for ",
    "need a kernel: ",
    "need a kernel for ",
    "TODO: ",
    "I need ",
    "cuda: ",
    "a fast kernel for ",
    "fused kernel: ",
    "simple kernel, ",
    "we want ",
    "GPU version of ",
    "same as pytorch: ",
    "this should be ",
    "// ",
    "task: ",
    "device code for ",
    "op: ",
    "just ",
    "custom op: ",
    "write a CUDA kernel for ",
    "Write a kernel for ",
    "implement ",
    "looking for ",
    "cuda kernel, ",
    "what I want: ",
    "CUDA implementation of ",
    "kernel: ",
)
"""Before a noun."""
SENTENCE_LEADS = ("", "", "", "", "", "TODO: ", "// ", "task: ", "context: ", "cuda kernel wanted: ")
"""Before a sentence that needs nothing."""
VERB_LEADS = (
    "",
    "",
    "",
    "",
    "",
    "",
    "write a CUDA kernel to ",
    "kernel to ",
    "TODO: ",
    "I need to ",
    "please ",
    "can you ",
    "we have to ",
    "// ",
    "task: ",
    "how would I ",
    "on the GPU: ",
    "a kernel that should ",
    "this kernel should ",
    "Write a kernel <to|that can> ",
    "just ",
    "want to ",
    "help me ",
    "given the inputs, ",
    "fast kernel: ",
    "step: ",
    "here ",
    "now ",
)
"""Before a verb."""
VERBS = frozenset("""
    accumulate add append apply average binarize blend build cap cast centre check clamp clear clip combine compute
    concatenate convert copy count crop dequantise divide do downsample draw encode evaluate extract fill find form
    gather get give halve increment interpolate invert keep limit look make mask max-reduce mean-center min-max
    min-reduce mirror mix move multiply normalise normalize one-hot pad permute pick precompute predict project
    pull push quantise reduce remove repeat replace rescale reshape reverse roll rotate round run scale select set
    shift split square squash stack standardise store subtract sum swap take tell threshold transpose turn unpack
    update z-score zero
    """.split())  # fmt: skip  # noqa: SIM905


DEMANDS = (
    "make it fast",
    "no atomics please",
    "should handle any size",
    "sizes are not multiples of 32",
    "use warp shuffles",
    "coalesced",
    "one block per row is fine",
    "fp32 accumulation",
    "deterministic",
    "for H100",
    "sm_90",
    "must be numerically stable",
    "no extra memory",
    "n can be huge",
    "use shared memory if it helps",
    "vectorised loads if aligned",
    "single kernel launch",
    "on the current stream",
    "contiguous tensors",
    "row-major",
    "batch is large",
    "the row length is up to 8192",
    "don't use cub",
    "without thrust",
    "float4 loads",
    "bounds checks please",
    "inputs are contiguous",
    "has to match pytorch",
    "memory bound so keep it simple",
    "hidden size is 4096",
    "around 1M elements",
    "typically 2048 x 768",
    "N up to 2^24",
    "rows ~ 16k, cols ~ 1k",
    "used in a training loop",
    "latency matters",
)
NOUNS = {
    0: ("the input",),
    1: ("the input", "a vector", "the array", "the input vector", "an array"),
    2: ("the input", "a matrix", "the matrix", "a 2d tensor", "the input tensor", "activations"),
    3: ("the input", "the tensor", "a 3d tensor", "the activations"),
    4: ("the input", "the feature maps", "a 4d tensor", "an image batch"),
}
LAYOUTS = {
    "column": "<{bare} is column-major|{bare} stored column major|{bare} in Fortran order|column-major {bare}>",
    "strided": "<{bare} has leading dimension ld|row stride ld for {bare}|{bare} is a view with row pitch ld|"
    "rows of {bare} are ld elements apart>",
    "channels_last": "<{bare} is channels_last|{bare} in NHWC memory order|channels-last {bare}>",
}

USUAL = {each[0] for each in ROLES.values()} | {"ld", "h", "ax", "ay", "az"}
"""Names that a formula may have without being told."""

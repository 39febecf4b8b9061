"""What people say around a request: why, where it is called, what it replaces, and how they put it."""

from __future__ import annotations

from random import Random

from warpwright_upskill.data.requests.phrases import chosen, lines

_BEFORE = lines("""
<we|I> <call|run> this <once per layer|every step|in the inner loop|for each batch|a thousand times per frame>
this is the <hot spot|slowest part|bottleneck> of our <training step|solver|pipeline|simulation|renderer>
<currently|right now> this is <a loop on the CPU|a for loop in numpy|three torch ops|a chain of pytorch calls>
at the moment thrust does this
I <want|need> to replace <a numpy|a torch|the CPU|our old OpenCL|an ISPC|a Numba> version
porting <some|old> <MATLAB|Fortran|NumPy|JAX|C++|OpenCL> code <to CUDA|>
background: <we are porting a model to C++|this is for inference|this sits behind the encoder>
it is part of a bigger fusion
part of <our|the> <inference engine|data loader|optimizer step|loss|post-processing|preprocessing|sampler|physics step>
<quick|short|small|simple> one
<hi|hello|hey>, <small question|a beginner question|one question>
I'm new to CUDA
context: <robotics|finance|genomics|image processing|speech|weather model|recommender|LLM serving>
for <a unit test|a paper|a homework|a benchmark|our product|a demo> I need this
profiling says <this takes 20% of the step|we are launch bound here|memory traffic is the problem>
cuBLAS <is overkill|doesn't do this>
there is no torch op for this
the eager version allocates too many temporaries
I have this in pytorch and it's too slow
""")
_BEHIND = lines("""
<it is|it's|this is> called <once per layer|every step|in a loop|from python|from a C++ extension|inside a CUDA graph>
replaces <three separate torch ops|the numpy loop|our CPU code|the eager version|two kernels>
used <in|by> <training|inference|the backward pass|the decoder|our solver|the renderer|a data pipeline|the evaluation>
the rest is <done|handled> elsewhere
<must|should|has to> <be graph-capturable|not allocate|not synchronise|run on the given stream|work for empty inputs>
sizes <vary a lot|are only known at run time|are arbitrary|change every call|may be odd|are small|can be big>
<memory|bandwidth> is the bottleneck
<thanks|thx|thank you|cheers|pls|please|many thanks>
nothing else <is needed|to do|happens here>
<no|without any> <extra allocations|host sync|library calls|templates|dynamic parallelism>
everything is <contiguous|on the device already|densely packed|aligned to 16 bytes>
the buffers <are already allocated|live on the GPU|come from cudaMalloc|do not overlap|never alias>
<correctness first|speed matters more than code size|readable code please|keep it short>
<as fast as possible|fast please|should saturate memory bandwidth|a naive version is ok|no need to over-optimise>
<one|a single> launch
target is <an A100|an H100|a 4090|a Jetson|V100 and newer>
I will <call it through ctypes|wrap it with pybind|bind it to torch|test it against numpy>
like the CPU reference does
""")
_FORMS: tuple[tuple[str, str], ...] = (
    ("/** ", " */"), ("/* ", " */"), ("/// ", ""), ("// ", ""), ("# ", ""), ('"""', '"""'), ("-- ", ""), ("//! ", ""),
    ("/// @brief ", ""), ("/** @brief ", " */"), ("TODO(perf): ", ""), ("FIXME: ", ""), ("// TODO: ", ""),
    ("NOTE: ", ""),
    ("// TODO: cuda version: ", ""), ("# kernel: ", ""), ("Q: ", ""), ("- ", ""), ("1) ", ""), ("> ", ""), ("* ", ""),
    ("Spec: ", ""), ("Semantics: ", ""), ("Desc: ", ""), ("goal: ", ""), ("wanted: ", ""), ("=> ", ""),
)  # fmt: skip
"""Marks that a request stands in."""


def surrounded(request: str, chance: Random) -> tuple[str, tuple[str, ...]]:
    """The request with sentences before and behind it that say nothing of the formula, and what was put there."""
    how = []
    if chance.random() < 0.12:
        said = _sentence(chosen(chance.choice(_BEFORE), chance), chance)
        request = f"{said}{chance.choice(('. ', '. ', ', so: ', ': ', ' - '))}{request}"
        how.append("why")
    if chance.random() < 0.14:
        said = chosen(chance.choice(_BEHIND), chance)
        request = f"{request.rstrip('.')}{chance.choice(('. ', '. ', ', ', '; ', ' - '))}{said}"
        how.append("where")
    if chance.random() < 0.14:
        before, behind = chance.choice(_FORMS)
        request = f"{before}{request}{behind}"
        how.append("marked")
    return request, tuple(how)


def _sentence(text: str, chance: Random) -> str:
    return text[:1].upper() + text[1:] if chance.random() < 0.6 else text

"""Sound kernels as tutorials have them, each in a program of its own: none may be called unsound in a run.

What tutorials do that is easily read wrong: template arguments from macros, `using` and defaults, dynamic shared memory
by `sizeof`, elements of structs and typedefs, values that `#if` decides, launches through wrappers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.analyze import analyze
from warpwright.facts.model import Assumptions
from warpwright.facts.profile import Profile
from warpwright.progress import never_cancelled, silent
from warpwright.syntax.source import Source, read_source

TUTORIALS = sorted((Path(__file__).parent / "tutorials").glob("*.cu"))
pytestmark = pytest.mark.nvcc


def faults(source: Source, assume: Assumptions | None = None) -> dict[str, list[str]]:
    """By kernel, what a run of it finds wrong."""
    assume = assume or Assumptions()
    program = analyze(source, assume=assume)
    found = {}
    for kernel in program.defined_kernels:
        made = emulated_profile(program, Wanted(kernel.name, {}, assume), silent, never_cancelled)
        assert isinstance(made, Profile), made
        found[kernel.name] = [fault.message for fault in made.faults]
    return found


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_sound_tutorial_kernel_has_no_fault(path: Path) -> None:
    found = faults(read_source(path))
    assert found and not any(found.values()), found


def test_a_macro_of_the_command_line_is_what_the_program_is_run_with() -> None:
    path = next(path for path in TUTORIALS if path.stem == "real_by_macro")
    assert not any(faults(read_source(path), Assumptions(defines={"USE_SINGLE": "1"})).values())

"""Profiles for `warpwright check --profile`: what is kept already is taken, the rest is made by the emulator."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from warpwright.cli.inputs import Compiled, nvcc_flags
from warpwright.cli.terminal import say_note, say_warning
from warpwright.editor.profile.store import load_profiles, placed, store_profile
from warpwright.editor.profile.view import fault_words
from warpwright.emulator.profiling import Wanted, emulated_profile
from warpwright.facts.profile import Profile
from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.source import SourceError, read_source


def make_profiles(paths: Iterable[Path], compiled: Compiled, progress: Progress, is_cancelled: IsCancelled) -> None:
    """Keep a profile of each kernel of some files that has none of its present text; say of which there is none. A file
    that cannot be read is left to whoever checks it. Raises CancelledError."""
    paths = list(paths)
    for done, path in enumerate(paths):
        try:
            source = read_source(path)
        except SourceError:
            continue
        program = compiled.program(source)
        assume = compiled.assumptions(source)
        kept = {profile.kernel: profile for profile in load_profiles(program, assume.defines, assume.arch)[::-1]}
        for kernel in program.defined_kernels:
            if kernel.name in kept:
                _say_guessed(kept[kernel.name])
                continue
            progress(f"Profiling {kernel.name}", done / len(paths))
            wanted = Wanted(
                kernel.name, {}, assume, compiled.include_folders(source), flags=nvcc_flags(compiled, source)
            )
            made = emulated_profile(program, wanted, lambda *_: None, is_cancelled)
            if isinstance(made, Missing):
                say_note(f"{path}: {kernel.name} is judged by its text: {made.reason}")
                continue
            made = placed(made, program) or made
            _say_guessed(made)
            try:
                store_profile(made)
            except OSError as error:
                say_warning(f"profiles cannot be kept ({error.strerror}); set WARPWRIGHT_CACHE_DIR")
                return


def _say_guessed(profile: Profile) -> None:
    for fault in profile.faults:
        if fault.guessed:
            say_note(f"{fault.file}:{fault.line}: {profile.kernel}: {fault_words(fault)}")

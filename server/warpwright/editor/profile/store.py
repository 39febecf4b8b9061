"""Profiles kept in the user's cache, found by the text that they were made of.

`profiles/<SHA-256 of the file's text>/<file, kernel and sizes>-<what was run>.json`: an edit gives another folder, so
that a stale profile is never found; a profile is used only where every included file is the same too. Reading costs one
look for a folder, and what reads a profile is loaded with the first one: an editor's server starts without.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from warpwright.directories import cache_dir, write_whole
from warpwright.facts.model import Program
from warpwright.syntax.encoding import encoded
from warpwright.syntax.flags import Flags, parse_flags

if TYPE_CHECKING:
    from warpwright.facts.profile import Fault, Profile

MOST_TEXTS = 500


def store_profile(profile: Profile) -> Path | None:
    """Keep a profile; one of the same run, by the same backend, of the same text is replaced.

    None where it cannot be kept: it names no text, so that nobody could tell when it is stale. Raises OSError.
    """
    from warpwright.facts.profile_document import profile_json

    if not profile.texts:
        return None
    main = profile.texts[_main(profile)]
    launch = profile.launch
    run = (profile.kernel, profile.function, profile.backend, launch.grid, launch.block, launch.dynamic_shared_bytes)
    name = hashlib.sha256(encoded(repr((*run, sorted(launch.shape.items()), profile.flags)))).hexdigest()[:32]
    target = _folder() / main / f"{_compared(profile)}-{name}.json"
    write_whole(target, json.dumps(profile_json(profile)))
    _prune()
    return target


def load_profiles(program: Program, defines: Mapping[str, str | None], arch: str) -> tuple[Profile, ...]:
    """The kept profiles of exactly this text, compiled with these macros: measured before emulated, the newest first.

    Their paths are those of `program`. What cannot be read is left out: a profile can be made again.
    """
    folder = _folder() / hashlib.sha256(program.source.data).hexdigest()
    if not folder.is_dir():
        return ()
    from warpwright.facts.profile import Backend
    from warpwright.facts.profile_document import ProfileError, read_profile

    found: list[tuple[bool, int, Profile]] = []
    with suppress(OSError):
        for file in folder.glob("*.json"):
            with suppress(OSError, ProfileError):
                profile = placed(read_profile(file.read_bytes()), program)
                if profile is not None and _is_compiled_alike(profile, defines, arch):
                    found.append((profile.backend is Backend.NCU, file.stat().st_mtime_ns, profile))
    return tuple(profile for *_, profile in sorted(found, key=lambda each: each[:2], reverse=True))


def other_version(profile: Profile) -> Profile | None:
    """The newest kept profile of another text of the same kernel, in the file of the same absolute path, that ran at
    the same sizes."""
    from warpwright.facts.profile_document import ProfileError, read_profile

    main = _main(profile)
    if not Path(main).is_absolute():
        return None
    found: list[tuple[int, Path]] = []
    with suppress(OSError):
        for file in _folder().glob(f"*/{_compared(profile)}-*.json"):
            if file.parent.name != profile.texts[main]:
                found.append((file.stat().st_mtime_ns, file))
    for _, file in sorted(found, reverse=True):
        with suppress(OSError, ProfileError):
            return read_profile(file.read_bytes())
    return None


def _main(profile: Profile) -> str:
    """The file that was compiled, the first of its texts."""
    return next(iter(profile.texts), "")


def _compared(profile: Profile) -> str:
    """What two versions have in common that are compared, as the start of a file's name."""
    sizes = sorted(profile.launch.shape.items())
    return hashlib.sha256(
        encoded(repr((_main(profile), profile.kernel, profile.backend, profile.device, sizes)))
    ).hexdigest()[:16]


def placed(profile: Profile, program: Program) -> Profile | None:
    """The profile with the program's own paths; None where it is of another text.

    A file is the same where its name and its bytes are: a tree that was moved keeps its profiles.
    """
    from warpwright.facts.profile import text_hash

    here = {path: (PurePath(path).name, text_hash(source.data)) for path, source in program.sources.items()}
    there = {path: (PurePath(path).name, digest) for path, digest in profile.texts.items()}
    if not there or Counter(here.values()) != Counter(there.values()):
        return None
    if next(iter(there.values())) != here[program.source.path]:
        return None
    paths = {path: next(own for own, what in here.items() if what == wanted) for path, wanted in there.items()}
    return replace(
        profile,
        texts={paths[path]: digest for path, digest in profile.texts.items()},
        lines=tuple(replace(line, file=paths.get(line.file, line.file)) for line in profile.lines),
        faults=tuple(_fault_placed(fault, paths) for fault in profile.faults),
    )


def _fault_placed(fault: Fault, paths: Mapping[str, str]) -> Fault:
    other = fault.other
    if other is not None:
        other = replace(other, file=paths.get(other.file, other.file))
    return replace(fault, file=paths.get(fault.file, fault.file), other=other)


def _is_compiled_alike(profile: Profile, defines: Mapping[str, str | None], arch: str) -> bool:
    """Whether what is known of a compilation is what the analysis assumes. A GPU's architecture is its own."""
    from warpwright.facts.profile import Backend

    if profile.flags is None:
        return True
    flags = parse_flags(profile.flags, Path())
    arch_differs = profile.backend is Backend.EMULATOR and flags.arch is not None and flags.arch != arch
    return not arch_differs and _macros(flags) == _macros(Flags(defines))


def _macros(flags: Flags) -> dict[str, str | None]:
    return {name: body for name, body in flags.defines.items() if not name.startswith("__")}


def _folder() -> Path:
    return cache_dir() / "profiles"


def _prune() -> None:
    """Drop the half of the texts whose profiles are the oldest, once there are more than MOST_TEXTS."""
    texts = list(_folder().iterdir())
    if len(texts) <= MOST_TEXTS:
        return
    with suppress(OSError):
        texts.sort(key=lambda p: p.stat().st_mtime)
        for old in texts[: MOST_TEXTS // 2]:
            shutil.rmtree(old, ignore_errors=True)

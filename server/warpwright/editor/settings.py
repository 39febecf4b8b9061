"""The user's settings, as an editor sends them under `warpwright`.

An editor may send anything: what is wrong is named in a message and its default is kept, so that one bad value takes
down nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from warpwright.facts.model import MAX_THREADS_PER_BLOCK, Assumptions, Dim3

_ARCH = re.compile(r"sm_[1-9][0-9]{1,2}[af]?")
_WHEN = ("onPause", "onSave", "off")
_CLIENTS_OWN = frozenset({"trace", "interpreter"})  # what a client keeps under the same name and sends along


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default.

    `arch`: the architecture that `#if` is evaluated for; "" is that of compile_commands.json, else sm_90. `block`: the
    block shape where no launch is in sight. `defines`: macros given on the compiler's command line; `include_folders`:
    its `-I`; `compile_commands`: the project's compile_commands.json or its folder, "" to look for it.
    `select`, `ignore`: rules to run, and not to run. `model`: the model by path or name; "" is the default one.
    `optimize_seconds`: the longest that one of the kernel commands may take. `verify_seconds`: the same for one quick
    fix. `ghost_text`: write kernels from comments; `ghost_text_seconds`: the longest that may take.
    `compile`: when nvcc compiles a document in the background: "onPause" in typing, "onSave", "off". `architectures`:
    those it compiles for; none is the one of `arch`. `compile_seconds`: the longest that one of them may take.
    """

    arch: str = ""
    block: Dim3 | None = None
    defines: Mapping[str, str] = field(default_factory=lambda: {})
    include_folders: tuple[str, ...] = ()
    compile_commands: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    model: str = ""
    optimize_seconds: float = 300.0
    verify_seconds: float = 120.0
    ghost_text: bool = True
    ghost_text_seconds: float = 20.0
    compile: str = "onPause"
    architectures: tuple[str, ...] = ()
    compile_seconds: float = 60.0

    @property
    def assumptions(self) -> Assumptions:
        return Assumptions(arch=self.arch or Assumptions().arch, block=self.block, defines=dict(self.defines))


def parse_settings(value: object) -> tuple[Settings, tuple[str, ...]]:
    """Settings from what an editor sent, and one sentence for each thing in it that is wrong.

    >>> settings, wrong = parse_settings({"arch": "sm_80", "block": [16, 16], "ignore": "bank-conflict", "colour": 1})
    >>> settings.arch, settings.block, settings.ignore
    ('sm_80', (16, 16, 1), ())
    >>> for sentence in wrong: print(sentence)
    warpwright.colour: there is no such setting.
    warpwright.ignore: must be a list of rule names, not "bank-conflict"; the default is used.
    """
    if value is None:
        return Settings(), ()
    if not isinstance(value, Mapping):
        return Settings(), (f"warpwright: settings must be an object, not {_shown(value)}; the defaults are used.",)
    unknown = (name for name in value if name not in _READERS and name not in _CLIENTS_OWN)
    wrong = [f"warpwright.{name}: there is no such setting." for name in unknown]
    read: dict[str, object] = {}
    for name, (attribute, reader, form) in _READERS.items():
        given = value.get(name)
        if given is None:
            continue
        try:
            read[attribute] = reader(given)
        except (ValueError, TypeError):
            wrong.append(f"warpwright.{name}: must be {form}, not {_shown(given)}; the default is used.")
    return Settings(**read), tuple(wrong)  # type: ignore[arg-type]


def settings_json(settings: Settings) -> dict[str, object]:
    """What `parse_settings` reads back to an equal Settings.

    >>> parse_settings(settings_json(Settings(block=(8, 8, 1))))[0] == Settings(block=(8, 8, 1))
    True
    """
    values = {name: getattr(settings, attribute) for name, (attribute, _, _) in _READERS.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _arch(value: object) -> str:
    if not isinstance(value, str) or (value and not _ARCH.fullmatch(value)):
        raise ValueError
    return value


def _architectures(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(value):
        raise ValueError
    return tuple(dict.fromkeys(map(_arch, value)))


def _when(value: object) -> str:
    if value not in _WHEN:
        raise ValueError
    return str(value)


def _block(value: object) -> Dim3:
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= 3:
        raise ValueError
    dims = [_positive_int(item) for item in value]
    x, y, z = (*dims, 1, 1)[:3]
    if x * y * z > MAX_THREADS_PER_BLOCK:
        raise ValueError
    return x, y, z


def _positive_int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 86400:
        raise ValueError
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError
    return tuple(_text(item) for item in value)


def _macros(value: object) -> dict[str, str]:
    """A macro's value may be written as a number: {"TILE": 32}."""
    if not isinstance(value, Mapping):
        raise TypeError
    macros: dict[str, str] = {}
    for name, body in value.items():
        if not isinstance(name, str) or not name.isidentifier() or not isinstance(body, str | int | float):
            raise ValueError
        macros[name] = str(int(body)) if isinstance(body, bool) else str(body)
    return macros


_READERS: dict[str, tuple[str, Callable[[object], object], str]] = {
    "arch": ("arch", _arch, 'an architecture such as "sm_90"'),
    "block": ("block", _block, "one to three positive extents of at most 1024 threads in all, such as [32, 8]"),
    "defines": ("defines", _macros, 'an object of macros such as {"TILE": "32"}'),
    "includeFolders": ("include_folders", _names, "a list of folders"),
    "compileCommands": ("compile_commands", _text, "a file or a folder"),
    "select": ("select", _names, "a list of rule names"),
    "ignore": ("ignore", _names, "a list of rule names"),
    "model": ("model", _text, "a path or a name"),
    "optimizeSeconds": ("optimize_seconds", _seconds, "a number of seconds"),
    "verifySeconds": ("verify_seconds", _seconds, "a number of seconds"),
    "ghostText": ("ghost_text", _boolean, "true or false"),
    "ghostTextSeconds": ("ghost_text_seconds", _seconds, "a number of seconds"),
    "compile": ("compile", _when, '"onPause", "onSave" or "off"'),
    "architectures": ("architectures", _architectures, 'a list of architectures such as ["sm_80", "sm_90"]'),
    "compileSeconds": ("compile_seconds", _seconds, "a number of seconds"),
}

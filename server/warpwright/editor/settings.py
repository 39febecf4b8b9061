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
_CLIENTS_OWN = frozenset({"trace", "interpreter"})  # what a client keeps under the same name and sends along


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; SETTINGS says what each means."""

    arch: str = ""
    block: Dim3 | None = None
    defines: Mapping[str, str] = field(default_factory=lambda: {})
    include_folders: tuple[str, ...] = ()
    compile_commands: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    model: str = ""
    plan: str = "fixed"
    optimize_seconds: float = 300.0
    verify_seconds: float = 120.0
    code_lens: bool = True
    inlay_hints: bool = True
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
    unknown = (name for name in value if name not in _NAMES and name not in _CLIENTS_OWN)
    wrong = [f"warpwright.{name}: there is no such setting." for name in unknown]
    read: dict[str, object] = {}
    for setting in SETTINGS:
        given = value.get(setting.name)
        if given is None:
            continue
        try:
            read[setting.attribute] = setting.read(given)
        except (ValueError, TypeError):
            form = f"must be {setting.form}, not {_shown(given)}; the default is used."
            wrong.append(f"warpwright.{setting.name}: {form}")
    return Settings(**read), tuple(wrong)  # type: ignore[arg-type]


def settings_json(settings: Settings) -> dict[str, object]:
    """What `parse_settings` reads back to an equal Settings.

    >>> parse_settings(settings_json(Settings(block=(8, 8, 1))))[0] == Settings(block=(8, 8, 1))
    True
    """
    values = {setting.name: getattr(settings, setting.attribute) for setting in SETTINGS}
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


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as a user sees it.

    `name` is its key under `warpwright`. `read` makes the value of what an editor sent or raises ValueError or
    TypeError; `form` says what it takes, `meaning` what it is for. `schema` is its JSON schema.
    """

    name: str
    read: Callable[[object], object]
    form: str
    meaning: str
    schema: Mapping[str, object]

    @property
    def attribute(self) -> str:
        """Its name in Settings: `optimize_seconds` for `optimizeSeconds`."""
        return re.sub(r"[A-Z]", lambda capital: f"_{capital[0].lower()}", self.name)

    @property
    def default(self) -> object:
        """As JSON, of which 300 is the shortest form of 300.0."""
        value = getattr(Settings(), self.attribute)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        return list(value) if isinstance(value, tuple) else value


def _several(name: str, read: Callable[[object], object], form: str, meaning: str, **items: object) -> Setting:
    return Setting(name, read, form, meaning, {"type": "array", "items": {"type": "string", **items}})


def _choice(name: str, among: tuple[str, ...], meaning: str) -> Setting:
    def read(value: object) -> object:
        if value not in among:
            raise ValueError
        return value

    *others, last = (f'"{each}"' for each in among)
    return Setting(name, read, f"{', '.join(others)} or {last}", meaning, {"type": "string", "enum": list(among)})


def _switch(name: str, meaning: str) -> Setting:
    return Setting(name, _boolean, "true or false", meaning, {"type": "boolean"})


def _at_most(name: str, meaning: str) -> Setting:
    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 86400}
    return Setting(name, _seconds, "a number of seconds", meaning, schema)


_EXTENT = {"type": "integer", "minimum": 1}

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "arch",
        _arch,
        'an architecture such as "sm_90"',
        "The GPU architecture that `#if` is evaluated for; empty is that of the file's flags, else `sm_90`.",
        {"type": "string", "pattern": f"^$|^{_ARCH.pattern}$"},
    ),
    Setting(
        "block",
        _block,
        "one to three positive extents of at most 1024 threads in all, such as [32, 8]",
        "The block shape to assume where no launch is in sight, such as `[32, 8]`.",
        {"type": ["array", "integer", "null"], "items": _EXTENT, "minItems": 1, "maxItems": 3},
    ),
    Setting(
        "defines",
        _macros,
        'an object of macros such as {"TILE": "32"}',
        "Macros that the compiler's command line defines.",
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    ),
    _several("includeFolders", _names, "a list of folders", "Folders to look for includes in, as the compiler's `-I`."),
    Setting(
        "compileCommands",
        _text,
        "a file or a folder",
        "The project's `compile_commands.json` or its folder; empty is the nearest.",
        {"type": "string"},
    ),
    _several("select", _names, "a list of rule names", "Only these rules or groups."),
    _several("ignore", _names, "a list of rule names", "All but these rules or groups."),
    Setting(
        "model",
        _text,
        "a path or a name",
        "The model by path or name; empty is the default one. One that is named here may rewrite kernels.",
        {"type": "string"},
    ),
    _choice(
        "plan",
        ("fixed", "model"),
        'What a search tries first: what gained most on other kernels, or with `"model"` what the model would try.',
    ),
    _at_most("optimizeSeconds", "The longest that *Optimize*, *Reduce memory* or *Fix* may take."),
    _at_most(
        "verifySeconds",
        "The longest that verifying one quick fix, or one comparison of *Verify*, may take.",
    ),
    _choice(
        "compile",
        ("onPause", "onSave", "off"),
        'When nvcc compiles in the background: also `"onSave"` and `"off"`.',
    ),
    _several(
        "architectures",
        _architectures,
        'a list of architectures such as ["sm_80", "sm_90"]',
        'Those that it compiles for, such as `["sm_80", "sm_90"]`; empty is the one of `arch`.',
        pattern=f"^{_ARCH.pattern}$",
    ),
    _at_most("compileSeconds", "The longest that it may take for one architecture."),
    _switch("codeLens", "Say above each kernel what is known of it and what can be done with it."),
    _switch("inlayHints", "Say behind each access that costs more transactions than it must how many."),
    _switch("ghostText", "Draft kernels from comments."),
    _at_most("ghostTextSeconds", "The longest that a draft may take."),
)
"""All of them, in the order in which an editor shows them."""

_NAMES = frozenset(setting.name for setting in SETTINGS)

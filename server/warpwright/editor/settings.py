"""The settings, as an editor sends them under `warpwright` and as a project's file has them (`editor.project`).

Anything may come: what is wrong is named in a message and its default is kept, so that one bad value takes down
nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from warpwright.editor import setting_values as values
from warpwright.facts.model import Assumptions, Dim3
from warpwright.syntax.flags import parse_flags, read_options
from warpwright.syntax.source import is_file
from warpwright.toolchain.nvcc_options import nvcc_options

_CLIENTS_OWN = frozenset({"trace", "interpreter"})  # what a client keeps under the same name and sends along


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; SETTINGS says what each means."""

    arch: str = ""
    block: Dim3 | None = None
    blocks: Mapping[str, Dim3] = field(default_factory=lambda: {})
    flags: tuple[str, ...] = ()
    defines: Mapping[str, str] = field(default_factory=lambda: {})
    include_folders: tuple[str, ...] = ()
    compile_commands: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severities: Mapping[str, str] = field(default_factory=lambda: {})
    model: str = ""
    plan: str = "fixed"
    optimize_seconds: float = 300.0
    verify_seconds: float = 120.0
    verify_fixes: str = "first"
    code_lens: bool = True
    inlay_hints: bool | str = True
    workspace_files: int = 100
    ghost_text: bool = True
    ghost_text_seconds: float = 20.0
    compile: str = "onPause"
    architectures: tuple[str, ...] = ()
    compile_seconds: float = 60.0

    @property
    def assumptions(self) -> Assumptions:
        arch, defines = self.arch or Assumptions().arch, dict(self.defines)
        assume = Assumptions(arch=arch, block=self.block, defines=defines, blocks=dict(self.blocks))
        return assume.compiled_with(parse_flags(self.flags, Path()))

    @property
    def folders(self) -> tuple[str, ...]:
        """Where includes are looked for."""
        return (*self.include_folders, *parse_flags(self.flags, Path()).folders)

    def rooted(self, folder: Path) -> Settings:
        """The same with names of files and folders that count from `folder` made whole."""
        return replace(
            self,
            include_folders=tuple(_rooted(each, folder) for each in self.include_folders),
            compile_commands=self.compile_commands and _rooted(self.compile_commands, folder),
            flags=nvcc_options(read_options(self.flags), folder).taken,
            model=str(folder / self.model) if self.model and is_file(folder / self.model) else self.model,
        )


def _rooted(name: str, folder: Path) -> str:
    """A name made whole; `~` of a user that there is not stays as it is."""
    return str(folder / os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises there


@dataclass(frozen=True, slots=True)
class Wrong:
    """Something wrong in what was given: the keys that lead to it, and why it is not used."""

    keys: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{'.'.join(('warpwright', *self.keys))}: {self.reason}"


def parse_settings(value: object) -> tuple[Settings, tuple[str, ...]]:
    """Settings from what an editor sent, and one sentence for each thing in it that is wrong.

    >>> settings, wrong = parse_settings({"arch": "sm_80", "block": [16, 16], "ignore": "bank-conflict", "colour": 1})
    >>> settings.arch, settings.block, settings.ignore
    ('sm_80', (16, 16, 1), ())
    >>> for sentence in wrong: print(sentence)
    warpwright.colour: there is no such setting.
    warpwright.ignore: must be a list of rule names, not "bank-conflict"; the default is used.
    """
    read, wrong = read_settings(value)
    return Settings(**read), tuple(map(str, wrong))  # type: ignore[arg-type]


def read_settings(value: object) -> tuple[dict[str, object], tuple[Wrong, ...]]:
    """The attributes of Settings that are given and right, and what is wrong.

    >>> read_settings({"arch": "sm_80", "ignore": ["bank-conflit"]})[1][0].reason
    "there is no rule or group 'bank-conflit'; did you mean 'bank-conflict'?"
    """
    if value is None:
        return {}, ()
    if not isinstance(value, Mapping):
        return {}, (Wrong((), f"settings must be an object, not {_shown(value)}; the defaults are used."),)
    unknown = (str(name) for name in value if name not in _NAMES and name not in _CLIENTS_OWN)
    wrong = [Wrong((name,), "there is no such setting.") for name in unknown]
    read: dict[str, object] = {}
    for setting in SETTINGS:
        given = value.get(setting.name)
        if given is None:
            continue
        try:
            read[setting.attribute] = setting.read(given)
        except values.RefusedError as refused:
            wrong.append(Wrong((setting.name,), f"the default is used: {refused}"))
        except (ValueError, TypeError):
            form = f"must be {setting.form}, not {_shown(given)}; the default is used."
            wrong.append(Wrong((setting.name,), form))
    for name in _OF_RULES:
        given = read.get(name, ())
        assert isinstance(given, tuple | dict)
        wrong += [
            Wrong((name, rule) if isinstance(given, dict) else (name,), reason)
            for rule in tuple(given)[:_MOST_NAMES]
            if (reason := _unknown_rule(rule))
        ]
    return read, tuple(wrong)


def _unknown_rule(name: str) -> str:
    """Why a name is none of a rule or a group; "" where it is one."""
    from warpwright.rules.registry import rule_and_group_names

    known = rule_and_group_names()
    if name in known:
        return ""
    near = get_close_matches(name, sorted(known), n=1)
    return f"there is no rule or group '{name}'" + (f"; did you mean '{near[0]}'?" if near else ".")


def settings_json(settings: Settings) -> dict[str, object]:
    """What `parse_settings` reads back to an equal Settings.

    >>> parse_settings(settings_json(Settings(block=(8, 8, 1))))[0] == Settings(block=(8, 8, 1))
    True
    """
    given = {setting.name: getattr(settings, setting.attribute) for setting in SETTINGS}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _shown(value: object) -> str:
    try:
        text = f'"{value}"' if isinstance(value, str) else str(value)
    except ValueError:
        return "a number with thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


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
    return Setting(name, values.boolean, "true or false", meaning, {"type": "boolean"})


def _at_most(name: str, meaning: str) -> Setting:
    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 86400}
    return Setting(name, values.seconds, "a number of seconds", meaning, schema)


_SHAPE = {"items": {"type": "integer", "minimum": 1}, "minItems": 1, "maxItems": 3}
_OF_RULES = ("select", "ignore", "severities")
_MOST_NAMES = 500
"""That are looked up, which takes a moment for each that is wrong."""

SETTINGS: tuple[Setting, ...] = (
    Setting(
        "arch",
        values.arch,
        'an architecture such as "sm_90"',
        "The GPU architecture that `#if` is evaluated for; empty: that of the file's flags, else `sm_90`.",
        {"type": "string", "pattern": f"^$|^{values.ARCH.pattern}$"},
    ),
    Setting(
        "block",
        values.block,
        "one to three positive extents of at most 1024 threads in all, such as [32, 8]",
        "The block shape to assume where no launch is found, such as `[32, 8]`.",
        {"type": ["array", "integer", "null"], **_SHAPE},
    ),
    Setting(
        "blocks",
        values.blocks,
        'an object of kernels and their block shapes such as {"transpose": [32, 8]}',
        'The block shapes of kernels by name, such as `{"transpose": [32, 8]}`, where no launch gives them.',
        {"type": "object", "additionalProperties": {"type": ["array", "integer"], **_SHAPE}},
    ),
    _several(
        "flags",
        values.flags,
        'a list of nvcc\'s options for device code, one word each, such as ["-std=c++20", "--use_fast_math"]',
        'nvcc\'s options, one word each and without the architecture, such as `["-std=c++20", "--use_fast_math"]`.',
    ),
    Setting(
        "defines",
        values.macros,
        'an object of macros such as {"TILE": "32"}',
        "Macros that the compiler's command line defines.",
        {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
    ),
    _several(
        "includeFolders", values.names, "a list of folders", "Folders to look for includes in, as the compiler's `-I`."
    ),
    Setting(
        "compileCommands",
        values.text,
        "a file or a folder",
        "The project's `compile_commands.json` or its folder; empty is the nearest.",
        {"type": "string"},
    ),
    _several("select", values.names, "a list of rule names", "Only these rules or groups."),
    _several("ignore", values.names, "a list of rule names", "Rules or groups to leave out."),
    Setting(
        "severities",
        values.severities,
        "an object of rules and one each of " + ", ".join(f'"{each}"' for each in values.SEVERITIES),
        'Severity override per rule or group, such as `{"bank-conflict": "error"}`: '
        + ", ".join(f'`"{each}"`' for each in values.SEVERITIES)
        + ". A rule's own entry holds over its group's.",
        {"type": "object", "additionalProperties": {"type": "string", "enum": list(values.SEVERITIES)}},
    ),
    Setting(
        "model",
        values.text,
        "a path, a name or an address",
        "The model by path, name or address (`http://HOST:PORT/v1#MODEL`, an OpenAI-compatible server); "
        "empty is the default one. One that is named here may rewrite kernels; a project "
        "names one where its folder is allowed.",
        {"type": "string"},
    ),
    _choice(
        "plan",
        ("fixed", "model"),
        'What a search tries first: what gained most on other kernels, or with `"model"` what the model would try.',
    ),
    _at_most(
        "optimizeSeconds",
        "Timeout of *Optimize*, *Reduce memory*, *Fix*, *Fix all* and *Generate*, in seconds.",
    ),
    _at_most(
        "verifySeconds",
        "Timeout for verifying one quick fix, or one comparison of *Verify*, in seconds.",
    ),
    _choice(
        "verifyFixes",
        ("first", values.BACKGROUND),
        "When a quick fix that keeps the results is verified: before it is applied, or with "
        f'`"{values.BACKGROUND}"` after it, which takes milliseconds to apply; you are told what did not pass.',
    ),
    _choice(
        "compile",
        ("onPause", "onSave", "off"),
        'When nvcc compiles in the background: also `"onSave"` and `"off"`.',
    ),
    _several(
        "architectures",
        values.architectures,
        'a list of architectures such as ["sm_80", "sm_90"]',
        'GPU architectures compiled in the background, such as `["sm_80", "sm_90"]`; empty is the one of `arch`.',
        pattern=f"^{values.ARCH.pattern}$",
    ),
    _at_most("compileSeconds", "Compile timeout per architecture, in seconds."),
    _switch("codeLens", "Show code lenses above kernels."),
    Setting(
        "inlayHints",
        values.hints,
        f'true, false or "{values.ONLY_HOT}"',
        "Show the transactions of wasteful accesses as inlay hints; with "
        f'`"{values.ONLY_HOT}"` on lines alone that take a tenth of a kernel\'s memory time, by estimate.',
        {"enum": [True, False, values.ONLY_HOT]},
    ),
    Setting(
        "workspaceFiles",
        values.count,
        "a number of files, or 0",
        "Maximum number of unopened files to analyse per workspace folder (0: off).",
        {"type": "integer", "minimum": 0},
    ),
    _switch("ghostText", "Suggest kernels for comments as ghost text, once compiled and compared."),
    _at_most("ghostTextSeconds", "Timeout for a ghost-text kernel, in seconds."),
)
"""All of them, in the order in which an editor shows them."""

_NAMES = frozenset(setting.name for setting in SETTINGS)

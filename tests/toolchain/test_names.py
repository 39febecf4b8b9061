from __future__ import annotations

import shutil
import subprocess

import pytest
from warpwright.toolchain.names import demangle

MANGLED = [
    "_Z1kPf",
    "_Z9transposePfPKfi",
    "_ZN2ns2tkIfLin3ENS_1AEEEvPT_PT1_",
    "_ZN2ns2tkIdLi7EPKNS_1AEEEvPT_PT1_",
    "_Z6reduceIfLj256ELb1EEvPT_S1_i",
    "_Z1kIN2ns3BoxIiEES2_Lm8EEvT_T0_",
    "_Z4packIJifdEEvDpT_",
    "_ZN1a1b1c4deepIyEEvPT_",
    "_ZL5quietPf",
    "_Z1kISt4pairIifEEvPT_",
]


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt to compare with")
@pytest.mark.parametrize("mangled", MANGLED)
def test_names_agree_with_binutils(mangled: str) -> None:
    full = (
        subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True)
        .stdout.strip()
        .replace("> >", ">>")
    )
    ours = demangle(mangled)
    assert full.startswith((f"{ours}(", f"void {ours}("))


@pytest.mark.parametrize("mangled", ["_Z", "_Z9short", "_ZN", "_Z1kIXadL_Z1fvEEEvv", "_Zok", "_Z1kILf3f800000EEvv"])
def test_what_is_not_read_never_becomes_a_wrong_name(mangled: str) -> None:
    assert demangle(mangled) in (mangled, "k<...>")

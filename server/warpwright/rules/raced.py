"""Races that the text shows, as findings: each with its two threads, their turns of the loop, and the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath

from warpwright.facts.model import AccessKind, Basis, Kernel, Race
from warpwright.rules.base import Finding, Fix, Related
from warpwright.rules.verdicts import Claim
from warpwright.rules.words import block_of, launch_evidence, launch_of, place_of

_DOES = {AccessKind.LOAD: "reads", AccessKind.STORE: "writes", AccessKind.ATOMIC: "updates"}


UPDATE = Fix("update-atomically", "Update it by an atomic function")


def of_text(kernel: Kernel, wanted: Callable[[Race], bool], wait: Fix) -> Iterator[Claim]:
    """A claim for each place whose races are wanted, of launches whose block is in the text. What is stored at once,
    or by two blocks, no wait parts."""
    found: set[tuple[str, int, int]] = set()
    for race in kernel.races:
        launch = launch_of(kernel, race.launch)
        if not wanted(race) or launch is None or launch.basis is not Basis.EXACT or race.other.key in found:
            continue
        found.add(race.other.key)
        finding = Finding(
            span=race.other,
            message=f"A race: {_words(race)}; {block_of(launch)}.",
            evidence={
                "array": race.array,
                "threads": list(race.threads),
                "blocks": [list(block) for block in race.blocks],
                "turns": None if race.turns is None else list(race.turns),
                "byte": race.address,
                **launch_evidence(launch),
            },
            fixes=_fixes(race, wait),
            related=(Related(race.write, "the other side of the race writes here"),),
        )
        places = ((race.write, race.space, race.by), (race.other, race.space, race.kind))
        yield Claim(finding, race.array, places, launch, race.blocks)


def _fixes(race: Race, wait: Fix) -> tuple[Fix, ...]:
    in_one_line = (race.write.path, race.write.line) == (race.other.path, race.other.line)
    at_once = race.at_once or (race.other.key == race.write.key and race.turns is None)
    is_parted = not at_once and race.blocks[0] == race.blocks[1]
    return (*((wait,) if is_parted else ()), *((UPDATE,) if in_one_line and race.kind is not race.by else ()))


def _words(race: Race) -> str:
    one, other = race.threads
    across = race.blocks[0] != race.blocks[1]
    first = f"thread {one} of block {place_of(race.blocks[0])}" if across else f"thread {one}"
    second = f"thread {other} of block {place_of(race.blocks[1])}" if across else f"thread {other} of the block"
    if not across:
        first += ", of the same warp," if race.in_warp else ", of another warp,"
    byte = f"byte {race.address} of {race.array}"
    if race.kind is AccessKind.STORE and race.by is AccessKind.STORE:
        second_does, first_does = "writes", "writes another value"
    else:
        second_does, first_does = _DOES[race.kind], f"{_DOES[race.by]} it"
    same_place = race.write.key == race.other.key
    at = "" if same_place else f" at line {race.write.line}{_elsewhere(race)}"
    if race.turns is not None:
        at += f" in turn {race.turns[0]}"
    return f"{second} {second_does} {byte} here{_turns(race)} where {first} {first_does}{at}, and {_missing(race)}"


def _turns(race: Race) -> str:
    """` in turn 1 of the loop`"""
    return "" if race.turns is None else f" in turn {race.turns[1]} of the loop"


def _missing(race: Race) -> str:
    if race.blocks[0] != race.blocks[1]:
        return "nothing orders the blocks"
    if race.at_once:
        return "both do so at once"
    return "no __syncwarp() stands between" if race.in_warp else "no barrier stands between"


def _elsewhere(race: Race) -> str:
    return f" of {PurePath(race.write.path).name}" if race.write.path != race.other.path else ""

"""Races that the text shows, as findings: each with its two threads, their turns of the loop, and the byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import PurePath

from warpwright.facts.model import AccessKind, Basis, Kernel, Race
from warpwright.rules.base import Finding, Fix, Related
from warpwright.rules.verdicts import Claim
from warpwright.rules.words import block_of, launch_evidence, launch_of, place_of

_DOES = {AccessKind.LOAD: "reads", AccessKind.STORE: "writes", AccessKind.ATOMIC: "updates"}

UPDATE = Fix("update-atomically", "Update it with an atomic function")


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
            message=f"{_headline(race)}\n{_words(race)}; {block_of(launch)}.",
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


def _headline(race: Race) -> str:
    """``Race on `tile`: thread 32 writes what thread 31 reads, no barrier between``"""
    one, other = race.threads
    if race.at_once:
        return f"Race on `{race.array}`: threads {one} and {other} of one warp write different values at once"
    if race.blocks[0] != race.blocks[1]:
        ends, between = [place_of(block) for block in race.blocks], "nothing orders them"
    else:
        ends = [str(one), str(other)]
        between = "no __syncwarp() between" if race.in_warp else "no barrier between"
    who = "block" if race.blocks[0] != race.blocks[1] else "thread"
    if _are_stores(race):
        return f"Race on `{race.array}`: {who}s {' and '.join(ends)} write different values, {between}"
    return (
        f"Race on `{race.array}`: {who} {ends[0]} {_DOES[race.by]} what {who} {ends[1]} {_DOES[race.kind]}, {between}"
    )


def _words(race: Race) -> str:
    """`Thread 31 reads byte 128 here, thread 32 of another warp writes it at line 4`"""
    one, other = race.threads
    if race.blocks[0] != race.blocks[1]:
        first, second = (
            f"thread {thread} of block {place_of(block)}"
            for thread, block in zip(race.threads, race.blocks, strict=True)
        )
    else:
        first, second = f"thread {one} of {'the same' if race.in_warp else 'another'} warp", f"thread {other}"
    does = "writes another value" if _are_stores(race) else f"{_DOES[race.by]} it"
    at = "" if race.write.key == race.other.key else f" at line {race.write.line}{_elsewhere(race)}"
    if race.turns is not None:
        at += f" in iteration {race.turns[0]}"
    return f"T{second[1:]} {_DOES[race.kind]} byte {race.address:,} here{_turns(race)}, {first} {does}{at}"


def _are_stores(race: Race) -> bool:
    return race.kind is AccessKind.STORE and race.by is AccessKind.STORE


def _turns(race: Race) -> str:
    """` in iteration 1 of the loop`"""
    return "" if race.turns is None else f" in iteration {race.turns[1]} of the loop"


def _elsewhere(race: Race) -> str:
    return f" of {PurePath(race.write.path).name}" if race.write.path != race.other.path else ""

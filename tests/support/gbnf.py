"""Texts that a GBNF grammar admits, drawn at random."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

_TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\{\d*,?\d*\}|[\w-]+|[()|?*+])""")


STEPS = 400


@dataclass
class Grammar:
    """The rules of a grammar, each as its tokens. After `STEPS` rules the first alternative is taken, which must lead
    to an end, and nothing comes that may be left out."""

    rules: dict[str, list[str]]
    steps: int = 0

    @staticmethod
    def of(text: str) -> Grammar:
        pairs = (line.split(" ::= ", 1) for line in text.splitlines())
        return Grammar({name: [each for each in _TOKEN.findall(body) if each] for name, body in pairs})

    def drawn(self, chance: random.Random, more: float) -> str:
        """One text. `more` is how often what may be left out, or come again, is there."""
        self.steps = 0
        text, _ = self._choice(self.rules["root"], 0, chance, more, True)
        return text

    def _choice(self, body: list[str], at: int, chance: random.Random, more: float, wanted: bool) -> tuple[str, int]:
        """One alternative from `at` on, and where the alternatives end. Those not `wanted` are passed unread."""
        ends, starts = at, [at]
        depth = 0
        while ends < len(body) and (depth or body[ends] != ")"):
            depth += (body[ends] == "(") - (body[ends] == ")")
            if body[ends] == "|" and not depth:
                starts.append(ends + 1)
            ends += 1
        if not wanted:
            return "", ends
        begin = chance.choice(starts) if self.steps < STEPS else at
        text = ""
        while begin < ends and body[begin] != "|":
            piece, begin = self._repeated(body, begin, chance, more)
            text += piece
        return text, ends

    def _repeated(self, body: list[str], at: int, chance: random.Random, more: float) -> tuple[str, int]:
        _, after = self._one(body, at, chance, more, False)
        least, most = 1, 1
        if after < len(body) and (body[after] == "?" or body[after][0] == "{"):
            least, most = (0, 1) if body[after] == "?" else (int(each) for each in body[after][1:-1].split(","))
            times = least
            while times < most and self.steps < STEPS and chance.random() < more:
                times += 1
            return "".join(self._one(body, at, chance, more, True)[0] for _ in range(times)), after + 1
        return self._one(body, at, chance, more, True)[0], after

    def _one(self, body: list[str], at: int, chance: random.Random, more: float, wanted: bool) -> tuple[str, int]:
        token = body[at]
        if token == "(":
            text, end = self._choice(body, at + 1, chance, more, wanted)
            return text, end + 1
        if not wanted:
            return "", at + 1
        if token[0] == '"':
            return token[1:-1].replace('\\"', '"'), at + 1
        if token[0] == "[":
            letters = re.sub(
                r"(.)-(.)", lambda each: "".join(map(chr, range(ord(each[1]), ord(each[2]) + 1))), token[1:-1]
            )
            return chance.choice(letters), at + 1
        self.steps += 1
        return self._choice(self.rules[token], 0, chance, more, True)[0], at + 1

"""What a search found and nobody has applied yet: kept until it is, or until newer ones push it out."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

MOST_OFFERS = 16

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer of the job "optimize" with one of its choices. `given` is what was open when it was asked, by path;
    `wish` are the words that it was asked in, and `report` is where all candidates stand, None where it could not be
    written."""

    number: str
    uri: str
    kernel: str
    goal: str
    given: Mapping[str, str]
    answer: Json
    wish: Sequence[str]
    report: Path | None
    place: int = 0

    @property
    def choice(self) -> Json:
        chosen: Json = self.answer["choices"][self.place]
        return chosen

    def to_json(self) -> Json:
        """What a client shows of it: the diff with its badge and its explanation, and what else may be chosen."""
        candidates = self.answer["outcome"]["candidates"]
        choice = self.choice
        return {
            "id": self.number,
            "uri": self.uri,
            "kernel": self.kernel,
            "goal": self.goal,
            **{key: choice[key] for key in ("candidate", "title", "badge", "explanation")},
            "diff": candidates[choice["candidate"]]["diff"],
            "choices": [{key: each[key] for key in ("candidate", "title", "badge")} for each in self.answer["choices"]],
        }


class Offers:
    """The last offers, by number."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Offer] = OrderedDict()
        self._numbers = count(1)

    def keep(self, uri: str, given: Mapping[str, str], answer: Json, wish: Sequence[str], report: Path | None) -> Offer:
        number, outcome = str(next(self._numbers)), answer["outcome"]
        offer = Offer(number, uri, outcome["kernel"], outcome["goal"], given, answer, wish, report)
        self._kept[number] = offer
        while len(self._kept) > MOST_OFFERS:
            self._kept.popitem(last=False)
        return offer

    def find(self, number: object, candidate: object = None) -> Offer | None:
        """The offer of that number, with another candidate of it where one is named; None where there is none."""
        offer = self._kept.get(str(number))
        if offer is None or candidate is None:
            return offer
        places = [place for place, each in enumerate(offer.answer["choices"]) if each["candidate"] == candidate]
        return replace(offer, place=places[0]) if places else None

    def last(self, uri: str, kernel: str) -> Offer | None:
        """The newest offer for a kernel of a document."""
        return next((o for o in reversed(self._kept.values()) if (o.uri, o.kernel) == (uri, kernel)), None)

    def forget(self, uri: str, kernel: str) -> None:
        """Drop the offers for a kernel: one of them was applied, and what the others were made of is gone."""
        for offer in [o for o in self._kept.values() if (o.uri, o.kernel) == (uri, kernel)]:
            del self._kept[offer.number]

"""The chapter card ``notebooks/<slug>.yaml``: what a chapter is and what it claims."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from paperbook import project
from paperbook.errors import CardError, PaperbookError
from paperbook.evidence.intervals import METHODS
from paperbook.evidence.rules import Rule

Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Paper(_Strict):
    title: Text
    authors: list[Text]
    year: int
    key: Text
    arxiv: str = ""
    url: str = ""

    @property
    def link(self) -> str:
        return self.url or (f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else "")


class Test(_Strict):
    """One condition of a claim: what is measured and the rule that it must satisfy."""

    name: str
    statistic: Text
    rule: Text

    @field_validator("rule")
    @classmethod
    def _readable(cls, text: str) -> str:
        Rule.parse(text)
        return text


class Claim(_Strict):
    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+(-[A-Za-z0-9]+)+$")]
    spec: Text
    statement: Text
    source: Literal["abstract", "theorem", "section", "ours"]
    kind: Literal["theorem", "mechanism", "empirical", "scale"]
    tests: tuple[Test, ...] = ()
    interval: str = ""
    note: str = ""
    needs: str = ""
    proxy: str = ""

    @model_validator(mode="before")
    @classmethod
    def _single_test(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not ({"statistic", "rule"} & data.keys()):
            return data
        if "tests" in data:
            raise ValueError("give either statistic and rule, or tests, not both")
        data = dict(data)
        data["tests"] = [
            {"name": "", "statistic": data.pop("statistic", ""), "rule": data.pop("rule", "")}
        ]
        return data

    @model_validator(mode="after")
    def _complete(self) -> "Claim":
        if self.kind == "scale":
            if self.tests or not (self.needs and self.proxy):
                raise ValueError("a scale claim has needs and proxy, and no statistic or rule")
        elif not self.tests:
            raise ValueError("statistic and rule are missing")
        names = [test.name for test in self.tests]
        if len(set(names)) < len(names) or (len(names) > 1 and "" in names):
            raise ValueError("each of several tests needs a name of its own")
        if self.interval and self.interval not in METHODS:
            raise ValueError(f"interval must be one of {', '.join(METHODS)}")
        return self

    @property
    def method(self) -> str:
        """How the interval is made: the card's word, else by kind."""
        return self.interval or ("worst" if self.kind == "theorem" else "t")


class Mapped(_Strict):
    """A row of the method map: an equation, the function that codes it, the test that checks it."""

    equation: Text
    function: Annotated[str, Field(pattern=r"^paperbook\.[\w.]+$")]
    test: Annotated[str, Field(pattern=r"^tests/[\w/]+\.py::\w+$")]


class Card(_Strict):
    slug: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    title: Text
    part: str
    paper: Paper
    known_from: Literal["full text", "abstract"]
    profiles: dict[str, dict[str, Any]]
    sweep: dict[str, list[Any]]
    method: tuple[Mapped, ...]
    claims: Annotated[tuple[Claim, ...], Field(min_length=1)]

    @field_validator("part")
    @classmethod
    def _known_part(cls, part: str) -> str:
        if part not in project.PARTS:
            raise ValueError(project.unknown("part", part, project.PARTS))
        return part

    @field_validator("profiles")
    @classmethod
    def _three_profiles(cls, profiles: dict) -> dict:
        missing = {"smoke", "book", "paper"} - profiles.keys()
        if missing:
            raise ValueError(f"missing: {', '.join(sorted(missing))}")
        if profiles["book"]:
            raise ValueError("book is the notebook's own defaults, so it must be {}")
        return profiles

    @model_validator(mode="after")
    def _claims_fit(self) -> "Card":
        ids = [claim.id for claim in self.claims]
        for claim in self.claims:
            if not claim.id.startswith(f"{self.slug}-"):
                raise ValueError(f"claims: id {claim.id!r} must start with '{self.slug}-'")
            if claim.proxy and claim.proxy not in ids:
                raise ValueError(f"claims: {claim.id}: proxy {claim.proxy!r} is no claim here")
        twice = sorted({name for name in ids if ids.count(name) > 1})
        if twice:
            raise ValueError(f"claims: id {twice[0]!r} is used twice")
        return self

    def claim(self, claim_id: str) -> Claim:
        for claim in self.claims:
            if claim.id == claim_id:
                return claim
        raise PaperbookError(project.unknown("claim", claim_id, [c.id for c in self.claims]))

    def profile(self, name: str) -> dict[str, Any]:
        if name not in self.profiles:
            raise PaperbookError(f"{self.slug}: {project.unknown('profile', name, self.profiles)}")
        return self.profiles[name]


class _UniqueKeys(yaml.SafeLoader):
    """YAML keeps the last of two equal keys without a word; a card must not."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=deep) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def read_card(path: Path) -> Card:
    """Read and validate the card at ``path``.

    Raises:
        CardError: one line with file, field and reason.
    """
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
    except FileNotFoundError:
        raise CardError(f"{path.name}: no such card") from None
    except yaml.YAMLError as error:
        raise CardError(f"{path.name}: not readable as YAML: {_one_line(str(error))}") from None
    if not isinstance(data, dict):
        raise CardError(f"{path.name}: expected a mapping of fields")
    try:
        card = Card.model_validate(data)
    except ValidationError as error:
        raise CardError(f"{path.name}: {_first(error)}") from None
    if card.slug != path.stem:
        raise CardError(f"{path.name}: slug: is {card.slug!r}, must be the file's name")
    return card


def load_card(slug: str) -> Card:
    """The card of chapter ``slug`` of this book."""
    return read_card(project.card_path(project.require_slug(slug)))


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    reason = _one_line(first["msg"].removeprefix("Value error, "))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{field}: {reason}{more}" if field else f"{reason}{more}"


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()

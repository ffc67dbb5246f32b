"""Chapter cards: what is refused, and how it is said."""

import copy

import pytest
import yaml
from toybook import CARD

from paperbook.card import load_card, read_card
from paperbook.errors import CardError, PaperbookError


def broken(**changes):
    card = copy.deepcopy(CARD)
    card.update(changes)
    return card


def broken_claim(**changes):
    claim = {**CARD["claims"][0], **changes}
    return broken(claims=[{k: v for k, v in claim.items() if v is not None}])


RENAMED = broken_claim(id="other-small") | {"slug": "other"}


@pytest.mark.parametrize(
    ("card", "field", "reason"),
    [
        (broken(claims=[]), "claims", "at least 1 item"),
        (RENAMED, "slug", "must be the file's name"),
        (broken(part="agent"), "part", "did you mean agents"),
        (broken(profiles={"book": {}}), "profiles", "missing: paper, smoke"),
        (broken(profiles={**CARD["profiles"], "book": {"count": 1}}), "profiles", "must be {}"),
        (broken(colour="red"), "colour", "Extra inputs"),
        (broken(known_from="hearsay"), "known_from", "full text"),
        (broken_claim(rule="about 3"), "claims.0", "is not one of"),
        (broken_claim(rule=None), "claims.0", "at least 1 character"),
        (broken_claim(id="other-small"), "claims", "must start with 'toy-'"),
        (broken_claim(kind="scale"), "claims.0", "needs and proxy"),
        (broken_claim(interval="guess"), "claims.0", "interval must be one of"),
        (broken_claim(tests=[]), "claims.0", "not both"),
        (broken(claims=[CARD["claims"][0]] * 2), "claims", "used twice"),
    ],
)
def test_a_bad_card_is_one_line_with_file_field_and_reason(tmp_path, card, field, reason):
    path = tmp_path / "toy.yaml"
    path.write_text(yaml.safe_dump(card))
    with pytest.raises(CardError) as caught:
        read_card(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("toy.yaml: ")
    assert field in message
    assert reason in message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("slug: toy\nslug: toy\n", "stands twice"),
        ("a: [1", "not readable"),
        ("- 1", "mapping"),
        ("", "mapping"),
    ],
)
def test_yaml_that_is_no_card(tmp_path, text, reason):
    path = tmp_path / "toy.yaml"
    path.write_text(text)
    with pytest.raises(CardError, match=reason):
        read_card(path)


def test_unknown_slug_offers_the_closest(toy_book):
    with pytest.raises(PaperbookError, match="unknown chapter 'toyy'; did you mean toy"):
        load_card("toyy")


def test_unknown_profile_and_claim(toy_book):
    card = load_card("toy")
    with pytest.raises(PaperbookError, match="did you mean smoke"):
        card.profile("smok")
    with pytest.raises(PaperbookError, match="unknown claim 'toy-big'"):
        card.claim("toy-big")

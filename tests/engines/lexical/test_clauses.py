"""The clauses of a sentence, and answers that are taken from the right one."""

from __future__ import annotations

import pytest

from polyhop.engines.lexical.clauses import clauses
from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.negation import DENIED
from polyhop.engines.lexical.prompt import ParsedPassage, Sentence
from polyhop.engines.lexical.reader import read


@pytest.mark.parametrize(
    ("text", "expected"),  # each clause, behind what it goes on from
    [
        ("Ann was born in 1949 and Tom in 1925.", ["Ann was born in 1949", "Ann was born | Tom in 1925."]),
        ("Ann founded Dun in 1920 and died in 1950.", ["Ann founded Dun in 1920", "Ann | died in 1950."]),
        ("Ann saw Dun and left it in 1950.", ["Ann saw Dun", "Ann saw Dun| left it in 1950."]),
        (
            "The capital of Arn is Hesk, that of Bel Kolm.",
            ["The capital of Arn is Hesk", "The capital | that of Bel Kolm."],
        ),
        ("Dun reads port 1 for users and on port 2.", ["Dun reads port 1 for users and on port 2."]),
        ("It uses port 1 for users and port 2 for peers.", ["It uses port 1 for users", "It uses | port 2 for peers."]),
        ("Dun is a film of 1972 and stars Tom.", ["Dun is a film of 1972", "Dun is a film of 1972| stars Tom."]),
        ("Ann is a singer and actress of Arn.", ["Ann is a singer and actress of Arn."]),
        ("Max_a is 3 and the limit of max_b is 8.", ["Max_a is 3", "the limit of max_b is 8."]),
        ("Ann met Tom Fox, the head of Dun.", ["Ann met", "Tom Fox, the head of Dun."]),
        ("Ann Lee and Tom Fox founded Dun.", ["Ann Lee and Tom Fox founded Dun."]),
        ("Dun was founded by Ann Lee and Tom Fox.", ["Dun was founded by Ann Lee and Tom Fox."]),
        ("The film stars Ann Lee and Tom Fox as twins.", ["The film stars Ann Lee and Tom Fox as twins."]),
    ],
)
def test_clauses(text: str, expected: list[str]) -> None:
    found = clauses(text)
    shown = [f"{text[: each.shared]}| {text[each.start : each.end]}".removeprefix("| ") for each in found]
    assert shown == expected


MILLS = "Grey Heron was designed by Tom Fox and Old Mill was designed by Ann Lee."


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("When was Tom Fox born?", "Ann Lee was born in 1949 and Tom Fox in 1925.", "1925"),
        ("When was Ann Lee born?", "Ann Lee was born in 1949 and Tom Fox in 1925.", "1949"),
        (
            "Who designed Old Mill?",
            MILLS,
            "Ann Lee",
        ),
        (
            "Who designed Grey Heron?",
            MILLS,
            "Tom Fox",
        ),
        ("When did Ann Lee leave Dun?", "Ann Lee founded Dun in 1920 and left it in 1950.", "1950"),
        ("Who wrote Old Mill?", "Grey Heron was written by Tom Fox, and Old Mill by Ann Lee.", "Ann Lee"),
        ("Who founded Old Mill?", "Tom Fox founded Grey Heron, while Ann Lee founded Old Mill.", "Ann Lee"),
        ("Which port does Dun use for peers?", "Dun listens on port 74 for users and on port 75 for peers.", "75"),
        ("In the books of the town, who is named as the one who designed Old Mill?", MILLS, "Ann Lee"),
        ("Who is the brother of Kim Ost?", "Kim Ost has a sister, Ann Lee, and a brother, Tom Fox.", "Tom Fox"),
        ("Who is the owner of Old Mill?", "Ann Lee married Tom Fox, the owner of Old Mill.", "Tom Fox"),
    ],
)
def test_an_answer_stands_in_the_clause_that_tells_of_what_is_asked(question: str, text: str, answer: str) -> None:
    page = ParsedPassage("1", "Notes", (Sentence("1s1", text),))
    assert read(question, decompose(question), (page,))[0].text == answer


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Ann Lee and Tom Fox were born in Cork.", True),
        ("Ann Lee was born in Cork. Tom Fox was born in Cork, too.", True),
        ("Ann Lee was born in Cork and Tom Fox in Leith.", False),
        ("Ann Lee was born in Cork, Tom Fox in Leith.", False),
        ("Ann Lee was born in Cork. Tom Fox was never born in Cork.", False),
        ("Unlike Ann Lee, Tom Fox was born in Cork.", False),
        ("Ann Lee was born in Cork, and it is a myth that Tom Fox was born in Cork.", False),
        ("Ann Lee was born in Cork; Tom Fox refused to tell.", False),
    ],
)
def test_a_claim_on_both_of_two_is_checked_for_each(text: str, holds: bool) -> None:
    sentences = tuple(Sentence(f"1s{n}", each) for n, each in enumerate(text.split(". "), 1))
    question = "Were Ann Lee and Tom Fox both born in Cork?"
    answers = read(question, decompose(question), (ParsedPassage("1", "Notes", sentences),))
    assert any(answer.text == "yes" and answer.probability > 0.6 for answer in answers) == holds


def test_what_a_step_found_is_not_asked_for_in_the_end() -> None:
    pages = tuple(
        ParsedPassage(str(n), title, (Sentence(f"{n}s1", text),))
        for n, (title, text) in enumerate(
            {"Dun": "Dun is owned by Ann Lee.", "Ann Lee": "Ann Lee likes kilns."}.items()
        )
    )
    question = "In which town does the owner of Dun live?"
    answers = read(question, decompose(question), pages)
    assert all(answer.text != "Ann Lee" or answer.probability < 0.1 for answer in answers)


@pytest.mark.parametrize(
    ("ann", "tom", "answer"),
    [
        ("She works for Kestrel.", "He works for Kestrel.", "Kestrel"),
        ("She works for Kestrel.", "He works for Harrier.", None),
        ("Ann Lee and Tom Fox work for Kestrel.", "He is tall.", "Kestrel"),
    ],
)
def test_what_is_asked_of_both_is_said_of_each(ann: str, tom: str, answer: str | None) -> None:
    told = tuple(
        ParsedPassage(str(n), title, (Sentence(f"{n}s1", f"{title} is a smith."), Sentence(f"{n}s2", text)))
        for n, (title, text) in enumerate({"Ann Lee": ann, "Tom Fox": tom}.items(), 1)
    )
    question = "Which firm do both Ann Lee and Tom Fox work for?"
    best = read(question, [question], told)[0]
    assert (best.text if best.probability > DENIED else None) == answer

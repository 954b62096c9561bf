"""Text analysis: sentences, Lucene's words, folded names and titles."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyhop.data.text import (
    FUNCTION_WORDS,
    WORD,
    bare_title,
    clean,
    code_parts,
    content_terms,
    fold,
    key_words,
    short_title,
    split_sentences,
    terms,
    title_key,
    title_names,
    undivided,
    with_code_parts,
)

# --- sentences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "marked",
    [
        # initials; a letter that ends a sentence
        "It was written by J. R. R. Tolkien and C.S. Lewis.| Both taught at Oxford.",
        "It collapsed in World War I.| The union was a result of it.",
        "This was the end of Gerald Ford's.| This Congress was the first.",
        # abbreviations: before names and numbers, in a sentence, and at its end
        "He played Cpl. Jennings and Dr. Watson.| Mrs. Hudson was Lt. Gov. Ames.",
        "He lived c.1295 – aft. 1361, fl. 1340, d. January 1362.",
        "It reached No. 29 in 1966, and nos. 3 and 4 later.",
        "She asked, and he said no.| Then he left.",
        "Roe v. Wade was decided vs. Smith e.g. here, i.e. there.",
        "He moved to the U.S.| There he died.",
        "She worked for Acme Inc. Records until Acme Ltd.| In 1990 she left.",
        "Hal Roach, Jr. (1918–1972) was a producer.",
        "He lived near Blvd. Raspail (pop. 200).| He left Fifth Ave.| There he died.",
        'Sgt. Bilko (a.k.a. "The Phil Silvers Show") ran on.',
        # decimals, dotted names and numbers
        "He founded Newjazz.com and e-mails me@example.com daily.",
        # marks inside and after quotations and parentheses, ellipses, titles with a mark
        'He said "Go!" and left.| She stayed.',
        '"Is it?" he asked.| "It is."| Then he left.',
        "“It was late.”| “Go.”",
        "He wrote it (with help?) in Paris.",
        "Kill Django... Kill First is a film.",
        "He won.| ... Everything else is silent.",
        '"Help!" (1965) is a film.| The single "Oliver!" (1968) won.',
        "Viva Zapata! is a film.| Yahoo! Inc. is a firm.| Go!| Now.",
        # footnotes, pieces without a letter, HTML
        "It was late.[3]| He left.[1][citation needed]| She stayed.",
        "He won. .| She lost.",
        "1. Mangang came.| 2. Luwang left.",
        "... !",
        "First line.<br>|Second <b>line</b><BR />| third line.</p>|x < y.| It ended.",
        # 2WikiMultihopQA's spacing
        'It is based on the novel" La Bête Humaine" by Zola.| Zola( 1840 – 1902) was French.',
        # scripts
        "彼は作家。|東京に住む！|本当？",
        "「行け。」|彼は言った。",
        "他来了！！|けいおん！（2009）は。",
        "「水位計は町を守る。だから作る。」と語った。|川（深い。速い。）は北へ。",
        "Sie sagte: „Es ist spät. Wir gehen.“ und ging.| „Ja!“",
        "Sie sagte: „Es ist spät. Wir gehen.“ und ging." + "| Er blieb." * 30,  # early in a long text
        "هل ذهب؟| نعم ذهب.",
        "यह एक वाक्य है।| यह दूसरा है।",
        "Élodie est née à Paris.| Elle vit à Lyon.",
        # ordinals and abbreviations of German
        "Am 3. Oktober kam Dr. Berg.| Er blieb bis zum 5. Tag.",
        "Im 19. Jahrhundert gab es, z. B. in Tarn, d. h. im Tal, Mühlen bzw. Sägen.| Es waren 12.| Danach brannten 3.",
        "I am 3.| Bob left.",
        "It took 3 hr.| John left.",
        "They die 30.| Bob lived.",
    ],
)
def test_splits_where_marked(marked: str) -> None:
    expected = [piece.strip() for piece in marked.split("|")]
    assert split_sentences(marked.replace("|", "")) == expected


PROSE = st.lists(
    st.one_of(
        st.sampled_from(
            "The Smith St . ... ! ? \" ' ” ) ( [ U.S. c. 1500 J. no No. 5 Inc. e.g. “ 。 「 」 … He a 3.5 etc.".split()
        ),
        st.sampled_from(["\n", "\n\n", "\u3000", "<br>", "</p>", "1.", "؟"]),
        st.text(max_size=6),
    ),
    max_size=40,
)


@given(PROSE, st.sampled_from(["", " ", "\n"]))
def test_joined_sentences_are_the_text_and_none_is_split_again(pieces: list[str], glue: str) -> None:
    text = glue.join(pieces)
    sentences = split_sentences(text)
    # Only the space that CJK full stops and HTML breaks lack may come in.
    assert "".join(" ".join(sentences).split()) == "".join(text.split())
    if not re.search("[。！？<]", text):
        assert " ".join(sentences) == " ".join(text.split())
    assert len(sentences) < 2 or all(any(map(str.isalpha, sentence)) for sentence in sentences)
    if glue == " ":
        assert all(split_sentences(sentence) == [sentence] for sentence in sentences)


@pytest.mark.parametrize("start", ["", ".", "x"])
def test_the_longest_runs_are_read(start: str) -> None:
    """Of whatever a pattern could go through again and again: quadratic ones take minutes."""
    runs = [*("x|\"|A. |a. b. |... |St. |a.b|a'|(|()|。|<|<br |[1]|1,|e\u0301".split("|")), ". ", " ", "\n "]
    for run in runs:
        text = f"{start}{run * (30_000 // len(run))}x"
        for function in (split_sentences, terms, WORD.findall, title_key, bare_title, short_title, with_code_parts):
            function(text)


# --- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # What io.anserini.analysis.AnalyzerUtils.analyze(DefaultEnglishAnalyzer.newDefaultInstance(), text) returns.
        ("The U.S. economy's growth", "u. economi growth"),
        ("1,000,000 people, 3.5 km and v.2", "1,000,000 peopl 3.5 km v 2"),
        ("O'Sullivan's and O’Neill’s rock'n'roll don't", "o'sullivan o’neil rock'n'rol don't"),
        ("user@example.com http://x.y/z_1?a=b", "user example.com http x.y z_1 b"),
        ("Besançon naïve Straße İstanbul", "besançon naïv straße istanbul"),
        ("ALASKA's Ponies' it's x,y 1,5 1.5.2 1a.b", "alaska poni x y 1,5 1.5.2 1a.b"),
        ("東京都 ひら カタカナ", "東 京 都 ひ ら カタカナ"),
        ("m² and ½", "m"),
        (
            "us is ms possibly assembly technology mythologies nobly eulogy",
            "us ms possibl assembl technolog mytholog nobli eulogi",
        ),
        ("s 's to be or not to be", "s s"),
        ("e\u0301tude हिन्दी", "e\u0301tud हिन्दी"),
    ],
)
def test_terms_are_lucenes(text: str, expected: str) -> None:
    assert terms(text) == expected.split()


def test_content_terms_fold_accents_and_drop_function_words() -> None:
    assert content_terms("Where was Émile Zola's house?") == ("emil", "zola", "hous")
    assert content_terms("Émile’s") == content_terms("Emile's") == ("emil",)
    assert not any(content_terms(word) for word in FUNCTION_WORDS)


# --- names and titles ------------------------------------------------------------------------------------------------


def test_fold() -> None:
    written = "Besançon Łódź Søren Æthelred Straße İstanbul Nguyễn O’Neill PLAIN ﬁn Ζαΐμης"
    assert fold(written) == "besancon lodz soren aethelred strasse istanbul nguyen o'neill plain fin ζαιμησ"


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Help! (film)", ("help film", "help")),
        ("(I Can't Get No) Satisfaction", ("i cant get no satisfaction",)),
        ("Paris, Texas", ("paris texas", "paris")),
        ("Beyoncé", ("beyonce",)),
        ("The Kiln", ("the kiln", "kiln")),
        ("The Who", ("the who",)),  # what is left would be too short a name
        ("U.S. Route 1", ("us route 1",)),
        ("Valentine’s Day", ("valentine day",)),
        *((hawaii, ("hawaii",)) for hawaii in ("Hawaiʻi", "Hawai‘i", "Hawai’i", "Hawai'i", "HAWAII")),
    ],
)
def test_the_keys_of_a_title(title: str, names: tuple[str, ...]) -> None:
    assert title_names(title) == names
    assert title_key(title) == names[0]


@pytest.mark.parametrize(
    ("title", "before", "short"),
    [
        ("20.5. Configuration", "20.5. ", "Configuration"),
        ("A.1 Terms", "A.1 ", "Terms"),
        ("Chapter 3. Moons", "Chapter 3. ", "Moons"),
        ("time — Access to time", "", "time"),
        ("Moons - Guide", "", "Moons"),
        ("Moons: a list", "", "Moons"),
        ("ls(1) Manual Page", "", "ls"),
        ("open(3p)", "", "open"),
        # as they are
        *((title, "", title) for title in ("Paris, Texas", "Help! (film)", "Spider-Man", "3 Idiots", "R.E.M.", "24:7")),
        *((title, "", title) for title in ("a::b", "Solaris (1972)", "1.FC Bonn", "", "—")),
    ],
)
def test_the_short_form_of_a_title(title: str, before: str, short: str) -> None:
    assert short_title(title) == (before, short)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("os.urandom", "os urandom"),
        ("max_wal_senders", "max wal senders"),
        ("__init__", "init"),
        ("a.b.read_all", "read all"),
        ("See os.path.join() and x_y, or end.Next", "os path join end Next"),
        ("-v, --dry-run: a well-known re-run of - or e-mail", "optionv optiondryrun"),
        *((text, "") for text in ("U.S. and D.C.", "e.g. i.e.", "J.R.R. Tolkien", "Ph.D.", "3.5 percent", "so.")),
    ],
)
def test_the_parts_of_words_of_code_follow_the_text(text: str, parts: str) -> None:
    assert with_code_parts(text) == (f"{text}\n{parts}" if parts else text)
    of_words = [part for part in parts.split() if not part.startswith("option")]
    assert of_words == [part for word in WORD.findall(text) for part in code_parts(word)]


# --- cleaning --------------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.text(st.characters(codec=None, categories=None)))
def test_cleaned_text_is_utf8_without_nul(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert cleaned == clean(cleaned)


def test_cleaned_words_are_as_they_are_typed() -> None:
    assert clean("shared\u200b_\u200bbuf\ufefffers, pay\u00adment\u2060s \ud800") == "shared_buffers, payments \ufffd"
    assert clean("fontcon\ufb01g, o\ufb03ce, \ufb06yle") == "fontconfig, office, style"
    family = "\U0001f468\u200d\U0001f467"
    for kept in ("می\u200cخواهم", "क्\u200dष", family, "❤\ufe0f"):  # a part of what is seen
        assert clean(kept) == kept
    for mark in "\u200c\u200d\u200e\u200f\u202a\u2066\u061c\u034f":
        assert clean(f"Mar{mark}low{mark} é") == "Marlow é"
    assert clean("Ja\u0308ger, \u212b, \u2126, \u00b5m, \u2f00, \ufee1, \U0001d400") == "Jäger, Å, Ω, μm, 一, م, A"
    assert clean("\x1b[1mSorrel\x1b[0m \x1b[38;5;1mis\x1b]8;;x\x07here\x1b]8;;\x1b\\ \x1b(Bx") == "Sorrel ishere x"


@pytest.mark.parametrize(
    ("text", "typeset", "by_hand"),
    [
        ("hydro-\nelectric", "hydroelectric", "hydro-electric"),
        ("state-of-\nthe-art", "state-of-the-art", "state-of-the-art"),
        ("pay\u00ad\nment", "payment", "payment"),
        ("NATO-\nRussia, X-\n7", "NATO-\nRussia, X-\n7", "NATO-\nRussia, X-\n7"),
    ],
)
def test_divided_words_are_joined(text: str, typeset: str, by_hand: str) -> None:
    assert (undivided(text, typeset=True), undivided(text, typeset=False)) == (typeset, by_hand)


# --- keys ------------------------------------------------------------------------------------------------------------


@given(st.text(st.characters(codec=None, categories=None)))
def test_the_words_of_a_key_are_the_key_of_the_text(text: str) -> None:
    found = key_words(text)
    assert all(found)
    assert " ".join(found) == title_key(text) or not found
    assert title_key(text) == " ".join(found) or title_key(text) == " ".join(fold(text).split())

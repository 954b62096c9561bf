"""Answers read from passages, and comparisons."""

from __future__ import annotations

import pytest

from polyhop.engines.lexical.decompose import decompose
from polyhop.engines.lexical.hops import Answer, read_hops
from polyhop.engines.lexical.negation import DENIED, contradicts, differs, is_no_fact
from polyhop.engines.lexical.prompt import ParsedPassage, Sentence
from polyhop.engines.lexical.reader import is_supported, read
from polyhop.engines.lexical.stated import is_of_type

WORLD = (
    ParsedPassage("1", "Slow Glass (film)", (Sentence("1s1", "Slow Glass is a 1972 drama film directed by Ann Lee."),)),
    ParsedPassage(
        "2",
        "Ann Lee",
        (
            Sentence("2s1", "Ann Lee (4 March 1921 – 2 May 1990) was a Scottish film director."),
            Sentence("2s2", "She was born in Leith and studied painting at the University of Ghent."),
        ),
    ),
    ParsedPassage("3", "Tom Fox", (Sentence("3s1", "Tom Fox is an Irish cyclist who was born in Cork."),)),
)
QUESTION = "Where was the director of Slow Glass born?"
STEPS = ["Who is the director of Slow Glass?", "Where was #1 born?"]


def test_answers_are_ranked_and_say_where_they_stand() -> None:
    answers = read(QUESTION, STEPS, WORLD)
    best = answers[0]
    assert best.text == "Leith"
    assert best.sentence is not None
    assert best.sentence.id == "2s2"
    assert best.passage is not None
    assert best.passage.title == "Ann Lee"
    assert [step.text for step in best.steps] == ["Ann Lee", "Leith"]
    assert all(0 <= answer.probability <= 1 for answer in answers)
    assert len({answer.text for answer in answers}) == len(answers)


def test_the_chances_of_a_step_are_shared_by_the_answers_before() -> None:
    films = pages(
        Dun="Dun is a film by Ann Lee and Tom Fox", Lee="Ann Lee was born in Leith", Fox="Tom Fox was born in Cork"
    )
    first, second = read_hops(["Who directed Dun?", "Where was #1 born?"], films)
    assert len(first.answers) > 1
    assert first.answers[1].probability > 0.3 * first.best.probability
    assert second.chances.sum() == pytest.approx(1, abs=1e-5)


def test_the_headings_above_a_passage_tell_what_it_is_about() -> None:
    texts = {
        "Sick leave": "It is two weeks.",
        "Parental leave": "It is twelve weeks.",
        "Canteen": "It opens at eleven.",
    }
    pages = [
        ParsedPassage(str(n), "Handbook", (Sentence(f"{n}s1", text),), heading)
        for n, (heading, text) in enumerate(texts.items(), 1)
    ]
    for asked, weeks in (("How many weeks is the parental leave?", "twelve"), ("How many weeks is sick leave?", "two")):
        best = read(asked, [asked], pages)[0]
        assert (best.text, best.sentence and best.sentence.id) == (weeks, "1s1" if weeks == "two" else "2s1")


def test_nothing_is_read_where_nothing_is_told() -> None:
    assert read("What is the shoe size of Napoleon?", ["What is the shoe size of Napoleon?"], WORLD) == ()
    assert read(QUESTION, STEPS, ()) == ()
    assert read(QUESTION, STEPS, (ParsedPassage("1", "Empty", ()),)) == ()


@pytest.mark.parametrize(
    ("question", "answer", "line"),
    [
        ("Who directed Slow Glass?", "Ann Lee", "1s1"),
        ("Who directed Fast Water?", "Kim Park", "4s1"),
        ("Where was Tom Fox born?", "Cork", "3s1"),
        ("When did Ann Lee die?", "2 May 1990", "2s1"),
        ("Where was Kim Park born?", "Busan", "5s1"),
        ("When did Kim Park die?", "3 June 1999", "5s1"),
    ],
)
def test_the_name_in_a_question_decides_where_its_answer_stands(question: str, answer: str, line: str) -> None:
    others = (
        ParsedPassage("4", "Fast Water", (Sentence("4s1", "Fast Water is a 1975 film directed by Kim Park."),)),
        ParsedPassage(
            "5", "Kim Park", (Sentence("5s1", "Kim Park (born in Busan, 7 May 1930, died 3 June 1999) made films."),)
        ),
    )
    for pages in ((*WORLD, *others), (*others, *WORLD)):
        best, *_ = read(question, [question], pages)
        assert best.sentence is not None
        assert (best.text, best.sentence.id) == (answer, line)
        assert best.steps[0].text == answer


def pages(**texts: str) -> tuple[ParsedPassage, ...]:
    """One page for each title, with underscores for spaces; a line for each sentence."""
    return tuple(
        ParsedPassage(
            str(n),
            title.replace("_", " "),
            tuple(Sentence(f"{n}s{m}", f"{text}.") for m, text in enumerate(said.split(". "), 1)),
        )
        for n, (title, said) in enumerate(texts.items(), 1)
    )


PEOPLE = pages(
    Ann_Lee="Ann Lee (4 March 1901 – 2 May 1950) was a Scottish painter",
    Tom_Fox="Tom Fox (9 June 1911 – 1 July 1999) was an Irish painter",
)
MOUNTAINS = pages(Mount_Alpha="Mount Alpha is 300 metres high", Mount_Beta="Mount Beta is 900 feet high")
TOWNS = pages(
    Alphaville="Alphaville is a town in France",
    Betaton="Betaton is a village in France",
    Gamma="Gamma is a city in Chile",
)
SEALERS = pages(
    Stamp_Kit="Stamp Kit 0.5.0 was released by Ann Lee", Press_Kit="Press Kit 0.10.1 was released by Ann Lee"
)
BANDS = pages(
    Quill="Quill is a rock band. The band has three members", Slate="Slate is a pop band. The band has 5 members"
)


@pytest.mark.parametrize(
    ("told", "question", "answer"),
    [
        (PEOPLE, "Who was born first, Ann Lee or Tom Fox?", "Ann Lee"),
        (PEOPLE, "Who is younger, Ann Lee or Tom Fox?", "Tom Fox"),
        (PEOPLE, "Who died first, Tom Fox or Ann Lee?", "Ann Lee"),
        (PEOPLE, "Who lived longer, Ann Lee or Tom Fox?", "Tom Fox"),
        (PEOPLE, "Do Ann Lee and Tom Fox have the same nationality?", "no"),
        (MOUNTAINS, "Which is higher, Mount Alpha or Mount Beta?", "Mount Alpha"),
        (TOWNS, "Are Alphaville and Betaton located in the same country?", "yes"),
        (BANDS, "Which band has more members, Quill or Slate?", "Slate"),
        (SEALERS, "Which came out first, Press Kit or Stamp Kit?", "Stamp Kit"),
        (BANDS, "Which is a pop band, Quill or Slate?", "Slate"),
        (BANDS, "Are Quill and Slate both painters?", "no"),
    ],
)  # fmt: skip
def test_verdicts(told: tuple[ParsedPassage, ...], question: str, answer: str) -> None:
    best, *_ = read(question, decompose(question), told)
    assert (best.text, best.sentence) == (answer, None)


MANUAL = pages(
    Ledger="The ledger service listens on port 7431 unless LEDGER_PORT is set. It was rewritten in version 2.4.1",
    Settings="The option --max-batch limits how many bookings are sent at once, 250 by default. "
    "Requests that take longer than 30 seconds are cancelled. Set the variable LEDGER_HOME to move the data folder. "
    "The environment variable LEDGER_KEEP=YES stops the cleaner from emptying the folder",
    Journal="The function ledger.open_journal() returns a handle. A journal is an append-only file of bookings. "
    "Backups run every night at 02:30. Use ledger:sign/2 instead of the deprecated function for seals",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("On which port does the ledger service listen?", "7431"),
        ("In which version was the ledger service rewritten?", "2.4.1"),
        ("Which option limits how many bookings are sent at once?", "--max-batch"),
        ("After how many seconds are requests cancelled?", "30"),
        ("Which function returns a handle?", "ledger.open_journal()"),
        ("What is a journal?", "an append-only file of bookings"),
        ("When do backups run?", "02:30"),
        ("Which function should be used instead of the deprecated function for seals?", "ledger:sign/2"),
        ("Which environment variable stops the cleaner?", "LEDGER_KEEP"),
    ],
)
def test_manuals_answer_with_names_of_code_numbers_and_definitions(question: str, answer: str) -> None:
    best, *_ = read(question, decompose(question), MANUAL)
    assert best.text == answer
    assert best.sentence is not None


OPTIONS = (
    *pages(
        Ledger="Ledger was started by Ann Lee, and is now maintained by Tom Fox. "
        "Since Ledger 1.9.2, bookings are signed",
        Reference="batch.limit. How many are sent a day. batch.size. How many bookings are sent at once. "
        "The default value is 250. batch.wait. How long it waits. "
        'Defaults to 90 seconds. batch.path - where to write, "/var/spool" by default. batch.mode: Default: "safe". '
        'batch.seal_color: Default: "red"',
        Changes="open_journal(path). Opens a journal. Changed in version 3.0: Added the mode parameter. "
        "close_journal(). New in version 2.5. Version 2.4.1 was released on 2021-05-23",
        Command="-q :: Say nothing. --shred-max-age <days> Keep shreds (default 9). "
        "--max-age <days> Keep bookings of so many days (default 30)",
    ),
    ParsedPassage("9", "Replies", (Sentence("9s1", "reply.period = 7d : How long a reply lasts."),)),
    ParsedPassage("10", "Replies", (Sentence("10s1", "# Ten days default reply.period = 10d"),), "Example"),
    ParsedPassage("11", "Replies", (Sentence("11s1", "PORT=4000 reply dev"),), "Command"),
    *pages(Frost="If no frost_period is given, the default value of 7s is used. The frost_depth is 3 (default value)"),
    *pages(
        Courier="courier_seal. Whether letters are sealed. Defaults to none. The maximum length of a letter: Default: "
        "SEALED. courier_timeout. Wait so long. Default: WAITING (see wait(2)). By default, it listens on a port. "
        "Default: no. At most four couriers ride at once by default. stamp_cache. Keeps stamps. Defaults to 700"
    ),
    *pages(Table="stamp_price; Type: number; Use: letters. stamp_price_max; Type: number; Default: 12"),
    *pages(
        Quota="the_quota_of_seals: the number of seals, 64 by default. If the wax is 0 (default value), glue is used",
        Resin="Version: v4.2; Changes: Added resin to letters. Version: v4.1; Changes: Added resin",
    ),
    *pages(Yard="Couriers wait in the yard at night. yard_lamps. How many lamps burn. The default value is 9"),
    *pages(Waxing="* Change default wax_count to 7. Add wax_depth (3 seconds by default)"),
    *pages(Copier="Version: v7.1.0; Changes: pruning introduced", Auditor="Release date: 2031-05-23"),
    ParsedPassage("6", "Reference", (Sentence("6s1", "Default: 4."),), "Settings > worker_count"),
    ParsedPassage("13", "Winch", (Sentence("13s1", "[1.4.1] - 2031-05-23:"), Sentence("13s2", "Adds ropes."))),
    ParsedPassage("12", "Sealer", (Sentence("12s1", "Seals are blue."),), "Changes > v3.1.0 (1 May 2033)"),
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the default value of batch.size?", "250"),
        ("What is the default of batch.wait?", "90 seconds"),
        ("What is the default of batch.limit?", None),  # not that of the entry below
        ("What is batch.path by default?", "/var/spool"),
        ("What is the default of batch.mode?", "safe"),
        ("What is the default of stamp_price?", None),  # not that of the row below
        ("What is the default of batch.seal?", None),  # not that of the longer name
        ("What is the default value of --max-age?", "30"),
        ("What is the default of worker_count?", "4"),
        ("What is the default of frost_period?", "7s"),
        ("What is the default of frost_depth?", "3"),
        ("What is the default of reply.period?", "7d"),  # not that of the example
        ("What is the default port of reply dev?", None),
        ("Which port does Replyd listen on by default?", None),
        ("What is the default maximum length of a letter?", None),  # not "SEALED"
        ("What is the default of courier_timeout?", None),  # not "WAITING", nor 2
        ("Which port does the courier listen on by default?", None),  # not "no"
        ("How many couriers ride at once by default?", "four"),
        ("How many letters does the courier take by default?", None),  # not that of the entry below
        ("How many couriers wait in the yard at night?", None),
        ("What is the default value of open_journal?", None),
        ("In which version was the mode parameter of open_journal added?", "3.0"),
        ("In which version was close_journal added?", "2.5"),
        ("Since which version are bookings signed?", "1.9.2"),
        ("When was version 2.4.1 released?", "2021-05-23"),
        ("In which version was pruning introduced?", "v7.1.0"),
        ("When was Auditor released?", "2031-05-23"),
        ("When was Sealer 3.1.0 released?", "1 May 2033"),
        ("When was Sealer 3.1 released?", None),
        ("When was Winch 1.4.1 released?", "2031-05-23"),
        ("When was Winch 1.4 released?", None),
        ("When was batch.size added?", None),
        ("What is the default number of letters?", None),  # not that of seals
        ("What is the default glue?", None),  # not that of wax
        ("In which version was resin added?", "v4.1"),
        ("What is the default wax_count?", "7"),
        ("Which option says nothing?", "-q"),
        ("Which environment variable says nothing?", None),
    ],
)
def test_what_a_manual_states_in_a_fixed_form_is_read_with_its_subject_and_nothing_else_is(
    question: str, answer: str | None
) -> None:
    best = next(iter(read(question, decompose(question), OPTIONS)), None)
    told = best.text if best and is_supported(question, OPTIONS, best) else None
    assert told == answer


TRANSPORTS = (
    "tls", "Safe.", "The standard port is 16514.", "tcp", "Open.", "The standard port is 16509.", "ext",
)  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the standard port of the tcp transport?", "16509"),
        ("What is the standard port of the tls transport?", "16514"),
        ("What is the standard port of the ext transport?", None),
    ],
)
def test_a_value_is_that_of_the_entry_above_it(question: str, answer: str | None) -> None:
    sentences = tuple(Sentence(f"1s{n}", text) for n, text in enumerate(TRANSPORTS, 1))
    passages = (ParsedPassage("1", "Remote transports", sentences), *pages(Mail="A transport moves mail"))
    best = next(iter(read(question, [question], passages)), None)
    assert (best.text if best and is_supported(question, passages, best) else None) == answer


@pytest.mark.parametrize("question", ["Who is the author of book_mail?", "Who wrote the book_mail module?"])
def test_who_did_something_may_stand_below_a_heading(question: str) -> None:
    told = (ParsedPassage("1", "4.9. book_mail", (Sentence("1s1", "Ida Moor < ida@example.org>"),), "4.9.2. Author"),)
    best, *_ = read(question, [question], (*told, *pages(Mail="A module that Tom Fox wrote reads mail")))
    assert (best.text, best.probability) == ("Ida Moor", 0.9)


@pytest.mark.parametrize(
    ("question", "answer", "fits"),
    [
        ("How many bookings are sent?", "some bookings", False),
        ("How many bookings are sent?", "100%", False),
        ("How many bookings are sent?", "9.6", False),
        ("Which command is used for bookings?", "Sending.txt", False),
        ("How many bookings are sent by default?", "unlimited", True),
        ("How large can a booking be?", "one", False),
        ("How large can a booking be?", "2 GB", True),
        ("What is the default of book_size?", "REQUIRED", False),
        ("What is the default of bookTimeout?", "never", True),
        ("Which port does Ledger use?", "70000", False),
        ("Which port does Ledger use?", "7 Ledger Ports", False),
        ("In which release was it added?", "2 Release Notes", False),
        ("To which address are bookings sent?", "Ledger Works", False),
        ("On which day of the week are books closed?", "2020-07-06", False),
        ("Which day closes the books?", "2.3", False),
        ("Who maintains Ledger?", "Tom Fox", True),
        ("Who maintains Ledger?", "Ledger Manual", False),
        ("Who maintains Ledger?", "the manual", False),
        ("When was Ledger released?", "May 2021", True),
        ("In which version was it added?", "lots of interfaces", False),
        ("What is the default mode?", "that of the last run", False),
        ("Which parameter is set in ledger.cf?", "ledger.cf", False),
        ("Which option sets the mode?", "the last one", False),
        ("How many downloads does Kiln have?", "v1.20.0", False),
        ("How long does Ledger wait?", "3", False),
        ("How long does Ledger wait?", "250ms", True),
        ("How long does Ledger wait?", "2.12", False),
        ("How large is a booking?", "4GB", True),
        ("Which command-line option sets the mode?", "the last one", False),
        ("Which environment variable sets the mode?", "--mode", False),
        ("Which wax does the seal need?", "--fast-wax", False),
        ("Which flag makes wax fast?", "--fast-wax", True),
        ("Which environment variable sets the mode?", "LEDGER_MODE", True),
    ],
)
def test_an_answer_is_of_the_type_that_is_asked_for(question: str, answer: str, fits: bool) -> None:
    assert is_of_type(question, answer) is fits


@pytest.mark.parametrize(
    ("question", "answer", "said", "fits"),
    [
        ("How long does Ledger wait?", "3", "After 3 minutes Ledger stops.", True),
        ("How long does Ledger wait?", "3", "If 3 clients wait, it stops.", False),
        ("How long is Tarn Bridge?", "30", "Tarn Bridge is 30 metres long.", True),
        ("What is the default port?", "80", "The default port is 80.", True),
        ("What is the default port?", "80", "It can be set back to port 80, the previous default.", False),
        ("How many people use Ledger?", "one", "Thank it with a one-off payment.", False),
        ("How many mills has Ledger?", "one", "It has one old mill.", True),
    ],
)
def test_the_sentence_must_say_a_time_the_default_of_today_and_what_is_counted(
    question: str, answer: str, said: str, fits: bool
) -> None:
    assert is_of_type(question, answer, Sentence("1s1", said)) is fits


@pytest.mark.parametrize(
    ("question", "answer", "sentence", "other"),
    [
        ("Which format does Ledger not read?", "CSV", "Ledger does not read CSV.", False),
        ("Which format does Ledger not read?", "CSV", "Ledger reads CSV.", True),
        ("Which format does Ledger read?", "CSV", "Ledger can't read CSV.", True),
        ("Which command can root run?", "stamp", "Root is not allowed to run stamp.", True),
        ("Which format does Ledger read?", "XML", "Ledger does not read CSV, but it reads XML.", False),
        ("Which format does Ledger read?", "CSV", "Ledger reads CSV and does not print.", False),
        ("Which mode needs no lock?", "ring", "The mode ring works without a lock.", False),
        ("Which format other than CSV does Ledger read?", "XML", "Besides CSV, Ledger reads XML.", False),
        ("Which format other than CSV does Ledger read?", "CSV", "Ledger reads CSV.", True),
        ("Which command can no longer seal?", "stamp", "stamp can no longer seal.", False),
        ("Which command never seals?", "stamp", "stamp always seals.", True),
        ("Which port does Ledger use?", "8080", "Ledger no longer uses port 8080.", True),
        ("What is the default of retries?", "5", "The default of retries is not 5.", True),
        ("What is the default of retries?", "5", "The default of retries is 5, not 10.", False),
        ("Which file is read?", "b.txt", "If a.txt is not read, b.txt is.", False),
        ("Who directed the film No Way Out?", "Ann Lee", "No Way Out was directed by Ann Lee.", False),
        ('Who directed "we do not seal"?', "Ann Lee", "It was directed by Ann Lee.", False),
        ("Is Ledger not only read by Ann Lee?", "yes", "Ledger is read by many.", False),
        ("Who directed Dark?", "Ann Lee", "Dark was produced by Ann Lee.", True),
        ("Who directed Dark?", "Ann Lee", "Dark was directed by Tom Fox and produced by Ann Lee.", True),
        ("Who directed Dark?", "Ann Lee", "Dark was produced and directed by Ann Lee.", False),
        ("Who is the husband of Ann Lee?", "Tom Fox", "Ann Lee divorced Tom Fox and married.", True),
    ],
)
def test_a_sentence_that_denies_something_else_than_the_question(
    question: str, answer: str, sentence: str, other: bool
) -> None:
    assert differs(question, answer, sentence) is other


@pytest.mark.parametrize(
    ("question", "said", "counts"),
    [
        ("How many seals does Tarn Hall have?", "Tarn Hall has 12 seals", True),
        ("How many seals does Tarn Hall have?", "Tarn Hall has 12 doors", False),
        ("How many people does Tarn Hall seat?", "Tarn Hall seats 12 guests", True),
        ("How many days does Tarn Hall keep letters?", "Tarn Hall keeps letters for 12 years of days", False),
        ("How much memory does Tarn Hall use?", "Tarn Hall uses memory since 12.x", False),
        ("How much memory does Tarn Hall use?", "Tarn Hall uses 12 MB of memory", True),
    ],
)
def test_a_number_is_of_what_is_counted(question: str, said: str, counts: bool) -> None:
    passages = pages(Tarn_Hall=said)
    sentence = passages[0].sentences[0]
    assert is_supported(question, passages, Answer("12", 0.9, sentence, passages[0])) is counts


@pytest.mark.parametrize(
    ("question", "told", "answer"),
    [
        ("Who was born first, Ann Lee or Tom Fox?", ("was born in 1900", "was born in 1850"), "Tom Fox"),
        ("Who was born first, Ann Lee or Tom Fox?", ("was born in 1900", "was not born in 1850"), None),
        ("Who was born first, Ann Lee or Tom Fox?", ("was born in 1900", "paints"), None),
        ("Which is higher, the Ann Lee tower or the Tom Fox tower?", ("tower is 20 metres high", "is a town"), None),
        ("Was Ann Lee born after Tom Fox?", ("was born in 1900", "was born in 1850"), "yes"),
        ("Was Ann Lee born before Tom Fox?", ("was born in 1900", "paints"), None),
        ("Is the river Ann Lee longer than the river Tom Fox?", ("is 900 km long", "is 800 miles long"), "no"),
        ("Which was founded first, Ann Lee or Tom Fox?", ("was founded in 1900", "closed in 1850"), None),
        ("Were Ann Lee and Tom Fox directed by the same person?", ("was directed by Ida", "was produced by Ida"), None),
        ("Does Ann Lee have more ships than Tom Fox?", ("has 30 ships", "has 20 ships"), "yes"),
        ("Are Ann Lee and Tom Fox from the same country?", ("is from Chile", "is from Chile"), "yes"),
        ("Are Ann Lee and Tom Fox from the same country?", ("is from Chile", "is not from Chile"), "no"),
        ("Where was the director of Ann Lee born?", ("is a film directed by Tom Fox", "was born in Oslo"), "Oslo"),
        ("Where was the director of Ann Lee born?", ("is a film not directed by Tom Fox", "was born in Oslo"), None),
    ],
)
def test_what_is_denied_of_a_side_or_a_step(question: str, told: tuple[str, str], answer: str | None) -> None:
    passages = pages(Ann_Lee=f"Ann Lee {told[0]}", Tom_Fox=f"Tom Fox {told[1]}")
    best, *_ = read(question, decompose(question), passages)
    is_sure = best.probability > DENIED and is_supported(question, passages, best)
    assert (best.text if is_sure else None) == answer


def test_of_works_with_one_name_the_year_tells_which_is_asked_for() -> None:
    old, new = (
        ParsedPassage(str(n), f"Tarn ({year} film)", (Sentence(f"{n}s1", f"Tarn is a film directed by {name}."),))
        for n, (year, name) in enumerate(((1972, "Otto Lind"), (2002, "Mia Holm")))
    )
    for passages in ((old, new), (new, old)):
        best, *_ = read("Who directed the 2002 film Tarn?", ["Who directed the 2002 film Tarn?"], passages)
        assert best.text == "Mia Holm"


@pytest.mark.parametrize(
    ("question", "sentence", "following", "states"),
    [
        ("Who founded Tarn Hall?", "Tarn Hall was founded by Otto Lind.", "", True),
        ("Who founded Tarn Hall?", "Tarn Hall was founded by Otto Lind.", "That claim is untrue.", False),
        ("Who founded Tarn Hall?", "Was Tarn Hall founded by Otto Lind?", "", False),
        ("Who founded Tarn Hall?", "A rumour says that Tarn Hall was founded by Otto Lind.", "", False),
        ("Who founded Tarn Hall?", "The supplier of Tarn Hall was founded by Otto Lind.", "", False),
        ("Who founded the supplier of Tarn Hall?", "The supplier of Tarn Hall was founded by Otto Lind.", "", True),
        ("Who founded Tarn Hall?", "Unlike Tarn Hall, Esk Mill was founded by Otto Lind.", "", False),
        ("Who met Ada Berg?", "Her mother was met by Otto Lind.", "", False),
        ("Who met Ada Berg's mother?", "Her mother was met by Otto Lind.", "", True),
        ("Who told the rumour?", "A rumour was told by Otto Lind.", "", True),
        ("Who bought Tarn Hall?", "Otto Lind nearly bought Tarn Hall.", "", False),
        ("Who sued Ada Berg?", "Ada Berg sued Otto Lind.", "", False),
        ("Who sued Ada Berg?", "Ada Berg was sued by Otto Lind.", "", True),
        ("Who was taught by Ada Berg?", "Ada Berg was taught by Otto Lind.", "", False),
        ("Who was taught by Ada Berg?", "Otto Lind was taught by Ada Berg.", "", True),
        ("Who is the father of Ada Berg?", "Ada Berg is the father of Otto Lind.", "", False),
        ("Who is the father of Ada Berg?", "The father of Ada Berg is Otto Lind.", "", True),
        ("Who founded Tarn Hall?", "Tarn Hall and Esk Mill were founded by Ada and Otto Lind respectively.", "", False),
        ("Who is the mayor of Tarn?", "The deputy mayor of Tarn is Otto Lind.", "", False),
    ],
)
def test_what_is_stated_as_a_fact(question: str, sentence: str, following: str, states: bool) -> None:
    assert is_no_fact(question, "Otto Lind", sentence, following) is not states


@pytest.mark.parametrize(
    ("question", "sentence", "other"),
    [
        ("Is sealing on by default?", "By default, sealing is off.", True),
        ("Is sealing off by default?", "Sealing is off, unless it is turned on.", False),
        ("Is sealing enabled?", "Sealing is disabled.", True),
        ("Is the house based on sand?", "It lies off the coast.", False),
        ("Was Tarn Hall built in 1901?", "Tarn Hall was built in 1910.", True),
        ("Was Tarn Hall built in 1901?", "Tarn Hall was built in 1901 and sold in 1910.", False),
        ("Is retries 5 by default?", "Retries is set.", False),
    ],
)
def test_the_opposite_and_other_figures(question: str, sentence: str, other: bool) -> None:
    assert contradicts(question, sentence) is other


SEALS = pages(
    Stamp="Stamp seals letters. Stamp does not seal parcels",
    Press="Press seals letters and parcels. Press has no handle",
)


@pytest.mark.parametrize(
    ("question", "answer", "is_sure"),
    [
        ("What does Stamp not seal?", "parcels", True),
        ("What does Stamp never break?", None, False),
        ("Does Stamp seal letters?", "yes", True),
        ("Does Stamp seal parcels?", "no", True),
        ("Does Press not seal letters?", None, False),
    ],
)
def test_what_a_question_denies(question: str, answer: str | None, is_sure: bool) -> None:
    best, *_ = read(question, decompose(question), SEALS)
    assert (best.probability > DENIED) is is_sure
    assert answer is None or best.text == answer


@pytest.mark.parametrize(
    ("question", "told", "answer"),
    [
        ("Are both Ada Berg and Otto Lind painters?", ("is a painter", "is a painter"), "yes"),
        ("Are both Ada Berg and Otto Lind painters?", ("is a painter", "is not a painter"), "no"),
        ("Are both Ada Berg and Otto Lind painters?", ("is not a painter", "is not a painter"), "no"),
        ("Do both Ada Berg and Otto Lind own the Mill?", ("owns the Mill. Otto Lind owns the Mill", "is old"), "yes"),
        ("Does Ada Berg or Otto Lind own the Mill?", ("does not own the Mill", "owns the Mill"), "Otto Lind"),
        ("Does Ada Berg or Otto Lind own the Mill?", ("is old. Otto Lind does not own the Mill", "is old"), None),
        ("Does Ada Berg or Otto Lind own the Mill?", ("does not own the Mill", "is old"), None),
    ],
)
def test_claims_about_two(question: str, told: tuple[str, str], answer: str | None) -> None:
    passages = pages(**{name: f"{name} {said}" for name, said in zip(("Ada Berg", "Otto Lind"), told, strict=True)})
    best, *_ = read(question, decompose(question), passages)
    if answer is None:
        assert best.probability <= DENIED or not is_supported(question, passages, best)
    else:
        assert best.text == answer
        assert best.probability > 0.5

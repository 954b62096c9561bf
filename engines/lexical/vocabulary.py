"""Word lists: the nouns of what questions ask for, verbs, and families of words that name the same relation."""

from __future__ import annotations

from functools import lru_cache

from ...data.text import content_terms, stem

PERSON_NOUNS = frozenset(
    "actor actress architect artist astronaut astrophysicist author ballerina bandleader biologist botanist boxer "
    "brother businessman cameraman captain cellist chancellor chaplain chemist child choreographer "
    "cinematographer coach commander composer conductor creator cricketer dancer daughter designer developer "
    "dictator diplomat director discoverer drummer editor emperor empress engineer envoy executive explorer "
    "father filmmaker footballer founder general geologist governor granddaughter grandfather grandmother "
    "grandson guitarist heir husband inhabitant inventor journalist king laureate lawyer leader librettist "
    "lyricist maker man manager mathematician mayor mentor minister monarch mother murderer musician naturalist "
    "navigator nobleman novelist official opponent owner painter parent partner patron performer person pharaoh "
    "philosopher photographer physician physicist pianist pilot pioneer player playwright poet politician pope "
    "predecessor premier president prince princess producer professor programmer publisher queen rapper ruler "
    "sailor scholar scientist screenwriter sculptor senator showman sibling singer sister soldier son songwriter "
    "soprano spouse spy star statesman stepfather stepmother successor sultan surgeon swimmer teacher tenor "
    "translator tsar tutor uncle violinist vizier wife winner woman writer".split()
)
PLACE_NOUNS = frozenset(
    "address birthplace borough capital city colony commune continent country county department district hometown "
    "island kingdom land location municipality nation neighborhood neighbourhood parish peninsula place port "
    "prefecture province region republic state suburb territory town village".split()
)
WORKS = (
    "film|movie|song|single|album|novel|book|poem|play|opera|ballet|musical|painting|sculpture|"
    "series|show|sitcom|drama|band|group|magazine|newspaper|journal|company|club|team|university|"
    "college|school|museum|duo|trio|documentary|track|record|symphony|concerto|sonata|game|"
    "video game|TV series|television series|short film|soundtrack"
)
KIND_NOUNS = (
    rf"(?:{WORKS}|city|town|village|river|lake|mountain|island|actor|actress|singer|author|writer|physicist|chemist)"
)

WH = r"(?:who|whom|whose|what|which|where|when|how|why)"

# Verbs that separate the clauses of a question; without regular pasts, which are participles as often.
FINITE = (
    r"(?:is|are|was|were|be|been|has|have|had|did|does|do|can|could|will|would|became|become|becomes|die|died|dies|born|lies|lie|"
    r"flows|flow|begin|began|start|started|end|ended|win|won|live|lived|play|plays|played|join|joins|joined|come|comes|came|"
    r"stand|stands|stood|study|studied|go|went|marry|married|belong|belongs|share|speak|earn|attend|graduate|teach|serve|work|write|"
    r"move|receive|lead|run|runs|rise|rises)"
)

# Verbs that end a noun phrase; regular pasts and participles are recognized by their endings.
VERBS = frozenset(
    "is are was were be been being am has have had having do does did can could will would may might shall should must "
    "became become becomes began begin begins born bought brought built came come comes did died dies drew fell felt "
    "found fought gave get gets give given gives goes gone got grew grown held include includes included including "
    "kept knew known laid led left lies lost made make makes making meant met named called paid played plays ran "
    "received released remained rose said sang sat saw seen sent served serves set shot showed shown sold spent spoke "
    "stands stood sung taken takes taught took told used using went won wore works worked written wrote".split()
)
OCCUPATION_NOUNS = frozenset("occupation profession job career role position rank post office title vocation".split())
WORK_NOUNS = frozenset(
    "album anime anthem ballet book cartoon comedy comic documentary drama episode film game journal magazine manga "
    "movie musical newspaper novel opera painting play poem program record serial series show single sitcom song "
    "soundtrack symphony track video".split()
)
ORGANISATION_NOUNS = frozenset(
    "academy agency airline army association band brand broadcaster bureau chain channel church club college company "
    "conference conglomerate corporation duo festival firm franchise group institute institution label league ministry "
    "museum network orchestra organization organisation party publisher school society station store studio team tribe "
    "trio troupe union university".split()
)

# Words of one family name the same relation: "Who directed X" is answered by "the director of X".
_FAMILIES = """
birth: born birth birthplace birthday native hometown nativity
death: died death dead dies die killed deceased
director: director directed direct directing filmmaker directorial
performer: performer performed sang sung singer vocals recorded singing performs musician recording artist
composer: composer composed composes music score scored composition soundtrack
writer: author wrote written writer writes novel novelist playwright screenwriter book playwrights penned
spouse: spouse wife husband married wed widow marriage marry widower consort
parent: father mother parent parents
child: son daughter child children offspring
founder: founder founded founding establish established co-founded formed created creator began begun started launched
designer: architect designed designer design
producer: producer produced produces
actor: actor actress starring starred stars plays portrayed portrays cast played role
location: located situated lies stands stand location
release: released release premiered published publication
country: country nation nationality citizen citizenship
university: university college studied educated graduated education study degree alma doctorate
discovery: discovered discoverer discovery found
invention: invented inventor invention devised
capital: capital
river: river flows tributary
currency: currency
language: language
employer: worked employer works employed
member: member members
owner: owned owner owns
headquarters: headquarters headquartered based
league: league
burial: buried grave burial
"""
_FAMILY: dict[str, str] = {}
for _row in _FAMILIES.strip().splitlines():
    _name, _, _words = _row.partition(":")
    for _word in _words.split():
        _FAMILY.setdefault(stem(_word), _name)
FAMILIES = frozenset(_FAMILY.values())


@lru_cache(maxsize=8192)
def relation_terms(text: str) -> frozenset[str]:
    """The content terms of a text, with the terms of one family as one."""
    return frozenset(_FAMILY.get(term, term) for term in content_terms(text))


@lru_cache(maxsize=32768)
def relation_term(word: str) -> str:
    """The relation term of one word; empty for a function word. Bypasses the caches, which words would fill."""
    terms = content_terms.__wrapped__(word)
    return _FAMILY.get(terms[0], terms[0]) if terms else ""

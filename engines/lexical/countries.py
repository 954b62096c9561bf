"""Countries with their adjectives, to compare nationalities and countries."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ...data.text import fold

# country: adjectives and other names
_TABLE = """
Afghanistan: Afghan; Albania: Albanian; Algeria: Algerian; Andorra: Andorran; Angola: Angolan; Argentina: Argentine,
Argentinian; Armenia: Armenian; Australia: Australian; Austria: Austrian; Azerbaijan: Azerbaijani; Bahamas:
Bahamian; Bahrain: Bahraini; Bangladesh: Bangladeshi; Barbados: Barbadian; Belarus: Belarusian; Belgium: Belgian;
Belize: Belizean; Benin: Beninese; Bhutan: Bhutanese; Bolivia: Bolivian; Bosnia and Herzegovina: Bosnian, Bosnia;
Botswana: Botswanan; Brazil: Brazilian; Bulgaria: Bulgarian; Burkina Faso: Burkinabe; Burundi: Burundian; Cambodia:
Cambodian; Cameroon: Cameroonian; Canada: Canadian; Chad: Chadian; Chile: Chilean; China: Chinese, People's Republic
of China; Colombia: Colombian; Congo: Congolese; Costa Rica: Costa Rican; Croatia: Croatian, Croat; Cuba: Cuban;
Cyprus: Cypriot; Czech Republic: Czech, Czechia, Bohemian; Czechoslovakia: Czechoslovak, Czechoslovakian; Denmark:
Danish, Dane; Dominican Republic: Dominican; East Germany: East German; Ecuador: Ecuadorian; Egypt: Egyptian; El
Salvador: Salvadoran; England: English; Eritrea: Eritrean; Estonia: Estonian; Ethiopia: Ethiopian; Fiji: Fijian;
Finland: Finnish, Finn; France: French, Frenchman; Gabon: Gabonese; Gambia: Gambian; Georgia: Georgian; Germany:
German; Ghana: Ghanaian; Greece: Greek; Greenland: Greenlandic; Guatemala: Guatemalan; Guinea: Guinean; Guyana:
Guyanese; Haiti: Haitian; Honduras: Honduran; Hong Kong: Hongkonger; Hungary: Hungarian; Iceland: Icelandic,
Icelander; India: Indian; Indonesia: Indonesian; Iran: Iranian, Persian, Persia; Iraq: Iraqi; Ireland: Irish,
Republic of Ireland; Israel: Israeli; Italy: Italian; Ivory Coast: Ivorian; Jamaica: Jamaican; Japan: Japanese;
Jordan: Jordanian; Kazakhstan: Kazakh, Kazakhstani; Kenya: Kenyan; Kosovo: Kosovar; Kuwait: Kuwaiti; Kyrgyzstan:
Kyrgyz; Laos: Laotian; Latvia: Latvian; Lebanon: Lebanese; Liberia: Liberian; Libya: Libyan; Liechtenstein:
Liechtensteiner; Lithuania: Lithuanian; Luxembourg: Luxembourgish; Madagascar: Malagasy; Malawi: Malawian; Malaysia:
Malaysian; Maldives: Maldivian; Mali: Malian; Malta: Maltese; Mauritania: Mauritanian; Mauritius: Mauritian; Mexico:
Mexican; Moldova: Moldovan; Monaco: Monegasque; Mongolia: Mongolian; Montenegro: Montenegrin; Morocco: Moroccan;
Mozambique: Mozambican; Myanmar: Burmese, Burma; Namibia: Namibian; Nepal: Nepalese, Nepali; Netherlands: Dutch,
Holland; New Zealand: New Zealander; Nicaragua: Nicaraguan; Niger: Nigerien; Nigeria: Nigerian; North Korea: North
Korean; North Macedonia: Macedonian, Macedonia; Norway: Norwegian; Oman: Omani; Pakistan: Pakistani; Palestine:
Palestinian; Panama: Panamanian; Papua New Guinea: Papua New Guinean; Paraguay: Paraguayan; Peru: Peruvian;
Philippines: Filipino, Philippine; Poland: Polish, Pole; Portugal: Portuguese; Puerto Rico: Puerto Rican; Qatar:
Qatari; Romania: Romanian; Russia: Russian, Russian Federation; Rwanda: Rwandan; Samoa: Samoan; Saudi Arabia: Saudi;
Scotland: Scottish, Scot; Senegal: Senegalese; Serbia: Serbian, Serb; Sierra Leone: Sierra Leonean; Singapore:
Singaporean; Slovakia: Slovak; Slovenia: Slovenian, Slovene; Somalia: Somali; South Africa: South African; South
Korea: South Korean, Korean, Korea; South Sudan: South Sudanese; Soviet Union: Soviet, USSR; Spain: Spanish,
Spaniard; Sri Lanka: Sri Lankan; Sudan: Sudanese; Suriname: Surinamese; Sweden: Swedish, Swede; Switzerland: Swiss;
Syria: Syrian; Taiwan: Taiwanese; Tajikistan: Tajik; Tanzania: Tanzanian; Thailand: Thai; Togo: Togolese; Trinidad
and Tobago: Trinidadian; Tunisia: Tunisian; Turkey: Turkish, Ottoman; Turkmenistan: Turkmen; Uganda: Ugandan;
Ukraine: Ukrainian; United Arab Emirates: Emirati; United Kingdom: British, UK, U.K, Britain, Great Britain, Briton;
United States: American, USA, U.S, US, United States of America, U.S.A; Uruguay: Uruguayan; Uzbekistan: Uzbek;
Venezuela: Venezuelan; Vietnam: Vietnamese; Wales: Welsh; West Germany: West German; Yemen: Yemeni; Yugoslavia:
Yugoslav; Zambia: Zambian; Zimbabwe: Zimbabwean
"""
_COUNTRY: dict[str, str] = {}
for _entry in _TABLE.replace("\n", " ").split(";"):
    _country, _, _others = _entry.strip().partition(":")
    for _name in (_country, *_others.split(",")):
        _COUNTRY[fold(_name.strip())] = _country
_MENTION = re.compile(
    r"(?<![\w-])(?=[A-Z])((?i:"
    + "|".join(re.escape(name) for name in sorted(_COUNTRY, key=len, reverse=True))
    + r"))(?![\w])"
)
# A state of the United States implies the country.
_STATES = (
    "Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Hawaii, "
    "Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, "
    "Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, "
    "New Mexico, New York, North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, Rhode "
    "Island, South Carolina, South Dakota, Tennessee, Texas, Utah, Vermont, Virginia, West Virginia, "
    "Wisconsin, Wyoming"
).split(", ")
_STATE_NAMES = frozenset(_STATES)
_STATE = re.compile(r"\b(" + "|".join(sorted(_STATES, key=len, reverse=True)) + r")\b")


class Mention(NamedTuple):
    """A country, the words by which a text names it, and where they start."""

    country: str
    written: str
    start: int


@lru_cache(maxsize=8192)
def countries(text: str) -> tuple[Mention, ...]:
    """The countries that a text names or implies, in order."""
    found = [
        Mention(_COUNTRY[fold(match[1])], match[1], match.start())
        for match in _MENTION.finditer(text)
        if match[1][0].isupper() and match[1] != "Us"  # "to polish", "us"
    ]
    found += [Mention("United States", match[1], match.start()) for match in _STATE.finditer(text)]
    return tuple(sorted(found, key=lambda mention: mention.start))


def is_country(text: str) -> bool:
    """Whether the whole text is the name or adjective of a country or an American state."""
    name = text.removeprefix("The ").removeprefix("the ")
    return name[:1].isupper() and (fold(name) in _COUNTRY or name in _STATE_NAMES)


def is_state(text: str) -> bool:
    """Whether a text is the name of an American state."""
    return text in _STATE_NAMES


def is_adjective(text: str) -> bool:
    """Whether a text is a nationality ("Austrian", "Canadian-American") rather than a name."""
    parts = fold(text).removeprefix("the ").replace("–", "-").split("-")
    return all(part in _COUNTRY and fold(_COUNTRY[part]) != part for part in parts)

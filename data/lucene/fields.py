"""The fields of a Lucene document that polyhop adds to Anserini's: the keys of the title."""

from __future__ import annotations

from ..passages import Passage
from .jvm import autoclass, call
from .layout import BARE_TITLE, TITLE, title_terms


class DerivedFields:
    """Fields that are refilled for each passage, which is cheaper than new objects across JNI; for one thread."""

    def __init__(self) -> None:
        keyword = autoclass("org.apache.lucene.document.StringField")
        store = autoclass("org.apache.lucene.document.Field$Store")
        self._title = keyword(TITLE, "", store.NO)
        self._bare_title = keyword(BARE_TITLE, "", store.NO)
        self.fields = (self._title, self._bare_title)

    def fill(self, passage: Passage) -> None:
        title, bare_title = title_terms(passage.title)
        call(self._title, "setStringValue", title)
        call(self._bare_title, "setStringValue", bare_title)

"""The skills of polyhop's agents; importing this package registers them."""

from . import answer, collect, direct, plan, review

__all__ = ["answer", "collect", "direct", "plan", "review"]

"""Answers without passages: small talk and arithmetic."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from typing import Any

from ....signatures import AnswerDirectly
from ..prompt import ParsedPrompt
from ..registry import skill

_LONGEST_SUM, _LONGEST_NUMBER = 200, 300  # characters of an expression, digits of a number


@skill(AnswerDirectly, "question -> answer")
def answer_directly(prompt: ParsedPrompt) -> dict[str, Any]:
    """Answer small talk and arithmetic; everything else is unknown."""
    question = prompt.question
    if reply := small_talk(question):
        return {"reasoning": "Small talk needs no look-up.", "answer": reply, "confidence": 1.0}
    if (result := arithmetic(question)) is not None:
        return {"reasoning": "A sum needs no look-up.", "answer": result, "confidence": 1.0}
    return {"reasoning": "There is nothing to read.", "answer": "unknown", "confidence": 0.0}


_MUCH = r"(?: (?:so|very) much| a lot| again| everyone| all| there| for (?:your|the|all) \w+| for everything)*"
_SMALL_TALK = (
    (rf"(?:ok(?:ay)? |many )?thanks?(?: you)?{_MUCH}", "You are welcome."),
    (r"i appreciate (?:it|that|your help)", "You are welcome."),
    (rf"(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)){_MUCH}", "Hello!"),
    (r"(?:good ?bye|bye|bye bye|see you(?: later| soon)?|good night|farewell)", "Goodbye!"),
    (r"have a (?:nice|good|great) \w+", "Goodbye!"),
    (r"how are you(?: doing| today)*|how do you do", "I am well, thank you."),
)


def small_talk(text: str) -> str | None:
    """The reply to thanks, a greeting or a farewell; None for anything else."""
    said = " ".join(re.findall(r"[a-z]+", text.lower()))
    return next((reply for pattern, reply in _SMALL_TALK if re.fullmatch(pattern, said)), None)


_OPENING = re.compile(
    r"^(?:(?:please |can you |could you )*"
    r"(?:what(?:'s| is| are)|how much (?:is|are)|calculate|compute|work out|solve) )?"
    r"(?:the (?:sum|result|value) of )?"
)
_OPERATORS = (
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
    (r"\b(?:times|multiplied by)\b|×", "*"),
    (r"\b(?:divided by|over)\b|÷", "/"),
    (r"\b(?:to the power of|raised to)\b|\^", "**"),
    (r"\bsquared\b", "**2"),
    (r"\bcubed\b", "**3"),
    (r"(?<![\d.])0+(?=\d)", ""),  # "007"
)
_SUM = re.compile(r"[\d.+\-*/() ]+")


def arithmetic(text: str) -> str | None:
    """The exact result of an expression ("What is 12 * 3.5?"), as a fraction if it has no finite decimal; else None."""
    written = _OPENING.sub("", " ".join(text.lower().split())).rstrip("?=. ")
    written = re.sub(r"(?<=\d),(?=\d{3}\b)", "", written)
    for word, sign in _OPERATORS:
        written = re.sub(word, sign, written)
    if len(written) > _LONGEST_SUM or not _SUM.fullmatch(written) or not re.search(r"\d.*[-+*/].*\d", written):
        return None
    if re.fullmatch(r"\d+[-/]\d+(?:[-/]\d+)*", written):
        return None  # "9/11", "1914-1918": dates and ranges of years
    try:
        return _written(_value(ast.parse(written.strip(), mode="eval").body, written.strip()))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _value(node: ast.expr, source: str) -> Fraction:
    if isinstance(node, ast.Constant):
        return _checked(Fraction(ast.get_source_segment(source, node) or ""))  # as written: a float would round
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand, source)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, source), _value(node.right, source)
        if isinstance(node.op, ast.Add):
            return _checked(left + right)
        if isinstance(node.op, ast.Sub):
            return _checked(left - right)
        if isinstance(node.op, ast.Mult):
            return _checked(left * right)
        if isinstance(node.op, ast.Div):
            return _checked(left / right)
        if isinstance(node.op, ast.Pow) and right.denominator == 1 and abs(right) <= _LONGEST_NUMBER:
            return _checked(left ** int(right))
    raise ValueError("not an arithmetic expression")


def _checked(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) >= 10**_LONGEST_NUMBER:
        raise ValueError("the number is too long")
    return value


def _written(value: Fraction) -> str:
    places = next((places for places in range(21) if (value * 10**places).denominator == 1), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    whole, decimals = (digits[:-places], digits[-places:]) if places else (digits, "")
    return ("-" if value < 0 else "") + whole + (f".{decimals}" if decimals else "")

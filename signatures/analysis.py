"""Agents that look at the question alone."""

import dspy

from .choices import Route
from .replies import Questions


class AnalyzeQuestion(dspy.Signature):
    """Break a question into the atomic sub-questions that must be answered, in order, to answer it.

    First find its parts: the entities it names, the relations between them, and the constraints (dates, places,
    kinds). Then write one sub-question for each fact that has to be looked up, so that each asks for one relation of
    one entity and could be answered by one sentence of one document; a constraint stays in the sub-question that it
    limits. Name entities exactly as the question names them, titles whole, and refer to the answer of an earlier
    sub-question as #1, #2, ... instead of guessing it. A comparison asks the same of each side. Do not answer
    anything, do not add facts, and do not write a sub-question for a step that only compares or combines earlier
    answers. A question that needs only one fact is its own single sub-question.
    """

    question: str = dspy.InputField()
    sub_questions: Questions = dspy.OutputField(desc="1 to 6 atomic questions in the order they can be answered")


class PlanResearch(dspy.Signature):
    """Decide what it takes to answer a question, and write down what has to be looked up, in order.

    The route is "direct" if nothing has to be looked up: a greeting or thanks, arithmetic, or something that everybody
    knows for certain. It is "single" if a single document about something that the question names will hold the
    answer. It is "plan" if facts of several documents have to be joined; when in doubt, "plan".
    The sub-questions are the facts to look up. Each asks for one relation of one entity, can be read alone, names
    entities exactly as the question does, and keeps the dates, places and kinds that limit it; what an earlier
    sub-question finds out is written #1, #2, ... A comparison needs the same fact of both sides and no step for the
    comparing itself. For the routes "direct" and "single" the question is its only sub-question. Answer nothing.
    """

    question: str = dspy.InputField()
    route: Route = dspy.OutputField(desc='"direct", "single" or "plan"')
    sub_questions: Questions = dspy.OutputField(desc="1 to 6 questions to look up, each after those that it refers to")

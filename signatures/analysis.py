"""Agents that look at the question alone."""

import dspy

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

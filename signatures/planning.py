"""Agents that plan: PAR-RAG's planner, and what keeps its plan in line with what was found."""

import dspy

from .replies import Steps


class PlanSteps(dspy.Signature):
    """Plan how to find the answer to a question, one lookup at a time.

    Each step looks up one fact, the relation of one thing to another, in one search. Its thought says in a short
    sentence why it is needed and what it depends on; its question must be understood without the other steps, except
    that it writes #1, #2, ... where it needs the answer of step 1, 2, ... Never write "he", "it" or "that film" for
    such an answer, and never guess it. Steps that do not mention each other's answers are looked up at the same time,
    so do not chain what is independent: the two sides of a comparison are two steps of their own. Keep names, titles,
    dates and kinds exactly as the question has them. Make no more steps than there are facts to look up, and none
    that only compares or sums up: the answer is concluded afterwards. A question about a single fact has one step,
    the question itself.
    """

    question: str = dspy.InputField()
    steps: Steps = dspy.OutputField(
        desc='1 to 6 steps in the order of looking up, such as [{"thought": "Needs nothing before it.", "question": '
        '"Who wrote A?"}, {"thought": "Needs the answer of step 1.", "question": "Where was #1 born?"}]'
    )


class RefineQuestion(dspy.Signature):
    """Reword the next question of a plan, now that an earlier answer was corrected.

    The trajectory holds the questions asked so far with their present answers. Put those answers in place of the
    references (#1, #2, ...) in the next question, and reword what does not fit them any more: a wrong kind of thing, a
    wrong gender or number, a name that the correction replaced. What the next question asks for must stay the same: add
    no condition, drop none, and do not answer it. An answer "unknown" is not put in: describe it by its question, as in
    "the author of A". Where nothing is to be changed, repeat the question with the answers put in.
    """

    question: str = dspy.InputField(desc="what all steps together are to answer")
    trajectory: list[str] = dspy.InputField(desc='in order, as "#n question -> answer"')
    next_question: str = dspy.InputField()
    refined_question: str = dspy.OutputField(desc="one question, without references")

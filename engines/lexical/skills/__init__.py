"""One skill an agent. A skill turns a `Prompt` into the values of the agent's output fields.

An agent is recognised by the field that only it fills, never by its instruction: optimizers rewrite instructions. To
teach the engine a new agent, write a function in a file of its own and enter it under that field; what tells more comes
first, "answer" last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..prompt import Prompt
from .add import add_evidence
from .analyze import analyze_question
from .decide import decide_next
from .filter import filter_passages
from .knowledge import assess_evidence, check_facts, filter_spans, propose_queries, update_knowledge
from .known import answer_directly
from .plan import plan_steps, refine_question
from .reason import reason_on
from .review import judge_accuracy, judge_attribution, revise_answer
from .route import draw_roadmap, route_question
from .select import select_evidence
from .trajectory import answer_finally, answer_step
from .verify import verify_answer

Skill = Callable[[Prompt], dict[str, Any]]

SKILLS: dict[str, Skill] = {
    "correction": verify_answer,
    "sub_questions": analyze_question,
    "keep": select_evidence,
    "add": add_evidence,
    "route": route_question,
    "roadmap": draw_roadmap,
    "useful": filter_passages,
    "action": decide_next,
    "next_thought": reason_on,
    "queries": propose_queries,
    "new_facts": update_knowledge,
    "supported": check_facts,
    "spans": filter_spans,
    "sufficiency": assess_evidence,
    "steps": plan_steps,
    "refined_question": refine_question,
    "accuracy": judge_accuracy,
    "attribution": judge_attribution,
    "decision": revise_answer,
    "cited": answer_step,
    "answer": answer_finally,
}


def skill_for(prompt: Prompt) -> Skill:
    """The skill for a prompt.

    Raises:
        ValueError: none fits.
    """
    if "answer" in prompt.outputs and set(prompt.inputs) == {"question"}:
        return answer_directly  # nothing to read
    for name, skill in SKILLS.items():
        if name in prompt.outputs:
            return skill
    raise ValueError(
        f"the lexical engine plays no agent with the output fields {', '.join(prompt.outputs)}; "
        f"it knows those that fill one of {', '.join(SKILLS)}"
    )

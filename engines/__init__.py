"""Language models: by name and by role, with limits and budgets; and the keyless engine."""

import os

# DSPy and LiteLLM download a list of models and prices unless told otherwise, and both come with one.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

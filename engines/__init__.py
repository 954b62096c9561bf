"""Language models: by name, behind limits, and the embedded one."""

import os

# DSPy and LiteLLM fetch a list of models and prices from the net unless told not to, and both bring one along. polyhop
# goes to the net for questions only.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

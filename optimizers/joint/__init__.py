"""One optimization of a program's exemplars, prompts and thresholds: `polyhop optimize`."""

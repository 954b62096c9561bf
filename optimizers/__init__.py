"""What tunes a program: prompts, exemplars, confidence and thresholds; artifacts, diagnosis and export."""

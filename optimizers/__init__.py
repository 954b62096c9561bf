"""What tunes a program: prompts, exemplars and tunables; artifacts, diagnosis and export."""

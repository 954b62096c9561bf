"""Runs over many questions: execution, metrics, official scorers, statistics, comparisons and reports."""

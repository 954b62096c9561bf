"""The command line: a model of options and a function for each command."""

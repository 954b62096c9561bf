"""The command line: one file for each command; `studies` and `training` run from a checkout."""

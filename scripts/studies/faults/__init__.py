"""An endpoint that answers well, and the ways in which endpoints do not: what runs over HTTP are tested with."""

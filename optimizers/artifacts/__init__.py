"""A tuned program as a folder of JSON: everything that tuning found, and where it comes from.

    polyhop.save(program, "artifacts/hotpotqa", provenance=Provenance(dataset="hotpotqa", ...))
    program = polyhop.load("artifacts/hotpotqa", retriever)

No code, no key, no endpoint and no language model gets into it; nothing in it can run.
"""

from .files import ArtifactError, ArtifactWarning
from .loading import load
from .provenance import Provenance, Split
from .reading import Artifact, read
from .writing import save

__all__ = ["Artifact", "ArtifactError", "ArtifactWarning", "Provenance", "Split", "load", "read", "save"]

"""What is searched: passages, documents, indexes, retrievers, and the questions of benchmarks."""

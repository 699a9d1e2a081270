"""Full-text indices: documents, words, and which documents have which words."""

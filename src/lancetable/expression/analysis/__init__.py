"""Analysis of texts: words as a full-text index stores them and as a query asks for them."""

"""How fast is lancetable beside pylance, on the same tables and in the same run?

A case (`benchmarks.cases`) is one function over a small adapter; a peer (`benchmarks.peers`) is
one implementation of that adapter. `python -m benchmarks.run` measures the cases with the peers
in turn, and `python -m benchmarks.report` turns a stored run into a markdown table.
"""

"""The compressive encodings of 2.1 and 2.2, one module each, named as in the specification.

They do not know each other: one that wraps another holds it as a value.
"""

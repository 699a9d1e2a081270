"""The page layouts of 2.1 and 2.2: how the buffers of a page are arranged so rows can be found."""

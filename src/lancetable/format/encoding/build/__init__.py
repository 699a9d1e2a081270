"""Pages in the making: from Arrow arrays to the buffers and descriptions of 2.1 and 2.2 files."""

"""A declarative pipeline that reads and writes Lance tables."""

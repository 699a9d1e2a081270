"""The text of ``lancetable --help`` in the words of typer; a test compares the two.

Loading typer takes several times as long as everything else that leads to this page.
"""

OVERVIEW = """\
Usage: lancetable [OPTIONS] COMMAND [ARGS]...

  Look into Lance tables and their data files, and look after their versions.

Options:
  --version   Print the version and leave.
  -h, --help  Show this message and exit.

Commands:
  info       Rows, versions, fragments, size, indices and settings of a...
  schema     The columns of a table with their types.
  head       The first rows of a table.
  versions   The versions of a table, oldest first.
  fragments  The fragments of a table with their rows and files.
  files      The data and deletion files of a table.
  pages      The pages of a data file and how each is encoded.
  history    What each version did, newest first.
  diff       How two versions differ: columns, rows, fragments and files.
  clone      Create a table that starts with a version of another.
  restore    Make an older version the latest; the versions in between stay.
  compact    Join small fragments and remove deleted rows from the files.
  changes    What the versions after one did to the rows, oldest first.
  cleanup    Remove old versions, and files that no version needs.
  check      Look for damage; exits with code 1 when there is any.
  repair     Create a version without what is damaged.
  index      List, create, optimize and drop indices.
  tag        List, create, move and delete tags.
  branch     List, create, publish and delete branches.
"""

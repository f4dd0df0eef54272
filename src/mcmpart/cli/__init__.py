"""The command line: one file per subcommand, and ``main``, which joins them.

At module level these files import typer and the standard library only, so that
``mcmpart --help`` answers at once; each command imports what it works with.
"""

"""``python -m mcmpart`` is the command ``mcmpart``."""

from mcmpart.cli.main import main

if __name__ == "__main__":
    main()

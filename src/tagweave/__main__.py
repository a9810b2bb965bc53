"""`python -m tagweave`, and the script `tagweave`."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it is being imported, or in its last moment, ends it quietly too."""
    try:
        from tagweave.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()

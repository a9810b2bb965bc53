"""`python -m tagweave`, and the script `tagweave`."""

import sys


def main() -> None:
    """Run the command line; an interrupt while it is being imported ends it as quietly as a later one."""
    try:
        from tagweave.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

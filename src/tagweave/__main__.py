"""`python -m tagweave`."""

from tagweave.cli import main

main()

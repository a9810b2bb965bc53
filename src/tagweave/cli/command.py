"""`Command`: a command that takes each option once, unless it is one that may be repeated."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from tagweave.errors import UsageError


class Command(TyperCommand):
    """A command that refuses an option with two values.

    Typer takes the last: `--systems hmm --systems chmm` would leave out the first without a word.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Check the arguments, then read them.

        Raises:
            UsageError: an option is given twice.
        """
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option, times in Counter(given).items():
            if times > 1 and not getattr(option, "multiple", True) and not getattr(option, "is_flag", True):
                form = f"{option.opts[0]} {option.metavar or 'VALUE'}"
                raise UsageError(f"{option.opts[0]} is given {times} times and takes one value: write {form} once")
        return super().parse_args(ctx, args)

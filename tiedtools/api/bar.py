"""A progress bar on standard error."""

import contextlib
import sys
from typing import Any

from tiedtools.base.messages import in_digits, perplexity
from tiedtools.training.progress import Progress


class Bar(Progress):
    """A Progress that shows a tqdm bar with words per second, loss, learning rate, and ETA.

    perplexities  also show the perplexity
    """

    bar: Any = None
    compilation: Any = None
    span = ""

    def __init__(self, perplexities: bool = False) -> None:
        self.perplexities = perplexities

    def compiling(self, number: int | None, expected: int) -> None:
        from tqdm import tqdm

        if self.compilation is None:
            self.compilation = tqdm(
                total=expected,
                leave=False,
                dynamic_ncols=True,
                file=sys.stderr,
                bar_format="compiling kernel {n_fmt} of about {total_fmt} |{bar}| {elapsed}, ETA {remaining}",
            )
        with contextlib.suppress(OSError):
            if number is None:
                self.compilation.close()
                self.compilation = None
            else:
                self.compilation.total = max(expected, number)
                self.compilation.update(number - self.compilation.n)

    def begin(self, total: int, begun: int = 0, history: Any = (), endless: bool = False) -> None:
        from tqdm import tqdm

        self.span = " of the epoch" * endless
        self.bar = tqdm(
            total=total,
            initial=begun,
            unit=" words",
            unit_scale=True,
            dynamic_ncols=True,
            file=sys.stderr,
            bar_format=f"{{percentage:5.1f}}%{self.span} |{{bar}}| {{rate_fmt}}{{postfix}}, ETA {{remaining}}",
        )

    def restart(self) -> None:
        if self.bar is not None:
            self.bar.reset()

    def update(self, done: int, loss: float, lr: float) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(", ".join(self.figures(loss, lr)), refresh=False)
            with contextlib.suppress(OSError):
                self.bar.update(done - self.bar.n)

    def figures(self, loss: float, lr: float) -> list[str]:
        """Return the figures to show, as a list of strings."""
        if not self.perplexities:
            return [f"loss {loss:.4f}", f"lr {lr:.5f}"]
        return [f"loss {loss:.4f}", f"ppl {in_digits(perplexity(loss), '.1f')}", f"lr {lr:.4g}"]

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

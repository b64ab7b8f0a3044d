"""What a person sees of a run: a bar on a terminal, plain lines elsewhere."""

import shutil
import sys
import time
from typing import Any, TextIO

from tqdm import tqdm


class Progress:
    """Shows step, loss, images per second and waiting for data; use it in a `with` block.

    Args:
      first_step: number of steps done before this run.
      max_steps: number of steps after which the run ends; None for no end.
      images_per_step: images in a step, over all clones.
      stream: where to write; a bar if it is a terminal, else one line per update.
    """

    def __init__(
        self,
        first_step: int,
        max_steps: int | None,
        images_per_step: int,
        stream: TextIO | None = None,
    ) -> None:
        self._stream = stream or sys.stderr
        self._images_per_step = images_per_step
        self._max_steps = max_steps
        self._step = first_step
        self._time = time.perf_counter()
        self._waited: float | None = None
        self._bar: Any = None
        if self._stream.isatty():
            # Some terminals say that they are 0 wide, where tqdm would show nothing.
            width = shutil.get_terminal_size().columns
            self._bar = tqdm(
                total=max_steps, initial=first_step, unit="step", ncols=width, file=self._stream
            )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add_wait(self, seconds: float) -> None:
        """Counts the time that a step has waited for its data."""
        self._waited = (self._waited or 0.0) + seconds

    def update(self, step: int, loss: float) -> None:
        """Shows the state after `step`, with rates since the last call."""
        now = time.perf_counter()
        steps, seconds = step - self._step, now - self._time
        facts = [f"loss {loss:.4f}", f"{steps * self._images_per_step / seconds:,.0f} images/s"]
        if self._waited is not None:
            facts.append(f"{min(1.0, self._waited / seconds):.0%} waiting for data")
            self._waited = 0.0
        if self._bar is not None:
            self._bar.set_postfix_str(", ".join(facts), refresh=False)
            self._bar.update(steps)
        else:
            of = f"/{self._max_steps}" if self._max_steps is not None else ""
            print("  ".join([f"step {step}{of}", *facts]), file=self._stream, flush=True)
        self._step, self._time = step, now

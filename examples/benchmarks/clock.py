"""Time training steps and their parts, in a worker. Imports nothing heavy."""

import time

from tiedtools.base import memory

BOTH = "forward", "backward"  # methods of a layer


def measured(steps, step):
    """Call `step`, which returns the mean nats, `steps` times; return seconds, mean nats, and peak memory as a dict."""
    began = time.perf_counter()
    nats = [step() for _ in range(steps)]
    seconds = time.perf_counter() - began
    return dict(seconds=seconds, nats=sum(nats) / steps, bytes=memory.peak())


class Clock:
    """Timer of the parts of a step: wraps methods of the layers and the optimizer; `seconds` is {part: seconds}.

    parts  (part, methods, objects) in table order; the parts of every network (softmax, update) are added
    """

    def __init__(self, model, optimizer, parts):
        self.seconds = {}
        ends = [("softmax", ["loss"], [model.network.output]), ("update", ["update"], [optimizer])]
        for part, methods, objects in [*parts, *ends, ("update", ["begin_step"], [model.params])]:
            for target in objects:
                self.seconds.setdefault(part, 0.0)
                for method in methods:
                    setattr(target, method, self.timed(part, getattr(target, method)))

    def timed(self, part, function):
        def run(*args, **kwargs):
            began = time.perf_counter()
            result = function(*args, **kwargs)
            self.seconds[part] += time.perf_counter() - began
            return result

        return run

    def measured(self, steps, step):
        """Measure as the function `measured` does, with the seconds of all `parts`."""
        before = dict(self.seconds)
        result = measured(steps, step)
        parts = {part: now - before[part] for part, now in self.seconds.items()}
        return result | dict(parts=parts | {"the rest": result["seconds"] - sum(parts.values())})

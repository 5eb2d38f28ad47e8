"""Finite differences."""


def slope(array, rng, objective, e=1e-5):
    """Return a random direction, shaped like `array`, and the slope of objective() along it; `array` is restored."""
    middle, direction, ends = array.copy(), rng.normal(size=array.shape), []
    for side in e, -e:
        array[:] = middle + side * direction
        ends.append(objective())
    array[:] = middle
    return direction, (ends[0] - ends[1]) / (2 * e)

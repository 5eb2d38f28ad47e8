"""Test conversion between text and float32 against C's printf (through Python's %) and Python's float()."""

import numpy as np
import pytest

from tiedtools.kernels.text.floats import format_numbers, format_rows, parse_rows


def bits(values):
    """Return float32 values as integers, so that 0.0 and -0.0 differ."""
    return np.asarray(values, np.float32).view(np.uint32)


def random_float32(rng, n):
    """Return up to n finite float32 with random bits."""
    values = rng.integers(0, 1 << 32, n, dtype=np.uint32).view(np.float32)
    return values[np.isfinite(values)]


def format_column(values):
    """Return the kernel's text of rows "w value", and the number of rows written."""
    matrix = np.array(values, np.float32).reshape(-1, 1)
    n = len(matrix)
    out = np.empty(n * 22, np.uint8)
    text = np.frombuffer(b"w" * n, np.uint8)
    done, size = format_rows(out, matrix, text, np.arange(n + 1), 0, n, 1)
    return out[:size].tobytes(), done


def parse_column(numbers):
    """Return the float32 that the kernel parses from lines "w number", and the number of lines parsed."""
    text = b"".join(b"w %b\n" % number for number in numbers)
    matrix = np.full((len(numbers), 1), 7, np.float32)
    spans = np.empty((len(numbers), 2), np.int64)
    done, stop = parse_rows(matrix, spans, np.frombuffer(text, np.uint8), 0, len(numbers), 1)
    assert stop == sum(len(number) + 3 for number in numbers[:done])
    return matrix[:, 0], done


def assert_parsed_like_python(numbers, stops):
    """Check each number that the kernel parses; it may stop at up to `stops` of them."""
    stopped = 0
    at = 0
    with np.errstate(over="ignore"):
        expected = np.array([float(number) for number in numbers], np.float32)
    while at < len(numbers):
        values, done = parse_column(numbers[at:])
        np.testing.assert_array_equal(bits(values[:done]), bits(expected[at : at + done]))
        at += done + 1
        stopped += at <= len(numbers)
    assert stopped <= stops


def expected_column(values):
    """Return the text that `format_column` should return: "%.6f", or "%.9g" for a small value, here a row."""
    return b"".join(b"w %.6f\n" % x if abs(x) >= 1e-3 or x == 0 else b"w %.9g\n" % x for x in values.tolist())


def test_formats_like_printf():
    rng = np.random.default_rng(1)
    values = np.concatenate([random_float32(rng, 50_000), rng.normal(0, 0.3, 50_000).astype(np.float32)])
    values = values[abs(values) < 1e9]
    text, done = format_column(values)
    assert done == len(values) > 50_000 and text == expected_column(values)
    # x = odd / 128 makes x * 1e6 end in exactly .5
    values = np.arange(-40_001, 40_001, 2, dtype=np.float32) / 128
    assert (values.astype(np.float64) * 1e6 % 1 == 0.5).all()
    assert format_column(values)[0] == b"".join(b"w %.6f\n" % x for x in values.tolist())
    values = np.float32([0.0, -0.0, 0.9999999, 9.999999, 10, -999999936])
    expected = "0.000000 -0.000000 1.000000 9.999999 10.000000 -999999936.000000"
    assert format_column(values)[0].decode() == "".join(f"w {x}\n" for x in expected.split())
    out = np.empty(200, np.uint8)
    text = np.frombuffer("xéyz".encode(), np.uint8)
    matrix = np.float32([[1, 2], [3, 4], [5, 6]])
    done, size = format_rows(out, matrix, text, np.array([0, 1, 3, 5]), 1, 3, 2)
    assert done == 3
    assert out[:size].tobytes().decode() == "é 3.000000 4.000000\nyz 5.000000 6.000000\n"


def test_small_values_and_single_numbers_are_formatted_like_printf():
    """Nine digits, where six decimals would be 0 and in vectors that are small as a whole."""
    rows = [0.5, -1e-9, 4.9e-7, -5.1e-7, 1e-45, 0, -0.0], [0.0009, -5.1e-7, 1e-4, 2e-38, 0, -0.0, 1]
    matrix = np.float32([*rows, [*rows[1][:-1], 1e-4]])
    out = np.empty(500, np.uint8)
    done, size = format_rows(out, matrix, np.frombuffer(b"abc", np.uint8), np.arange(4), 0, 3, 7)
    assert done == 3 and out[:size].tobytes().decode().splitlines() == [
        "a 0.500000 -9.99999972e-10 4.89999991e-07 -0.000001 1.40129846e-45 0.000000 -0.000000",
        "b 0.000900 -0.000001 0.000100 2.00000001e-38 0.000000 -0.000000 1.000000",
        "c 0.000899999985 -5.10000007e-07 9.99999975e-05 2.00000001e-38 0.000000 -0.000000 9.99999975e-05",
    ]
    again = np.empty_like(matrix)
    parse_rows(again, np.empty((3, 2), np.int64), out[:size], 0, 3, 7)
    np.testing.assert_array_equal(bits(again[2]), bits(matrix[2]))
    rng = np.random.default_rng(1)
    powers = [float(f"{sign}1e{k}") for k in range(-44, 39) for sign in "+-"]
    edges = [0.0, -0.0, 1e-45, 3.4028235e38, 0.1, 0.30000001, 99999.9921875, 9999999, 16777216, 1e5, 123456789, 0.0001]
    near = [np.nextafter(np.float32(p), np.float32(q)) for p in powers for q in (-np.inf, np.inf)]
    x = np.array([*powers, *edges, *near, *rng.normal(size=20_000), *rng.normal(size=20_000) * 1e-6], np.float32)
    n, text = numbers_as_text(x)
    assert n == x.size
    lines = text.decode().splitlines()
    expected = [f"{value:.9g}" for value in x]
    assert sum(a != b for a, b in zip(lines, expected)) <= 2
    assert np.array(lines, np.float32).tobytes() == x.tobytes()
    x = random_float32(np.random.default_rng(2), 50_000)
    assert np.array(numbers_as_text(x)[1].split(), np.float32).tobytes() == x.tobytes()


@pytest.mark.parametrize("value", [1e9, -1e9, 3e38, np.inf, -np.inf, np.nan])
def test_formatting_stops_at_unsupported_values(value):
    assert format_column([0.5, value, 0.25]) == (b"w 0.500000\n", 1)


@pytest.mark.parametrize(
    "written", [b"%.6f", b"%.9g", b"%.17g", b"%.3e", b"%.20f", b"%+.1f", b"%.0f", b"%.25e"], ids=lambda f: f.decode()
)
def test_parses_printf_output(written):
    rng = np.random.default_rng(2)
    values = rng.normal(0, 1, 5_000) * 10.0 ** rng.integers(-9, 9, 5_000)
    assert_parsed_like_python([written % x for x in values], stops=2)


def test_parses_random_float32_and_unusual_notations():
    values = random_float32(np.random.default_rng(3), 20_000)
    values = values[abs(values) > 1e-37]
    assert_parsed_like_python([b"%.9g" % x for x in values.tolist()], stops=2)
    assert_parsed_like_python([repr(x).encode() for x in values.tolist()], stops=2)
    numbers = b"1 +1 -1 .5 5. -.5e1 1E3 1e+3 1e-3 00.1 0e9999 -0.0 0.00000000000000000000012 1e22 9876543210987654321"
    assert_parsed_like_python(numbers.split(), stops=0)
    text = "a 1 2\r\né\t\t3  4 \t\n\u00a0\x0b 5 6 \r\n".encode()
    matrix = np.empty((4, 2), np.float32)
    spans = np.zeros((4, 2), np.int64)
    assert parse_rows(matrix, spans, np.frombuffer(text, np.uint8), 0, 4, 2) == (3, len(text))
    assert matrix[:3].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [text[a:b].decode() for a, b in spans[:3]] == ["a", "é", "\u00a0\x0b"]
    data = np.frombuffer(b"a 1\nb 2\nc 3\n", np.uint8)
    matrix = np.zeros((3, 1), np.float32)
    assert parse_rows(matrix, np.empty((3, 2), np.int64), data, 4, 1, 1) == (1, 8)
    assert matrix.tolist() == [[2], [0], [0]]


def test_midpoints_between_two_float32_are_parsed_correctly_or_refused():
    low = random_float32(np.random.default_rng(4), 2_000)
    middle = low.astype(np.float64) / 2 + np.nextafter(low, np.float32(np.inf)).astype(np.float64) / 2
    middle = middle[np.isfinite(middle)]
    numbers = [b"%.*e" % (digits, x) for x in middle.tolist() for digits in (15, 16, 17, 30)]
    assert_parsed_like_python(numbers, stops=len(numbers))


@pytest.mark.parametrize(
    "number", b". - + e5 1e 1e+ 1..2 1_0 0x1 nan inf -inf 1e39 -4e38 1,5 1- --1 1e18446744073709551616 1e-99999".split()
)
def test_parsing_stops_at_unsupported_numbers(number):
    values, done = parse_column([b"0.5", number, b"0.25"])
    assert done == 1 and values[0] == 0.5


@pytest.mark.parametrize(
    "line", [b"", b" ", b"\t\r", b"b", b"b ", b"b 3", b"b 3 4 5", b"b c 3 4", b" 3 4", b"b 3\r4 5", b"b 3 4\x0b"]
)
def test_parsing_stops_at_malformed_lines(line):
    data = np.frombuffer(b"a 1 2\n" + line + b"\nc 5 6\n", np.uint8)
    spans = np.zeros((3, 2), np.int64)
    assert parse_rows(np.empty((3, 2), np.float32), spans, data, 0, 3, 2) == (1, 6)
    assert spans[0].tolist() == [0, 1]


def numbers_as_text(numbers):
    out = np.full(16 * numbers.size + 1, 255, np.uint8)
    n, size = format_numbers(out, numbers)
    assert out[16 * numbers.size] == 255
    return n, out[:size].tobytes()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_formatting_single_numbers_stops_at_nonfinite_values(value):
    assert numbers_as_text(np.array([1.5, -2, value, 3], np.float32)) == (2, b"1.5\n-2\n")

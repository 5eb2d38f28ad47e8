"""Product quantization as in fastText (Jegou et al. 2011; Joulin et al. 2016): a code for each few numbers of a row.

A row is divided by its norm and cut into S parts of D numbers, the last of which may be shorter. Each part is replaced
by the closest of 256 centroids, and the norm by the closest of 256 numbers.
"""

import math
import struct
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import ahead, available_cores
from tiedtools.kernels.text import nearest as kernels
from tiedtools.kernels.text.nearest import CENTROIDS
from tiedtools.vectors.norms import Matrix, unit

SAMPLE = 1 << 16  # rows from which the centroids are learned
BLOCK = 1 << 13  # rows at a time
SIZES = struct.Struct("<?qqi")
QUANTIZER = struct.Struct("<4i")


class Quantized:
    """A quantized matrix [m, n].

    codes    uint8 [m, S]
    tables   float32 [S, 256, D]: the centroids of each part; those of a short last part are padded with zeros
    norms    float32 [256], and norm_codes, uint8 [m]; None: rows were not divided by their norms
    end      address after the matrix in its file
    """

    def __init__(self, n: int, codes: Matrix, tables: Matrix, norms: Any = None, norm_codes: Any = None) -> None:
        self.shape = len(codes), n
        self.codes, self.tables, self.norms, self.norm_codes = codes, tables, norms, norm_codes
        self.end = 0

    @classmethod
    def parse(cls, data: Any, at: int, E: int) -> "Quantized":
        """Map the matrix of E columns at an address of a file.

        Raises ValueError or struct.error if its sizes are impossible.
        """
        with_norms, m, n, size = SIZES.unpack_from(data, at)
        codes, at = take(data, at + SIZES.size, size)
        tables, at = parse_tables(data, at, n)
        if m < 0 or n != E or size != m * len(tables):
            raise ValueError(f"{size} codes for a quantized matrix of {m} by {n} numbers")
        quantized = cls(n, codes.reshape(m, len(tables)), tables)
        if with_norms:
            quantized.norm_codes, at = take(data, at, m)
            norms, at = parse_tables(data, at, 1)
            quantized.norms = norms.reshape(CENTROIDS)
        quantized.end = at
        return quantized

    def read(self, rows: Matrix) -> Matrix:
        """Return the bytes of some rows as float32, uint8 [k, 4 n]."""
        numbers = self.tables[np.arange(len(self.tables)), self.codes[rows]].reshape(len(rows), self.tables[:, 0].size)
        if self.norms is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = numbers * self.norms[self.norm_codes[rows], None]
        return np.ascontiguousarray(numbers[:, : self.shape[1]]).view(np.uint8).reshape(len(rows), 4 * self.shape[1])

    def write(self, file: BinaryIO) -> None:
        """Write the matrix as `parse` reads it."""
        with_norms = self.norms is not None
        file.write(SIZES.pack(with_norms, *self.shape, self.codes.size) + self.codes.tobytes())
        write_tables(file, self.tables, self.shape[1])
        if with_norms:
            file.write(self.norm_codes.tobytes())
            write_tables(file, self.norms.reshape(1, CENTROIDS, 1), 1)


def write_tables(file: BinaryIO, tables: Matrix, n: int) -> None:
    """Write the centroids of rows of n numbers."""
    S, _, D = tables.shape
    last = n - (S - 1) * D
    file.write(QUANTIZER.pack(n, S, D, last))
    file.write(tables[:-1].tobytes() + tables[-1, :, :last].tobytes())


def quantize(matrix: Any, D: int = 3) -> Quantized:
    """Return a float32 matrix [m, n] quantized in parts of D numbers, with centroids of a random sample of its rows."""
    m, n = matrix.shape
    S, rng = math.ceil(n / D), np.random.default_rng(1)
    if m * S >= 1 << 31:
        raise TiedtoolsError(f"{m:,} rows need {m * S:,} bytes, but fastText's files hold 2,147,483,647; use fewer")

    def parts(rows: Any) -> list[Matrix]:
        """Return the norms of some rows (k, 1), and each of their S parts (k, D), divided by the norms."""
        numbers = np.asarray(matrix[rows], np.float32)
        padded = np.pad(unit(numbers), ((0, 0), (0, S * D - n)))
        columns = [np.linalg.norm(numbers, axis=1, keepdims=True), *np.split(padded, S, 1)]
        return [np.ascontiguousarray(column) for column in columns]

    sample = parts(np.sort(rng.choice(m, min(m, SAMPLE), replace=False)))
    starts = rng.choice(len(sample[0]), CENTROIDS, replace=len(sample[0]) < CENTROIDS)
    norms, *tables = ahead([lambda part: kmeans(part, part[starts])] * available_cores(), sample)
    codes = np.empty((m, 1 + S), np.uint8)

    def encode(start: int) -> None:
        for column, (part, table) in enumerate(zip(parts(slice(start, start + BLOCK)), [norms, *tables])):
            codes[start : start + BLOCK, column] = nearest(part, table)

    for _ in ahead([encode] * available_cores(), range(0, m, BLOCK)):
        pass
    return Quantized(n, codes[:, 1:], np.stack(tables), norms[:, 0], codes[:, 0])


def kmeans(rows: Matrix, centroids: Matrix, iterations: int = 15) -> Matrix:
    """Return the centroids, float32 [256, D], of rows [k, D] after k-means from some initial centroids."""
    for _ in range(iterations):
        codes = nearest(rows, centroids)
        sums = np.stack([np.bincount(codes, column, CENTROIDS) for column in rows.T], 1)
        sizes = np.bincount(codes, minlength=CENTROIDS)[:, None]
        centroids = np.where(sizes, sums / np.maximum(sizes, 1), centroids).astype(np.float32)  # an empty class stays
    return centroids


def nearest(rows: Matrix, centroids: Matrix) -> Matrix:
    """Return the codes, uint8 [k], of the nearest of 256 centroids [256, D] to each of `rows` [k, D]."""
    codes, distances = np.empty(len(rows), np.uint8), np.empty(CENTROIDS, np.float32)
    kernels.nearest(codes, distances, distances.view(np.int32), rows, np.ascontiguousarray(centroids.T))
    return codes


def take(data: Matrix, at: int, size: int) -> tuple[Matrix, int]:
    """Return the next `size` bytes, and the address after them."""
    if not 0 <= size <= data.size - at:
        raise ValueError(f"the file ends within {size} codes")
    return data[at : at + size], at + size


def parse_tables(data: Any, at: int, n: int) -> tuple[Matrix, int]:
    """Return the centroids of a quantizer of rows of n numbers, padded [S, 256, D], and the address after it."""
    dim, S, D, last = QUANTIZER.unpack_from(data, at)
    if not (0 < dim == n and 0 < D and S == math.ceil(dim / D) and last == dim - (S - 1) * D):
        raise ValueError(f"a quantizer of {dim} numbers in {S} parts of {D}")
    D = min(D, dim)
    raw, at = take(data, at + QUANTIZER.size, 4 * CENTROIDS * dim)
    numbers = np.frombuffer(raw.tobytes(), "<f4")
    tables = np.zeros((S, CENTROIDS, D), np.float32)
    tables[:-1] = numbers[: (S - 1) * CENTROIDS * D].reshape(S - 1, CENTROIDS, D)
    tables[-1, :, :last] = numbers[(S - 1) * CENTROIDS * D :].reshape(CENTROIDS, last)
    return tables, at

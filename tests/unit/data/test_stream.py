"""Streams of rows: every row once an epoch, in an order that the seed decides, in bounded memory."""

import gc
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from discrax.data.stream import RowStream, write_rows

AHEAD = 2


def blocks(stream: RowStream, count: int) -> np.ndarray:
    return np.concatenate([next(stream) for _ in range(count)])


def until(is_true, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not is_true() and time.monotonic() < end:
        time.sleep(0.005)
    return is_true()


@pytest.mark.parametrize(
    ("num_rows", "block_rows", "piece_rows"),
    [(100, 10, 5), (103, 10, 7), (103, 7, 10), (10, 32, 4), (5, 3, 100), (1, 4, 1), (97, 97, 97)],
)
def test_every_epoch_has_each_row_once(num_rows, block_rows, piece_rows):
    with RowStream(np.arange(num_rows), block_rows, piece_rows, seed=1) as stream:
        count = -(-3 * num_rows // block_rows)
        seen = blocks(stream, count)
    times = np.bincount(seen, minlength=num_rows)
    whole, rest = divmod(count * block_rows, num_rows)
    assert times.min() >= whole
    assert (times == whole + 1).sum() == rest
    # Blocks are shuffled, so epochs can be told apart only where a block ends with one.
    if num_rows % block_rows == 0:
        for epoch in seen[: 3 * num_rows].reshape(3, num_rows):
            np.testing.assert_array_equal(np.sort(epoch), np.arange(num_rows))


def test_a_block_is_made_of_whole_pieces_and_is_shuffled():
    with RowStream(np.arange(1000), block_rows=100, piece_rows=20) as stream:
        first, second = next(stream), next(stream)
    for block in (first, second):
        pieces, counts = np.unique(block // 20, return_counts=True)
        np.testing.assert_array_equal(counts, 20)
        assert not np.array_equal(pieces, np.arange(pieces[0], pieces[0] + 5))
        assert (np.diff(block) == 1).sum() < 10  # 95 of 99 neighbours were neighbours in the array
    assert not set(first) & set(second)


def test_places_in_a_block_and_pieces_are_uniform():
    # Row 0 of 4 pieces of 3 rows: first block or second, and which of the 6 places in it, over 600 epochs.
    with RowStream(np.arange(12), block_rows=6, piece_rows=3, seed=3) as stream:
        epochs = blocks(stream, 1200).reshape(600, 12)
    counts = np.bincount(np.argmax(epochs == 0, axis=1), minlength=12)
    chi_square = ((counts - 50) ** 2 / 50).sum()
    assert chi_square < 31.3  # 0.999 quantile with 11 degrees of freedom


def test_rows_of_several_arrays_stay_together_and_blocks_are_new_contiguous_arrays(tmp_path):
    X = np.arange(120, dtype=np.float32).reshape(40, 3)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "swapped.npy", X.astype(">f8"))
    leaves = {
        "memory": np.asfortranarray(X),
        "device": jnp.asarray(X),
        "path": str(tmp_path / "X.npy"),
        "swapped": tmp_path / "swapped.npy",
        "mapped": (np.load(tmp_path / "X.npy", mmap_mode="r"), np.load(tmp_path / "X.npy", mmap_mode="r")[:, 1]),
        "is_even": np.arange(40) % 2 == 0,
    }
    with RowStream(leaves, block_rows=16, piece_rows=6) as stream:
        assert len(stream) == 40
        assert stream.row["path"] == jax.ShapeDtypeStruct((3,), np.float32)
        assert stream.row["mapped"][1] == jax.ShapeDtypeStruct((), np.float32)
        assert stream.row["is_even"] == jax.ShapeDtypeStruct((), np.bool_)
        got = [next(stream) for _ in range(4)]
    for block in got:
        index = (block["memory"][:, 0] // 3).astype(int)
        for name in ("memory", "device", "path", "swapped"):
            np.testing.assert_array_equal(block[name], X[index])
        np.testing.assert_array_equal(block["mapped"][1], X[index, 1])
        np.testing.assert_array_equal(block["is_even"], index % 2 == 0)
        assert block["swapped"].dtype == np.float64
        for array in jax.tree.leaves(block):
            assert type(array) is np.ndarray
            assert array.flags.c_contiguous
            assert array.flags.owndata
    assert not np.shares_memory(got[0]["path"], got[1]["path"])


def test_the_seed_decides_and_a_position_goes_on():
    rows = np.arange(50)
    with RowStream(rows, 8, 4, seed=5) as stream, RowStream(rows, 8, 4, seed=6) as other:
        whole = [next(stream) for _ in range(20)]
        assert stream.position == 20
        assert not np.array_equal(whole[0], next(other))
    for start in (0, 3, 13):
        with RowStream(rows, 8, 4, seed=5, start=start) as stream:
            for expected in whole[start:]:
                np.testing.assert_array_equal(next(stream), expected)


class Watched(np.ndarray):
    """An array that tells which rows were read."""

    def __getitem__(self, item):
        if isinstance(item, slice):
            self.read.append(item)
        return super().__getitem__(item)


def test_two_blocks_are_read_ahead_and_no_more():
    rows = np.arange(100).view(Watched)
    rows.read = []
    with RowStream(rows, block_rows=10, piece_rows=10) as stream:
        assert not rows.read
        for taken in range(1, 4):
            next(stream)
            assert until(lambda taken=taken: len(rows.read) == taken + AHEAD)
            time.sleep(0.02)
            assert len(rows.read) == taken + AHEAD


def test_a_file_that_vanishes_or_shrinks_is_a_sentence_and_reading_goes_on_when_it_is_back(tmp_path):
    path, rows = tmp_path / "rows.npy", np.arange(1000)
    np.save(path, rows)
    whole = path.read_bytes()
    with RowStream(path, block_rows=100, piece_rows=50) as stream:
        path.unlink()
        with pytest.raises(OSError, match=r"of .*rows\.npy cannot be read any more: .*No such file"):
            next(stream)
        path.write_bytes(whole[:200])
        with pytest.raises(OSError, match=r"rows\.npy ends before row \d+, but it had 1000 rows"):
            next(stream)
        path.write_bytes(whole)
        assert stream.position == 0
        np.testing.assert_array_equal(np.sort(blocks(stream, 10)), rows)


def test_a_closed_stream_says_so_and_ends_its_thread():
    before = threading.active_count()
    with RowStream(np.arange(10), 4, 2) as stream:
        next(stream)
        assert threading.active_count() == before + 1
    assert threading.active_count() == before
    stream.close()
    with pytest.raises(ValueError, match=r"closed; RowStream\(..., start=stream.position\)"):
        next(stream)


def test_a_forgotten_stream_ends_its_thread():
    before = threading.active_count()
    stream = RowStream(np.arange(10), 4, 2)
    next(stream)
    assert threading.active_count() == before + 1
    del stream
    gc.collect()
    assert until(lambda: threading.active_count() == before)


def test_the_interpreter_ends_with_an_open_stream():
    program = """
        import numpy as np
        from discrax.data.stream import RowStream

        stream = RowStream(np.arange(1_000_000), 65_536, 64)
        next(stream)
        print("done")
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_threads_that_share_a_stream_get_different_blocks():
    with RowStream(np.arange(400), 10, 5) as stream:
        taken: list[np.ndarray] = []
        threads = [threading.Thread(target=lambda: taken.append(blocks(stream, 10))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    np.testing.assert_array_equal(np.sort(np.concatenate(taken)), np.arange(400))


def test_a_stream_is_known_by_identity():
    with RowStream(np.arange(4), 2, 2) as one, RowStream(np.arange(4), 2, 2) as other:
        assert len({one, other, one}) == 2
        assert one != other


def resident_file_mib() -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(lines[name].split()[0]) for name in ("RssFile", "RssShmem")) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Resident pages are told by Linux's /proc.")
def test_pages_of_a_mapped_file_do_not_stay_resident(tmp_path):
    path = tmp_path / "rows.npy"
    write_rows(path, lambda begin, end: np.ones((end - begin, 64), np.float32), 250_000)  # 61 MiB
    mapped = np.load(path, mmap_mode="r")
    before = resident_file_mib()
    with RowStream(mapped, block_rows=10_000, piece_rows=1_000) as stream:
        for _ in range(26):
            assert next(stream).all()
    assert resident_file_mib() - before < 10


def test_what_was_written_to_a_private_map_is_kept(tmp_path):
    np.save(tmp_path / "rows.npy", np.zeros(5000))
    private = np.load(tmp_path / "rows.npy", mmap_mode="c")
    private[:] = 1
    with RowStream(private, 1000, 500) as stream:
        assert blocks(stream, 10).all()


@pytest.mark.parametrize("num_rows", [1, 10, 11, 30])
def test_written_rows_are_read_back(tmp_path, num_rows):
    X = np.random.default_rng(0).normal(size=(num_rows, 2, 3)).astype(np.float32)
    write_rows(tmp_path / "X.npy", lambda begin, end: X[begin:end], num_rows, block_rows=10)
    read = np.load(tmp_path / "X.npy")
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, X)


def test_blocks_that_do_not_fit_together_are_not_written(tmp_path):
    with pytest.raises(ValueError, match=r"Rows 4 to 6 must be an array of shape \(2, 3\).*returned \(2, 4\)"):
        write_rows(tmp_path / "a.npy", lambda begin, end: np.zeros((end - begin, 3 + begin // 4)), 6, block_rows=4)
    with pytest.raises(ValueError, match="numbers or booleans, but what make_block returned has dtype object"):
        write_rows(tmp_path / "b.npy", lambda begin, end: np.array([None] * (end - begin)), 6)
    with pytest.raises(ValueError, match="num_rows must be a whole number of at least 1, but got 0"):
        write_rows(tmp_path / "c.npy", lambda begin, end: np.zeros(end - begin), 0)


@pytest.mark.usefixtures("as_a_user")
@pytest.mark.parametrize(
    ("rows", "settings", "sentence"),
    [
        ((), {}, "at least one array or file, but got none"),
        (np.zeros((0, 3)), {}, r"at least one row, but an array of shape \(0, 3\) has none"),
        (np.zeros(()), {}, r"an array of shape \(\) is a single number"),
        (
            (np.zeros(3), np.zeros((4, 2))),
            {},
            r"same number of rows, but there are 3 in an array of shape \(3,\), 4 in",
        ),
        ([1.0, 2.0], {}, "arrays or from paths of .npy files, but got float: 1.0"),
        (np.array(["a", "b"]), {}, "numbers or booleans, but an array of shape .* has dtype <U1"),
        ("nowhere/X.npy", {}, r"There is no file .*nowhere/X\.npy"),
        (np.zeros(3), {"block_rows": 0}, "block_rows must be a whole number of at least 1, but got 0"),
        (np.zeros(3), {"block_rows": 2.5}, "block_rows must be a whole number of at least 1, but got 2.5"),
        (np.zeros(3), {"piece_rows": 0}, "piece_rows must be a whole number of at least 1, but got 0"),
        (np.zeros(3), {"seed": -1}, "seed must be a whole number of at least 0, but got -1"),
        (np.zeros(3), {"start": True}, "start must be a whole number of at least 0, but got True"),
    ],
)
def test_bad_input_is_a_sentence(rows, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        RowStream(rows, **settings)


def test_bad_files_are_a_sentence(tmp_path):
    np.savez(tmp_path / "several.npz", np.zeros(3))
    np.save(tmp_path / "columns.npy", np.zeros((4, 3), order="F"))
    np.save(tmp_path / "none.npy", np.zeros((0, 3)))
    np.save(tmp_path / "objects.npy", np.array([None, 1]), allow_pickle=True)
    (tmp_path / "empty.npy").touch()
    (tmp_path / "text.npy").write_text("1, 2, 3")
    np.save(tmp_path / "short.npy", np.zeros(1000))
    (tmp_path / "short.npy").write_bytes((tmp_path / "short.npy").read_bytes()[:500])
    sentences = {
        "several.npz": "archive; save its arrays one by one",
        "columns.npy": "column by column, so rows lie scattered; save it in C order",
        "none.npy": r"at least one row, but .*none\.npy has none",
        "objects.npy": "must be a whole .npy file of numbers",
        "empty.npy": "must be a whole .npy file of numbers",
        "text.npy": "must be a whole .npy file of numbers",
        "short.npy": "must be a whole .npy file of numbers",
    }
    for name, sentence in sentences.items():
        with pytest.raises(ValueError, match=sentence):
            RowStream(tmp_path / name)

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cache import codec
from cache.codec import CorruptEntry, decode, encode

META = {"method": "lime", "n": 3, "share": 0.1, "words": ["ünï", None, True], "inner": {"a": -0.0}}
ARRAYS = {"scores": np.linspace(-1, 1, 7), "mask": np.array([True, False])}

dtypes = st.sampled_from(["bool", "int8", "uint16", "int64", "<f2", "<f4", "<f8", ">f8", ">i4"])
arrays = dtypes.flatmap(lambda d: hnp.arrays(d, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))


@given(st.dictionaries(st.text(min_size=1, max_size=8).filter(lambda t: t != "__metadata__"), arrays, max_size=3))
@settings(max_examples=60, deadline=None)
def test_arrays_come_back_bit_for_bit(given_arrays: dict[str, np.ndarray]) -> None:
    meta, found = decode(encode(META, given_arrays, "k"), "k")
    assert meta == META
    assert found.keys() == given_arrays.keys()
    for name, array in given_arrays.items():
        assert (found[name].shape, found[name].dtype) == (array.shape, array.dtype.newbyteorder("="))
        assert found[name].tobytes() == array.astype(found[name].dtype).tobytes()


def test_memory_order_does_not_matter() -> None:
    array = np.arange(24.0).reshape(2, 3, 4)
    for view in (np.asfortranarray(array), array[:, ::-1], array.T, array[..., ::2]):
        np.testing.assert_array_equal(decode(encode({}, {"a": view}))[1]["a"], view)


def test_what_comes_back_cannot_be_changed_by_mistake() -> None:
    _, found = decode(encode(META, ARRAYS))
    with pytest.raises(ValueError, match="read-only"):
        found["scores"][0] = 1


def test_every_byte_is_guarded() -> None:
    body = encode(META, ARRAYS, "k")
    for place in range(len(body)):
        for bit in (0x01, 0x80):
            flipped = body[:place] + bytes([body[place] ^ bit]) + body[place + 1 :]
            with pytest.raises(CorruptEntry):
                decode(flipped, "k")


def test_every_length_is_guarded() -> None:
    body = encode(META, ARRAYS, "k")
    for size in range(len(body)):
        with pytest.raises(CorruptEntry):
            decode(body[:size], "k")
    with pytest.raises(CorruptEntry):
        decode(body + b"\0", "k")


def test_an_entry_is_bound_to_its_key() -> None:
    with pytest.raises(CorruptEntry, match="checksum"):
        decode(encode(META, ARRAYS, "one"), "other")


@pytest.mark.parametrize("bad", [None, 5, "text", 1.5, b"", b"\x80\x04.", pickle.dumps({"a": 1})])
def test_anything_else_is_corrupt(bad: object) -> None:
    with pytest.raises(CorruptEntry):
        decode(bad)


def forged(payload: bytes) -> bytes:
    return codec.MAGIC + codec._seal(payload, "") + payload


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff" * 8,
        safetensors.numpy.save({}),
        safetensors.numpy.save({}, metadata={"meta": "[1]"}),
        safetensors.numpy.save({}, metadata={"meta": "{"}),
        (2).to_bytes(8, "little") + b"[]",
        (10**6).to_bytes(8, "little") + b"[" * 10**6,
    ],
)
def test_a_forged_seal_around_nonsense_is_corrupt(payload: bytes) -> None:
    with pytest.raises(CorruptEntry):
        decode(forged(payload))


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.target),)


def test_a_pickle_is_never_run(tmp_path: Path) -> None:
    payload = pickle.dumps(Bomb(tmp_path / "exploded"))
    for body in (payload, forged(payload)):
        with pytest.raises(CorruptEntry):
            decode(body)
    assert not (tmp_path / "exploded").exists()
    pickle.loads(payload)  # noqa: S301 - the bomb is a real one
    assert (tmp_path / "exploded").exists()


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([None]), np.array([1j]), np.array([1], np.longdouble)])
def test_arrays_of_other_kinds_are_refused(bad: Any) -> None:
    with pytest.raises(TypeError, match=r"arrays\['x'\]: must be a numpy array of bool, integers or floats"):
        encode({}, {"x": bad})


def test_meta_that_is_not_plain_is_refused() -> None:
    with pytest.raises(TypeError, match=r"meta\['x'\]: must be None, bool"):
        encode({"x": np.float32(1)}, {})
    with pytest.raises(ValueError, match=r"meta\['x'\]: must be a finite number"):
        encode({"x": float("nan")}, {})

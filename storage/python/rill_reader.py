# SPDX-License-Identifier: Apache-2.0
"""Reads the rows of a Rill storage directory, while it is written or after.

Copy this file beside your program: it needs Python 3.8 and NumPy, and uses
torch where that is installed. It takes no lock and writes nothing, so the
writer neither waits for it nor notices it; only `hold` does.

    import rill_reader
    reader = rill_reader.Reader("/data/storage")    # Made by MemmapStorage.
    batch = reader.sample(256)                      # 256 live rows, any order.
    batch["next/reward"]                            # NumPy, [256, 1].
    batch.torch()["observation"]                    # A tensor of the same bytes.
    recent = reader.read(last=100, layout="lanes")  # [lanes, 100, ...], in order.

Rows of a batch are live: neither never written, nor discarded, nor half
overwritten. What the writer overwrote while it was copied is left out of `read`
and drawn again by `sample`. Two rows of one batch may be from before and after
a write in place (WriteAt), each of them whole.

Every step of a run once, in order, as a learner beside its collectors reads it:

    with reader.hold(0) as hold:           # The writer waits, if it was asked to.
        for first in range(0, total, 128):
            reader.wait(first + 128, timeout=60)
            batch = reader.read(steps=(first, first + 128), layout="lanes")
            hold.move(first + 128)         # Steps before may go.

Keys are Rill's: "observation", "next/reward". bfloat16 has no NumPy dtype: those
leaves are uint16 with the same bits, and torch.bfloat16 in `torch()`.

Errors: RillError, and its kinds. NotFoundError: no storage there, or none whose
rows are known yet. DamagedError: files that do not fit together; the message
names them. UnavailableError: the writer is at it; try again. ReplacedError: the
directory was removed or made anew; open another Reader. LostError: steps that
were asked for are no longer there.

Thread-safety: one thread at a time; each may have a reader of its own. What
every byte means: docs/formats/storage_directory.md of Rill.
"""
import fcntl
import json
import mmap
import os
import re
import stat
import struct
import threading
import time
import warnings
import weakref

import numpy as np

try:
    import torch as _torch
    _torch.from_numpy  # An empty folder of the name can be imported too.
except (ImportError, AttributeError):
    _torch = None


class RillError(Exception):
    """A directory that cannot be read, or not now."""


class NotFoundError(RillError):
    """No storage is there, or it does not know yet what its rows hold."""


class DamagedError(RillError):
    """A file is missing, short, changed, or of a version that is not known."""


class UnavailableError(RillError):
    """The writer changes rows all the time, or died while it did; or steps that
    are wanted are not written yet."""


class ReplacedError(RillError):
    """The directory was removed, or made anew by a writer, and is another one:
    open it again. Its steps are counted from 0."""


class LostError(RillError):
    """Steps that are wanted were overwritten or discarded."""


_ITEM_BYTES = {"bool": 1, "uint8": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
               "int64": 8, "uint64": 8, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
               "complex64": 8, "complex128": 16}
_MAX_LANES = 1 << 24
_MAX_WRITTEN = 1 << 62
_MAX_LEAVES = 1024
_MAX_RANK = 8
_PAGE = 4096
_HEADER = struct.Struct("<8sQqqqqqQQLL6q")  # 128 bytes: docs/formats, rill.commit.
_COPY_BYTES = 4 << 20  # Copied between two looks at the record.


def _crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC32C = _crc32c_table()


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


_locks = threading.Lock(), threading.Lock()


def _fence():
    """Loads before it are done before those after it, also where the processor
    would take them in another order: two locks are taken and given back."""
    for lock in _locks:
        lock.acquire()
        lock.release()


# --- What rill.json says -------------------------------------------------------


def _read_file(path, limit):
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        raise NotFoundError("%r: got no file, want one" % path) from None
    except OSError as error:
        raise DamagedError("%r: cannot open: %s" % (path, error.strerror)) from None
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise DamagedError("%r: got no regular file, want one" % path)
        text = file.read(limit + 1)
    if len(text) > limit:
        raise DamagedError("%r: got more than %d bytes, want fewer" % (path, limit))
    return text


def _integer(value, what, low, high):
    if type(value) is str and re.fullmatch("-?[0-9]{1,19}", value):
        value = int(value)
    if type(value) is int and low <= value <= high:
        return value
    raise DamagedError("%s: got %.80r, want an integer in [%d, %d]" % (what, value, low, high))


def _member(value, name, kind, what):
    if not isinstance(value, dict) or not isinstance(value.get(name), kind):
        raise DamagedError("%s: got no %r of the type that it has, want one" % (what, name))
    return value[name]


def _parse(text, what):
    try:
        return json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise DamagedError("%s: got no JSON (%.80s), want some" % (what, error)) from None


def _name(component):
    """A component of a key as a file's name."""
    if component in ("", ".", ".."):
        return "%" if not component else component.replace(".", "%2E")
    return "".join("%%%02X" % ord(c) if c in '/<>:"|?*\\% \x7f' or ord(c) < 32 else c
                   for c in component)


def _components(key):
    """Of a key's text: "/" between them, "\\/" and "\\\\" inside."""
    components, characters = [""], iter(key)
    for c in characters:
        if c == "/":
            components.append("")
        else:
            components[-1] += next(characters, "") if c == "\\" else c
    return components


class Leaf:
    """What a row holds under a key: `dtype` is Rill's name ("bfloat16" too),
    `shape` that of one row."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtype, shape
        self.numpy_dtype = np.dtype("uint16" if dtype == "bfloat16" else dtype)
        self.bytes = _ITEM_BYTES[dtype]
        for size in shape:
            self.bytes *= size

    def __repr__(self):
        return "%s%s" % (self.dtype, list(self.shape))

    # Rows are copied as one item of bytes each, which takes NumPy less time than
    # a few elements do.
    def empty(self, shape):
        return np.empty(shape, "V%d" % max(self.bytes, 1))

    def elements(self, rows):
        """The arrays of such rows, without a copy."""
        if self.bytes == 0:
            return np.empty(rows.shape + self.shape, self.numpy_dtype)
        return rows.view(self.numpy_dtype).reshape(rows.shape + self.shape)


class _Description:
    """rill.json, believing nothing."""

    def __init__(self, directory):
        path = os.path.join(directory, "rill.json")
        try:
            text = _read_file(path, 64 << 20)
        except NotFoundError:
            raise NotFoundError(
                "%r: got no \"rill.json\", want that of a MemmapStorage that was given a spec or a "
                "first row" % directory) from None
        what = repr(path)
        sealed, seal = text[:-22], text[-22:]
        if seal[:11] != b',"crc32c":"' or seal[19:] != b'"}\n' or \
                seal[11:19] != b"%08x" % _crc32c(sealed):
            raise DamagedError("%s: got a checksum that does not fit, want the one of its text; the "
                               "file was changed or cut" % what)
        manifest = _parse(text, what)
        kind, version = (_member(manifest, "kind", str, what),
                         _member(manifest, "version", int, what))
        if kind != "storage_directory" or version != 1:
            raise DamagedError(
                "%s: got kind %.80r of version %d, want \"storage_directory\" of version 1; %s" %
                (what, kind, version, "take the reader of that version of Rill"
                 if kind == "storage_directory" else "what Storage::Save wrote is opened by Load"))
        fields = _member(manifest, "fields", dict, what)
        self.lanes = _integer(fields.get("lanes"), what + ": lanes", 1, _MAX_LANES)
        self.lane_capacity = _integer(fields.get("lane_capacity"), what + ": lane_capacity", 1,
                                      (1 << 62) // self.lanes)
        self.layout, self.order = fields.get("layout"), fields.get("order")
        for name, known in (("layout", ("rows", "columns")), ("order", ("lane_major", "time_major"))):
            if fields.get(name) not in known:
                raise DamagedError("%s: %s: got %.80r, want %r or %r" %
                                   (what, name, fields.get(name), *known))
        self._parse_spec(_member(fields, "spec", str, what), what + ": spec")
        self._parse_record(_member(fields, "record", str, what), what + ": record")

    def _parse_spec(self, text, what):
        spec = _parse(text, what)
        if _member(spec, "format", str, what) != "rill_spec" or _member(spec, "version", int, what) != 1:
            raise DamagedError("%s: got another format or version, want \"rill_spec\" 1; take the "
                               "reader of that version of Rill" % what)
        leaves = _member(spec, "leaves", list, what)
        if len(leaves) > _MAX_LEAVES:
            raise DamagedError("%s: got %d leaves, want at most %d" % (what, len(leaves), _MAX_LEAVES))
        self.leaves = {}
        for leaf in leaves:
            key = _member(leaf, "key", str, what)
            dtype = _member(leaf, "dtype", str, what)
            shape = _member(leaf, "shape", list, what)
            if dtype not in _ITEM_BYTES or len(shape) > _MAX_RANK or key in self.leaves:
                raise DamagedError("%s: leaf %.80r: got %.80s of rank %d, want a dtype that is known, "
                                   "rank <= %d, and each key once" %
                                   (what, key, dtype, len(shape), _MAX_RANK))
            bytes_each = 1
            for size in shape:
                bytes_each *= _integer(size, "%s: shape of %.80r" % (what, key), 0, 1 << 40)
            if bytes_each * 16 * self.lanes * self.lane_capacity >= 1 << 62:
                raise DamagedError("%s: leaf %.80r: got a shape that no file can hold" % (what, key))
            self.leaves[key] = Leaf(dtype, tuple(shape))

    def _parse_record(self, text, what):
        self.stride, self.offsets = 0, {}
        if self.layout == "columns":
            return
        stride, _, offsets = text.partition(":")
        self.stride = _integer(stride, what, 0, (1 << 62) // (self.lanes * self.lane_capacity))
        offsets = offsets.split(",") if offsets else []
        if len(offsets) != len(self.leaves):
            raise DamagedError("%s: got %d offsets, want one for each of %d leaves" %
                               (what, len(offsets), len(self.leaves)))
        for (key, leaf), offset in zip(self.leaves.items(), offsets):
            self.offsets[key] = _integer(offset, what, 0, self.stride - leaf.bytes)


# --- What rill.commit says -----------------------------------------------------


class _View:
    """A state of the record: steps [first, end) of each lane are live and whole."""

    def __init__(self, number, generation, first, end):
        self.number, self.generation, self.first, self.end = number, generation, first, end

    @property
    def is_in_place(self):
        return self.generation % 2 != 0


class _Record:

    def __init__(self, path, lanes, lane_capacity):
        self._path, self._lanes, self._capacity = path, lanes, lane_capacity
        self._slot_bytes = (128 + 16 * lanes + _PAGE - 1) // _PAGE * _PAGE
        self._map = _map(path, 2 * self._slot_bytes)
        lane = np.arange(1, lanes + 1, dtype=np.uint64)
        self._lane_hash = lane * np.uint64(0x165667B19E3779F9)

    def look(self):
        """A state that was the newest at one moment of the call. The writer
        changes one of the two slots at a time, from its marks to its header: one
        whose header is the same before and after its marks were copied, and whose
        checksums fit, is whole, and of two the later one counts."""
        last = None
        for attempt in range(1000):
            slots = [self._slot(i * self._slot_bytes) for i in range(2)]
            headers = [slot and self._header(slot) for slot in slots]
            order = (0, 1)
            if not headers[0] or (headers[1] and
                                  0 < (headers[1][1] - headers[0][1]) % (1 << 64) < 1 << 63):
                order = (1, 0)
            for i in order:
                view = headers[i] and self._state(headers[i], slots[i])
                if view:
                    return view
            if all(slots) and slots == last:  # Nobody is writing there.
                raise DamagedError(
                    "%r: got no slot whose checksums fit, want one of %d lanes of %d; which rows are "
                    "whole is not known" % (self._path, self._lanes, self._capacity))
            last = slots
            time.sleep(0)
        raise UnavailableError("%r: got another state at each of 1000 looks, want one to read; try "
                               "again" % self._path)

    def _slot(self, at):
        """A slot's bytes, None where its header changed meanwhile."""
        for _ in range(10):
            header = self._map[at:at + 128]
            _fence()
            slot = self._map[at:at + 128 + 16 * self._lanes]
            _fence()
            if header == slot[:128] == self._map[at:at + 128]:
                return slot
        return None

    def _header(self, slot):
        header = _HEADER.unpack_from(slot)
        magic, number, lanes, capacity = header[:4]
        crc, num_more = header[9], header[10]
        if magic != b"RILLREC1" or number == 0 or lanes != self._lanes or \
                capacity != self._capacity or num_more > 2:
            return None
        counting = slot[:72] + (slot[76:128] if num_more else b"")
        return header if crc == _crc32c(counting) else None

    def _state(self, header, slot):
        marks = np.frombuffer(slot, "<i8", 2 * self._lanes, 128).reshape(self._lanes, 2)
        written, first = marks[:, 0], marks[:, 1]
        if (first < 0).any() or (first > written).any() or (written > _MAX_WRITTEN).any():
            return None
        if self._hash(marks.view(np.uint64)) != header[7]:
            return None
        num_more = header[10]
        appends = [header[4:7]] if header[6] else []
        appends += [header[11 + 3 * i:14 + 3 * i] for i in range(num_more)]
        whole = np.maximum(first, written - self._capacity)
        flying = np.zeros(self._lanes, np.int64)
        for lane, count, steps in appends:
            if not (steps > 0 and 0 <= lane <= self._lanes and 0 <= count <= self._lanes - lane):
                return None
            part = slice(lane, lane + count)
            if (steps > _MAX_WRITTEN - written[part] - flying[part]).any():
                return None
            flying[part] += steps
        if appends:
            # Rows below may be half old and half new.
            whole = np.maximum(whole, written + flying - self._capacity)
        return _View(header[1], header[8], np.minimum(whole, written), written)

    def _hash(self, marks):
        written, first = marks[:, 0], marks[:, 1]
        x = (written * np.uint64(0x9E3779B97F4A7C15) +
             (first << np.uint64(32) | first >> np.uint64(32)) * np.uint64(0xC2B2AE3D27D4EB4F) +
             self._lane_hash)
        x = (x ^ x >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
        return int((x ^ x >> np.uint64(32)).sum(dtype=np.uint64))


def _map(path, size):
    """All of a file, for reading."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError) as error:
        raise DamagedError("%r: cannot open: %s" % (path, error)) from None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise DamagedError("%r: got no regular file, want one" % path)
        if about.st_size != size:
            raise DamagedError("%r: got %d bytes, want %d; the file was changed or cut" %
                               (path, about.st_size, size))
        return mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ)
    except (OSError, ValueError) as error:
        raise RillError("%r: cannot map %d bytes: %s" % (path, size, error)) from None
    finally:
        os.close(fd)


# --- Holds ---------------------------------------------------------------------

_F_OFD_GETLK, _F_OFD_SETLK = 36, 37  # Linux: locks of an open file.


def _lock(fd, command, byte):
    """Takes a byte of a file, or says who has it: an OSError, or the type that is
    in the way."""
    lock = struct.pack("hh4xqqi4x", fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
    return struct.unpack_from("h", fcntl.fcntl(fd, command, lock))[0]


class Hold:
    """Steps that the writer does not overwrite: of each lane those from one on.
    Made by `Reader.hold`. It ends with `release`, with its `with` block, or with
    the process, whatever way that ends. A process that is forked has no part in
    it."""

    _HEADER, _IN_USE = 64, 3  # In int64: docs/formats, rill.holds.

    def __init__(self, reader, steps):
        self._fd, path = -1, os.path.join(reader.directory, "rill.holds")
        self._lanes = reader._of_lanes
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise UnavailableError(
                "%r: got none, want that of a writer that waits for readers: give "
                "MemmapStorage::Options::hold_timeout" % path) from None
        except OSError as error:
            raise RillError("%r: cannot open to hold: %s" % (path, error.strerror)) from None
        try:
            self._take(path, reader, steps)
        except BaseException:
            self.release()
            raise
        _holds.add(self)

    def _take(self, path, reader, steps):
        size = os.fstat(self._fd).st_size
        numbers = np.zeros(0, np.int64)
        if size >= 8 * self._HEADER:
            # Of a file of its own: a map keeps its file open, also in a process
            # that is forked, and with it the lock.
            fd = os.open(path, os.O_RDWR)
            try:
                numbers = np.frombuffer(mmap.mmap(fd, size), np.int64)
            finally:
                os.close(fd)
        if numbers.size == 0 or numbers[0] != struct.unpack("q", b"RILLHLD1")[0]:
            raise UnavailableError("%r: got no magic number, want one; try again when its writer has "
                                   "made it" % path)
        count = int(numbers[2])
        if numbers[1] != reader.lanes or not 0 < count < self._HEADER - self._IN_USE or \
                size != 8 * (self._HEADER + (count + 1) * reader.lanes):
            raise DamagedError("%r: got %d holds of %d lanes in %d bytes, want those of %d lanes" %
                               (path, count, numbers[1], size, reader.lanes))
        if _lock(self._fd, _F_OFD_GETLK, 0) == fcntl.F_UNLCK:
            raise UnavailableError("%r: got no writer that waits for readers, want one that has "
                                   "MemmapStorage::Options::hold_timeout" % path)
        rows = numbers[self._HEADER:].reshape(count + 1, reader.lanes)
        for hold in range(1, count + 1):
            try:
                _lock(self._fd, _F_OFD_SETLK, hold)
            except OSError:
                continue
            self._number, self._in_use = hold, numbers[self._IN_USE + hold - 1:][:1]
            break
        else:
            raise UnavailableError("%r: got %d readers that hold rows, want fewer" % (path, count))
        self._steps = rows[hold]
        self._steps[:] = steps
        _fence()
        self._in_use[0] = 1
        _fence()
        # The writer looks at holds once it has noted what it is about to
        # overwrite: it sees this one, or the steps are noted here.
        deadline = time.monotonic() + reader.timeout
        while True:
            first = reader._look().first
            if (first > steps).any():
                lane = int((first > steps).argmax())
                raise LostError("%r: hold: got step %d of lane %d, want one from %d on: those before "
                                "are no longer there" % (reader.directory, steps[lane], lane, first[lane]))
            if (rows[0] <= steps).all():
                return
            reader._check(deadline, "the writer is about to overwrite steps that are to be held")

    @property
    def first(self):
        """Of each lane the first step that is held, int64 [lanes]."""
        return self._steps.copy()

    def move(self, first):
        """Holds steps from `first` on, a number or one a lane: not before those
        that are held already."""
        if self._fd < 0:
            raise RillError("Hold.move: got a hold that was released, want another")
        steps = self._lanes("Hold.move: first", first)
        if (steps < self._steps).any():
            lane = int((steps < self._steps).argmax())
            raise ValueError("Hold.move: first: got %d of lane %d, want %d or more, as those before "
                             "are not held" % (steps[lane], lane, self._steps[lane]))
        self._steps[:] = steps

    def release(self):
        if self._fd < 0:
            return
        if hasattr(self, "_in_use"):
            self._in_use[0] = 0
            _fence()
        os.close(self._fd)
        self._fd = -1

    def _forget(self):
        os.close(self._fd)
        self._fd = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def __del__(self):
        self.release()


_holds = weakref.WeakSet()


def _forget_holds():
    for hold in list(_holds):
        if hold._fd >= 0:
            hold._forget()


os.register_at_fork(after_in_child=_forget_holds)


# --- Batches -------------------------------------------------------------------


class Batch(dict):
    """Arrays by key, all of the batch's shape and then the row's.

    `lane` and `step` are int64 of the batch's shape and say which row is which:
    step s of a lane is the one that was the s-th to be appended to it, from 0.
    """

    def __init__(self, arrays, lane, step, leaves):
        super().__init__(arrays)
        self.lane, self.step = lane, step
        self._leaves = leaves

    def ends(self, group=None):
        """bool [..., 1]: where a trajectory ends with the row. That is
        `next/done`, or where rows do not have it, `next/terminated` or
        `next/truncated`. With group="agents": where an episode of an agent ends,
        by the flags below `next/agents`."""
        prefix = "next/%s/" % group if group else "next/"
        keys = [prefix + flag for flag in ("done", "terminated", "truncated")]
        stored = [key for key in keys if key in self._leaves]
        if not stored:
            raise RillError("Batch.ends: rows: got none of %r, want one of them; without flags only "
                            "ids tell trajectories apart" % keys)
        wanted = stored[:1] if stored[0] == keys[0] else stored
        for key in wanted:
            if key not in self:
                raise RillError("Batch.ends: got a batch without %r, want that too; read it" % key)
        return np.logical_or.reduce([self[key] for key in wanted])

    def torch(self):
        """The same as a dictionary of tensors that share the arrays' bytes. With
        tensordict: TensorDict(batch.torch(), list(batch.step.shape))
        .unflatten_keys("/"). Never write to those of a view: it ends the
        process."""
        if _torch is None:
            raise RillError("Batch.torch: got no torch, want it installed; or use the arrays")
        tensors = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Views cannot be written.
            for key, array in self.items():
                if self._leaves[key].dtype == "bfloat16":
                    tensors[key] = _torch.from_numpy(array.view(np.int16)).view(_torch.bfloat16)
                    continue
                try:
                    tensors[key] = _torch.from_numpy(array)
                except TypeError:
                    raise RillError("Batch.torch: %r: got %s, want a dtype that torch %s has; use the "
                                    "array" % (key, array.dtype, _torch.__version__)) from None
        return tensors


class View(Batch):
    """Rows in place: nothing was copied, nothing can be written, and the writer
    goes on. Use them, then ask `valid()`; if it says no, forget what you made of
    them."""

    def __init__(self, arrays, lane, step, leaves, record, view):
        super().__init__(arrays, lane, step, leaves)
        self._record, self._view = record, view

    def valid(self):
        """Whether no row of this was overwritten, or begun to be, up to now."""
        _fence()
        now = self._record.look()
        if now.number == self._view.number:
            return True
        return now.generation == self._view.generation and \
            bool((self.step >= now.first[self.lane]).all())


class Reader:
    """A storage directory. All calls go by what is live when they are made."""

    def __init__(self, directory, timeout=5.0):
        """`timeout`: seconds to wait for a writer that changes rows in place, or
        is faster than the reader, before UnavailableError."""
        self.directory, self.timeout = os.fspath(directory), timeout
        self._opened = self._identity()
        about = _Description(self.directory)
        self.lanes, self.lane_capacity = about.lanes, about.lane_capacity
        self.spec = about.leaves  # A Leaf by key, in the storage's order.
        self._record = _Record(os.path.join(self.directory, "rill.commit"), self.lanes,
                               self.lane_capacity)
        self._rows, self._grids = self._map_rows(about)
        if self._identity() != self._opened:
            raise UnavailableError("%r: got another directory while it was opened, want one; try "
                                   "again" % self.directory)
        self._record.look()

    keys = property(lambda self: tuple(self.spec), doc="The leaves, in the storage's order.")
    capacity = property(lambda self: self.lanes * self.lane_capacity, doc="Slots in all.")

    @property
    def size(self):
        """Live rows."""
        view = self._look()
        return int((view.end - view.first).sum())

    def cursors(self):
        """Steps ever appended to each lane, int64 [lanes]. They go back with a
        Clear, a Load and a LoadPosition alone."""
        return self._look().end.copy()

    def wait(self, end, timeout=None):
        """Waits until each lane has `end` steps, a number or one a lane, and
        returns the cursors. UnavailableError after `timeout` seconds, that of
        the reader where it is None. Looks every 10 ms at least."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        end, pause = self._of_lanes("wait: end", end), 1e-4
        while True:
            cursors = self.cursors()
            if (cursors >= end).all():
                return cursors
            if time.monotonic() > deadline:
                lane = int((cursors < end).argmax())
                raise UnavailableError("%r: waited for step %d of lane %d: got %d steps; try again" %
                                       (self.directory, end[lane], lane, cursors[lane]))
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def hold(self, first=None):
        """Holds steps from `first` on, a number or one a lane, so that a writer
        with MemmapStorage::Options::hold_timeout does not overwrite them: a Hold,
        for a `with` statement. None: those that come from now on. LostError where
        some are no longer there. Needs the right to write to rill.holds. The
        writer discards them all the same with Clear, Load and LoadPosition."""
        first = self.cursors() if first is None else self._of_lanes("hold: first", first)
        if (first < 0).any():
            raise ValueError("Reader.hold: first: got %.80r, want >= 0" % (first,))
        return Hold(self, first)

    def read(self, keys=None, layout="flat", last=None, steps=None):
        """Live rows, copied, oldest first in each lane.

        keys: some of `self.keys`; None for all.
        layout: "flat" gives [rows, ...], lane after lane, all live rows.
          "lanes" gives [lanes, time, ...]: the newest steps of each lane, as
          many as every lane has.
        last: at most this many steps of each lane, the newest.
        steps: (first, end), numbers or one a lane: steps [first, end) of each
          lane, all of them, or an error. LostError where some were overwritten
          or discarded, UnavailableError where some are not written yet (`wait`).
        Returns a Batch. Of each lane its rows are without a gap and end with the
        newest; oldest ones that the writer overwrote meanwhile are not there.
        """
        keys = self._keys(keys)
        if layout not in ("flat", "lanes"):
            raise ValueError("Reader.read: layout: got %r, want \"flat\" or \"lanes\"" % (layout,))
        if steps is not None:
            steps = self._check_steps(steps, layout, last)
        deadline = time.monotonic() + self.timeout
        while True:
            view, first = self._window(deadline, layout, last, steps)
            out, kept = self._copy(keys, view, first, layout)
            if out is not None and steps is not None:
                self._check_kept(first, kept)
                return self._batch(out, view, first, kept, layout)
            if out is not None:
                are_left = kept < view.end
                if (first == view.end).all() or (are_left.all() if layout == "lanes" else
                                                 are_left.any()):
                    return self._batch(out, view, first, kept, layout)
            self._check(deadline, "the writer changed or overwrote all rows while they were copied; "
                        "ask for fewer with `last`")

    def views(self, keys=None, last=None):
        """The same rows in place, as a list of View: of each lane, in the order
        of lanes, one or two pieces [time, ...], oldest first (two where the ring
        goes round between them). Read-only, not copied."""
        keys = self._keys(keys)
        view, first = self._window(time.monotonic() + self.timeout, "flat", last, None)
        pieces = []
        for lane in range(self.lanes):
            step = int(first[lane])
            while step < view.end[lane]:
                position = step % self.lane_capacity
                count = min(int(view.end[lane]) - step, self.lane_capacity - position)
                arrays = {key: self._grids[key][lane, position:position + count] for key in keys}
                pieces.append(View(arrays, np.full(count, lane), np.arange(step, step + count),
                                   self.spec, self._record, view))
                step += count
        return pieces

    def sample(self, n, keys=None, rng=None):
        """n live rows, each drawn uniformly and independently, copied: a Batch
        [n, ...]. `rng` is a numpy.random.Generator; None for a new one."""
        keys = self._keys(keys)
        rng = rng if rng is not None else np.random.default_rng()
        deadline = time.monotonic() + self.timeout
        out = {key: self.spec[key].empty(n) for key in keys}
        lane, step = np.zeros(n, np.int64), np.zeros(n, np.int64)
        pending, generation = np.arange(n), None
        while pending.size:
            view, first = self._window(deadline, "flat", None, None)
            if view.generation != generation:  # Rows may be others by now.
                pending, generation = np.arange(n), view.generation
            ends = np.cumsum(view.end - first)
            if ends[-1] == 0:
                raise UnavailableError("Reader.sample: live rows: got 0, want some; try again when "
                                       "rows were written")
            drawn = rng.integers(ends[-1], size=pending.size)
            lane[pending] = np.searchsorted(ends, drawn, "right")
            step[pending] = view.end[lane[pending]] - (ends[lane[pending]] - drawn)
            for key in keys:
                out[key][pending] = self._rows[key][lane[pending], step[pending] % self.lane_capacity]
            _fence()
            now = self._record.look()
            if now.generation == generation:
                pending = pending[step[pending] < now.first[lane[pending]]]
            if pending.size:
                self._check(deadline, "rows that were drawn are overwritten as fast as they are copied")
        return Batch(self._elements(out), lane, step, self.spec)

    # What the above is made of.

    def _identity(self):
        try:
            about = os.stat(os.path.join(self.directory, "rill.json"))
        except OSError:
            return None
        return about.st_dev, about.st_ino, about.st_ctime_ns

    def _look(self):
        """The record of a directory that still is the one that was opened: of
        another one this one's would stay as it is for ever."""
        if self._identity() != self._opened:
            raise ReplacedError("%r: got a directory that was removed or made anew, want the one that "
                                "was opened; open another Reader" % self.directory)
        return self._record.look()

    def _of_lanes(self, what, number):
        try:
            return np.broadcast_to(np.asarray(number, np.int64), (self.lanes,))
        except (TypeError, ValueError):
            raise ValueError("Reader.%s: got %.80r, want an integer, or one for each of %d lanes" %
                             (what, number, self.lanes)) from None

    def _check_steps(self, steps, layout, last):
        if last is not None:
            raise ValueError("Reader.read: got `last` and `steps`, want one of them")
        first, end = (self._of_lanes("read: steps", number) for number in steps)
        if (first < 0).any() or (end < first).any() or \
                (layout == "lanes" and (end - first != end[0] - first[0]).any()):
            raise ValueError("Reader.read: steps: got %.160r, want 0 <= first <= end%s" %
                             (steps, ", as many in each lane" if layout == "lanes" else ""))
        return first, end

    def _check_kept(self, first, kept):
        if (kept > first).any():
            lane = int((kept > first).argmax())
            raise LostError("%r: steps: got [%d, ...) of lane %d, of which those below %d are no longer "
                            "there, want some that are; read sooner, or make the storage larger" %
                            (self.directory, first[lane], lane, kept[lane]))

    def _map_rows(self, about):
        """Of each key its rows as [lanes, lane_capacity], and those with their
        elements."""
        slots = self.capacity
        rows = None
        if about.layout == "rows" and about.stride > 0:
            rows = _map(os.path.join(self.directory, "rows.bin"), slots * about.stride)
        raw, grids = {}, {}
        for key, leaf in self.spec.items():
            if leaf.bytes == 0:
                raw[key] = np.broadcast_to(leaf.empty(1), (self.lanes, self.lane_capacity))
                grids[key] = leaf.elements(raw[key])
                continue
            if rows is None:
                path = os.path.join(self.directory, *map(_name, _components(key))) + ".memmap"
                offset, stride, buffer = 0, leaf.bytes, _map(path, slots * leaf.bytes)
            else:
                offset, stride, buffer = about.offsets[key], about.stride, rows
            inner = np.empty((1,) + leaf.shape, leaf.numpy_dtype).strides[1:]
            time_major = about.order == "time_major" and self.lanes > 1
            outer = (stride, self.lanes * stride) if time_major else \
                (self.lane_capacity * stride, stride)
            raw[key] = np.ndarray((self.lanes, self.lane_capacity), "V%d" % leaf.bytes, buffer, offset,
                                  outer)
            grids[key] = np.ndarray((self.lanes, self.lane_capacity) + leaf.shape, leaf.numpy_dtype,
                                    buffer, offset, outer + inner)
        return raw, grids

    def _elements(self, rows):
        return {key: self.spec[key].elements(array) for key, array in rows.items()}

    def _keys(self, keys):
        if keys is None:
            return self.keys
        keys = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in keys:
            if key not in self.spec:
                raise KeyError("Reader: keys: got %r, want some of %s" % (key, ", ".join(self.keys)))
        return keys

    def _check(self, deadline, why):
        if time.monotonic() > deadline:
            raise UnavailableError("%r: waited %g seconds: %s" % (self.directory, self.timeout, why))
        time.sleep(0)

    def _window(self, deadline, layout, last, steps):
        """A state in which no row is written in place, and where to begin."""
        while True:
            view = self._look()
            if not view.is_in_place:
                break
            self._check(deadline, "rows are written over in place or discarded, or were when the "
                        "writer died; then open the storage once with its owner")
        if steps is not None:
            first, end = steps
            if (view.end < end).any():
                lane = int((view.end < end).argmax())
                raise UnavailableError("%r: steps: got [%d, %d) of lane %d, want some below %d, which are "
                                       "written; wait() for them" %
                                       (self.directory, first[lane], end[lane], lane, view.end[lane]))
            self._check_kept(first, np.where(first < end, view.first, first))
            return _View(view.number, view.generation, view.first, end), first
        first = view.first
        if last is not None:
            if last < 0:
                raise ValueError("Reader: last: got %r, want >= 0" % (last,))
            first = np.maximum(first, view.end - last)
        if layout == "lanes":
            first = view.end - (view.end - first).min()
        return view, first

    def _copy(self, keys, view, first, layout):
        """Copies steps [first, end) of each lane, newest first, some MiB between
        two looks: once rows are lost, all older ones are, and what was copied
        before is whole. Returns the copies and the first step of each lane that
        is whole; (None, None) where rows were changed in place."""
        counts = view.end - first
        time_ = int(counts.max())
        row_bytes = max(1, sum(self.spec[key].bytes for key in keys))
        block = max(1, _COPY_BYTES // (row_bytes * self.lanes))
        shape = (self.lanes, time_) if layout == "lanes" else (int(counts.sum()),)
        out = {key: self.spec[key].empty(shape) for key in keys}
        # What is written of `out`, and of the rows: a lane, or all of them where
        # they stand at the same steps.
        if (first == first[0]).all() and (counts == time_).all():
            parts = [(0, slice(None),
                      {key: array.reshape(self.lanes, time_) for key, array in out.items()})]
        elif layout == "lanes":
            parts = [(lane, lane, {key: array[lane] for key, array in out.items()})
                     for lane in range(self.lanes)]
        else:
            starts = np.cumsum(counts) - counts
            parts = [(lane, lane, {key: array[starts[lane]:] for key, array in out.items()})
                     for lane in range(self.lanes)]
        kept = view.end.copy()
        for newest in range(0, time_, block):
            high = np.maximum(view.end - newest, first)
            low = np.maximum(high - block, first)
            for lane, lanes, targets in parts:
                if (kept[lanes] == high[lanes]).any():
                    self._copy_steps(lanes, int(low[lane]), int(high[lane]), int(first[lane]), targets)
            _fence()
            now = self._record.look()
            if now.generation != view.generation:
                return None, None
            kept = np.where(kept == high, np.clip(now.first, low, high), kept)
            if not ((kept == low) & (low > first)).any():
                break
        return out, kept

    def _copy_steps(self, lanes, step, end, first, targets):
        """Steps [step, end) of a lane, or of all, to where `first` is at 0."""
        while step < end:
            position = step % self.lane_capacity
            count = min(end - step, self.lane_capacity - position)
            to = slice(step - first, step - first + count)
            for key, target in targets.items():
                if isinstance(lanes, slice):
                    target[:, to] = self._rows[key][:, position:position + count]
                else:
                    target[to] = self._rows[key][lanes, position:position + count]
            step += count

    def _batch(self, out, view, first, kept, layout):
        counts = view.end - kept
        if layout == "lanes":
            time_ = int(counts.min())
            lost = int((view.end - first).max()) - time_
            if lost:
                out = {key: np.ascontiguousarray(array[:, lost:]) for key, array in out.items()}
            lane = np.broadcast_to(np.arange(self.lanes)[:, None], (self.lanes, time_)).copy()
            step = (view.end - time_)[:, None] + np.arange(time_)
            return Batch(self._elements(out), lane, step, self.spec)
        lane = np.repeat(np.arange(self.lanes), view.end - first)
        ends = np.cumsum(view.end - first)
        step = np.arange(lane.size) - (ends - view.end)[lane]
        if (kept > first).any():
            whole = step >= kept[lane]
            out = {key: array[whole] for key, array in out.items()}
            lane, step = lane[whole], step[whole]
        return Batch(self._elements(out), lane, step, self.spec)

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_STORAGE_H_
#define RILL_STORAGE_STORAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Which leaves of a batch the write events report (slots/write_observer.h). A
// key that the rows do not have leaves its span empty.
struct EventKeys {
  // A step ends its trajectory where any of these bool leaves [.., 1] is true.
  std::vector<std::string> ends = {"next/done"};
  // int64, [..] or [.., 1]: the first of these that the rows have. Ends count
  // beside it.
  std::vector<std::string> trajectories = {"collector/traj_ids", "episode"};
  std::string priority = "priority";              // float32, [.., 1].
  std::string policy_version = "policy_version";  // int64, [.., 1].
};

// The result of an Extend.
struct ExtendResult {
  int64_t rows_written = 0;
  // Oldest rows of a batch longer than a lane. Cursors count them, as if the
  // batch had been written step by step.
  int64_t rows_dropped = 0;
};

// The memory and disk that a storage takes, in bytes. Room for rows counts
// whether they are live or not. All fields but `disk_free` are 0 until it is
// known what a row holds.
struct StorageUsage {
  int64_t row = 0;     // One row as it is read: the sum of its leaves.
  int64_t memory = 0;  // Taken in RAM, pinned RAM or a device's memory.
  int64_t device = 0;  // Of `memory`, what is a device's.
  int64_t disk = 0;    // Taken on the disk.
  // Memory and disk once every slot has been written: what to plan for.
  int64_t full = 0;
  // What every slot would take beyond `full` if each row held all its leaves;
  // below 0 where sharing them costs more than it gives.
  int64_t saved = 0;
  // Free bytes of the file system that holds the rows' files; of several, the
  // fullest. nullopt where rows lie in no file, or the system does not tell.
  std::optional<int64_t> disk_free = std::nullopt;
};

// How Storage::Load takes what was saved.
struct StorageLoadOptions {
  // Lanes of another capacity, which are FAILED_PRECONDITION otherwise, do: of
  // each lane the newest rows come, as many as it has slots here. Cursors go
  // on, so rows may lie in other slots than they did.
  bool accept_other_capacity = false;
};

// The rows of a position that are there now.
struct PositionRows {
  int64_t missing = 0;          // How many are not.
  std::vector<SlotRange> kept;  // Where the others lie; ascending.
};

// A run of stored rows seen in place, without a copy: valid until the next
// write to one of its slots, a Clear or a Load. The memory stays as long as the
// lease does. It is lent (Buffer::Lend): no Read writes there.
// Thread-safety: thread-compatible. The reader makes sure that nobody writes
// the rows meanwhile; valid() tells after.
class SlotLease {
 public:
  SlotLease(TensorDict rows, std::shared_ptr<const std::atomic<bool>> valid)
      : rows_(std::move(rows)), valid_(std::move(valid)) {}
  const TensorDict& rows() const { return rows_; }  // [count, ...]
  bool valid() const { return valid_->load(std::memory_order_acquire); }

 private:
  TensorDict rows_;
  std::shared_ptr<const std::atomic<bool>> valid_;
};

// How a write in place treats the rows it names.
enum class InPlace {
  kReplace,  // Others: what was drawn of the old ones is stale.
  kPatch,    // The same rows with other values: their generations stay.
};

// Rows of steps in a ring, or in one ring a lane. Knows where rows lie, never
// how they are chosen: samplers learn of writes as observers.
//
// Shapes: a batch to write is [lanes, time] (or [time] where the storage has
//   one lane); rows to read are [n].
// Thread-safety: thread-safe. A Read never returns half a row.
// Implementations pass storage/conformance.
class Storage {
 public:
  virtual ~Storage() = default;

  virtual const Lanes& lanes() const = 0;
  int64_t capacity() const { return lanes().num_slots(); }
  // Live rows, over all lanes.
  virtual int64_t size() const = 0;
  virtual std::vector<Cursor> cursors() const = 0;
  // The spec of a row; empty before the first write where it was not given.
  virtual TensorDictSpec spec() const = 0;
  // Where the rows lie.
  virtual Device device() const = 0;
  // Whether rows may differ in shape, so that batches are padded and hold more
  // than spec() names (ListStorage).
  virtual bool has_ragged_leaves() const { return false; }
  // Cost: O(leaves); waits for no row to be copied.
  virtual StorageUsage MemoryUsage() const = 0;

  // Appends a batch at the cursors of lanes [info.first_lane, ...), overwriting
  // the oldest rows. All or nothing: with an error rows, length, cursors and
  // observers are as they were. INVALID_ARGUMENT names the key and both sides
  // where the batch does not fit the spec or the lanes; RESOURCE_EXHAUSTED
  // where memory cannot be had. The batch may be strided and may lie on any
  // device; it is read before this returns.
  virtual absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                              const WriteInfo& info = {}) = 0;

  // Overwrites live rows in place; `rows` is [n] and may hold a part of the
  // keys. Where a slot is named twice, the later row wins. OUT_OF_RANGE where a
  // slot is not live. Observers receive a retire without values and a write
  // with the values of those keys that `rows` holds, both in the order of
  // `slots`. Where it holds all of them these count as new rows
  // (is_replacement).
  absl::Status WriteAt(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kReplace);
  }
  // The same; the rows stay the ones that were drawn.
  absl::Status Patch(absl::Span<const Slot> slots, const TensorDict& rows) {
    return WriteInPlace(slots, rows, InPlace::kPatch);
  }
  virtual absl::Status WriteInPlace(absl::Span<const Slot> slots,
                                    const TensorDict& rows, InPlace kind) = 0;

  // Copies rows into `out`, into its own tensors where keys, shapes, dtypes and
  // device fit (then nothing is allocated); else `out` gets one contiguous
  // array a leaf. A tensor fits where it is writable and each row is without
  // gaps. Rows may lie at any distance: in a column of a [lanes, time] batch,
  // in a frame in which the leaves take turns, or in other memory of the
  // caller's. Tensors whose bytes overlap do not fit. OUT_OF_RANGE names the
  // slot and the live ones.
  virtual absl::Status Read(absl::Span<const Slot> slots,
                            TensorDict* out) const = 0;

  // The same of some leaves only; `out` then holds just those. INVALID_ARGUMENT
  // where a key is named twice, NOT_FOUND, listing the keys there are, where
  // the rows do not have it. Cost: as Read of rows that hold no other leaves,
  // and O(keys x leaves).
  virtual absl::Status ReadLeaves(absl::Span<const Slot> slots,
                                  absl::Span<const std::string> keys,
                                  TensorDict* out) const = 0;

  // Copies rows to leaves that the caller has bound: of leaf leaves[i] of
  // spec(), the row of slots[k] goes to row k of places[i]. Nothing is looked
  // up, made or kept. The places are those of a batch [n] that a BoundRows has
  // bound to be written, each leaf once.
  // INVALID_ARGUMENT names the leaf and both sides where number, rows, width,
  // dtype or device are others, or a place is read-only; FAILED_PRECONDITION
  // where rows have ragged leaves; OUT_OF_RANGE as Read. With an error the rows
  // of the places are unspecified.
  virtual absl::Status ReadInto(absl::Span<const Slot> slots,
                                absl::Span<const size_t> leaves,
                                absl::Span<const BoundLeaf> places) const = 0;

  // Shows leaf `leaf` of spec() of each slot's row where it lies, in order:
  // calls fn(i, row) with the address of slots[i]'s bytes, which are without
  // gaps. Nobody writes them until fn returns; a writer of the row waits, so fn
  // is to be short, and must not call the storage. False, without a call, where
  // the leaf does not lie in host memory as such: ReadInto copies it. That is
  // the same for all calls once there are rows. With an error of fn, which is
  // the result, the rest is not shown; OUT_OF_RANGE as Read.
  using ShowRowFn =
      absl::FunctionRef<absl::Status(size_t i, const std::byte* row)>;
  virtual absl::StatusOr<bool> ShowRows(absl::Span<const Slot> /*slots*/,
                                        size_t /*leaf*/,
                                        ShowRowFn /*fn*/) const {
    return false;
  }

  // Enqueues a Read on `stream` and goes on before a row is copied. `out` has
  // its tensors when this returns and their values when the event is reached.
  // - The rows are those that a Read here would give. Later writes of them wait
  //   for the event, so work before it on the stream must not wait for such a
  //   write.
  // - The tensors of `out` stay alive, and nobody writes to them, up to the
  //   event; `slots` may change at once.
  // - An error of the copy is the event's.
  // Rows in host memory, and those of a TieredStorage, are there when this
  // returns. INVALID_ARGUMENT where the stream is of another device.
  virtual absl::StatusOr<Event> EnqueueRead(absl::Span<const Slot> slots,
                                            const Stream& stream,
                                            TensorDict* out) const {
    RILL_RETURN_IF_ERROR(CheckStream(stream));
    RILL_RETURN_IF_ERROR(Read(slots, out));
    return Event::Record(stream);
  }

  // Rows in place. OUT_OF_RANGE as Read. Slots of one lane only.
  // FAILED_PRECONDITION where leaves do not lie in place
  // (DenseStorage::Options::dedup_next).
  virtual absl::StatusOr<SlotLease> Lease(SlotRange range) const = 0;

  // Forgets all rows; memory and spec stay.
  virtual absl::Status Clear() = 0;

  // Whether Extend asks observers before it overwrites rows, and waits as long
  // as they do (WriteObserver::BeforeOverwrite): a replay buffer until it has
  // gathered the batches that it has drawn.
  virtual bool asks_before_overwriting() const { return false; }

  // Observers are not owned, and must outlive the storage or be removed. Adding
  // attaches at once (WriteObserver::OnAttach, then OnWrite of all live rows).
  virtual absl::Status AddObserver(WriteObserver* observer) = 0;
  virtual void RemoveObserver(WriteObserver* observer) = 0;

  // Makes what was written so far outlive a loss of power, where rows lie in
  // files; elsewhere there is nothing to do.
  virtual absl::Status Sync() { return absl::OkStatus(); }

  // Writes all live rows and cursors to `directory` (replaced atomically), in a
  // form that does not depend on layout, order or device:
  // docs/formats/storage.md. Files of rows that have not changed since this
  // storage's last Save or Load, in whatever directory, are hard links to those
  // where possible. So change no saved file in place. FAILED_PRECONDITION where
  // the directory holds files that no save wrote.
  virtual absl::Status Save(const std::string& directory) const = 0;
  // Replaces the content by what Save wrote, checked first: on any error the
  // content is as it was. FAILED_PRECONDITION where lanes, capacity or spec
  // differ, naming both sides; DATA_LOSS where files are damaged. Observers
  // receive OnClear, then OnAttach and OnWrite as when they were added.
  virtual absl::Status Load(const std::string& directory,
                            const StorageLoadOptions& options = {}) = 0;

  // A record of which rows there are now, as opaque bytes, where rows lie in
  // files that outlive the process (MemmapStorage; TieredStorage above one).
  // The rows stay there, and outlive a loss of power from here on (Sync).
  // FAILED_PRECONDITION elsewhere, and before it is known what a row holds.
  virtual absl::StatusOr<std::string> SavePosition() {
    return HasNoPosition("SavePosition");
  }
  // Goes back to the rows of a position: discards rows that were appended
  // after, if any. Values written in place since (WriteAt, Patch) stay. Where
  // rows go, observers are notified as of a Load. Then `accept` is called,
  // which must not call the storage. If it fails, its error is the result, and
  // observers are notified of all rows again. Where rows are missing,
  // FAILED_PRECONDITION names how many of how many. With `accept_newer` the
  // rows stay as they are instead, and `accept` learns which.
  // FAILED_PRECONDITION where the position is another storage's, or of rows
  // before a Clear or a Load; DATA_LOSS where the bytes are damaged. After an
  // error the rows are as they were. After a kill on the way they are that, or
  // the position's.
  using AcceptPosition = absl::FunctionRef<absl::Status(const PositionRows&)>;
  virtual absl::Status LoadPosition(absl::string_view /*position*/,
                                    bool /*accept_newer*/,
                                    AcceptPosition /*accept*/) {
    return HasNoPosition("LoadPosition");
  }

 protected:
  // INVALID_ARGUMENT where there is no dictionary to read into.
  static absl::Status CheckOut(absl::string_view caller,
                               const TensorDict* out) {
    if (out != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(caller, ": out: got null, want a TensorDict"));
  }
  // INVALID_ARGUMENT unless it is of the rows' device.
  absl::Status CheckStream(const Stream& stream) const {
    if (stream.device() == device()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "Storage::EnqueueRead: stream: got one of ", stream.device().ToString(),
        ", want one of ", device().ToString(), ", where the rows lie"));
  }

 private:
  static absl::Status HasNoPosition(absl::string_view call) {
    return absl::FailedPreconditionError(absl::StrCat(
        "Storage::", call,
        ": storage: got one whose rows do not lie in files that outlive the "
        "process, want a MemmapStorage; or Save and Load the rows"));
  }
};

}  // namespace rill

#endif  // RILL_STORAGE_STORAGE_H_

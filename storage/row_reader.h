// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROW_READER_H_
#define RILL_STORAGE_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/slots/slot.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/read_graph.h"  // IWYU pragma: export
#include "rill/storage/slot_lease.h"
#include "rill/storage/storage_traits.h"
#include "rill/storage/table_leaf.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// The rows of a storage, for those who only read them: every Storage, and a
// reader of rows that another process writes (MemmapStorage::OpenReader).
//
// Shapes: rows are [n].
// Errors name the calls as Storage's.
// Thread-safety: thread-safe. A Read never returns half a row.
// Implementations pass RowReaderConformanceTest (storage/conformance).
class RowReader {
 public:
  virtual ~RowReader() = default;

  const StorageTraits& traits() const { return traits_; }
  const Lanes& lanes() const { return traits_.lanes; }
  int64_t capacity() const { return lanes().num_slots(); }
  // The rows lie there.
  Device device() const { return traits_.device; }
  // Live rows, over all lanes.
  virtual int64_t size() const = 0;
  virtual std::vector<Cursor> cursors() const = 0;
  // The spec of a row; empty before the first write where it was not given.
  virtual TensorDictSpec spec() const = 0;

  // Copies rows into `out`, into its own tensors where keys, shapes, dtypes and
  // device fit (then nothing is allocated); else `out` gets one contiguous
  // array a leaf. A tensor fits where it is writable and each row is without
  // gaps. Rows may lie at any distance: in a column of a [lanes, time] batch,
  // in a frame in which the leaves take turns, or in other memory of the
  // caller's. Tensors whose bytes overlap do not fit. OUT_OF_RANGE names the
  // slot and the live ones.
  absl::Status Read(absl::Span<const Slot> slots, TensorDict* out) const {
    RILL_RETURN_IF_ERROR(CheckOut("Storage::Read", out));
    return ReadKeys(slots, std::nullopt, out);
  }

  // The same of some leaves only; `out` then holds just those. INVALID_ARGUMENT
  // where a key is named twice, NOT_FOUND, listing the keys there are, where
  // the rows do not have it. Cost: as Read of rows that hold no other leaves,
  // and O(keys x leaves).
  absl::Status ReadLeaves(absl::Span<const Slot> slots,
                          absl::Span<const std::string> keys,
                          TensorDict* out) const {
    RILL_RETURN_IF_ERROR(CheckOut("Storage::ReadLeaves", out));
    return ReadKeys(slots, keys, out);
  }

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
  absl::StatusOr<Event> EnqueueRead(absl::Span<const Slot> slots,
                                    const Stream& stream,
                                    TensorDict* out) const {
    RILL_RETURN_IF_ERROR(CheckOut("Storage::EnqueueRead", out));
    RILL_RETURN_IF_ERROR(CheckStream("Storage::EnqueueRead", stream));
    std::optional<Event> end;
    RILL_RETURN_IF_ERROR(Enqueue(slots, stream, {.out = out, .end = &end}));
    return *std::move(end);
  }

  // The same of a ReadInto; the end is the caller's to record.
  absl::Status EnqueueReadInto(absl::Span<const Slot> slots,
                               absl::Span<const size_t> leaves,
                               absl::Span<const BoundLeaf> places,
                               const Stream& stream) const {
    RILL_RETURN_IF_ERROR(CheckStream("Storage::EnqueueReadInto", stream));
    return Enqueue(slots, stream, {.leaves = leaves, .places = places});
  }

  // Several of these at once, on uploads->stream() behind what `uploads` has to
  // send. No byte is in two places.
  struct ListRead {
    absl::Span<const Slot> slots;
    absl::Span<const size_t> leaves;
    absl::Span<const BoundLeaf> places = {};
    // Not null: leaves[0] alone is shown here, where it lies, and copied
    // nowhere. For storages with StorageTraits::shows_tables.
    TableLeaf* table = nullptr;
  };
  // `launch` is called once, behind all copies: it enqueues the kernels that
  // read the tables, to the device's current stream. Later writes wait for
  // them.
  //
  // With `graph` all that is enqueued behind what `uploads` sends is a graph.
  // It is captured where it is none yet, with `launch`, and launched. Later
  // calls have lists of the same lengths, with the same leaves and places, and
  // fixed mirrors (StreamUploads::FixMirrors). Their `launch` is not called.
  // FAILED_PRECONDITION where the rows lie elsewhere since, and for storages
  // without StorageTraits::shows_tables.
  using LaunchFn = absl::FunctionRef<absl::Status()>;
  absl::Status EnqueueReadsInto(absl::Span<const ListRead> lists,
                                StreamUploads* uploads, LaunchFn launch,
                                ReadGraph* graph = nullptr) const {
    RILL_RETURN_IF_ERROR(
        CheckStream("Storage::EnqueueReadsInto", uploads->stream()));
    return Enqueue({}, uploads->stream(),
                   {.lists = lists,
                    .uploads = uploads,
                    .launch = &launch,
                    .graph = graph});
  }

  // Rows in place. OUT_OF_RANGE as Read. Slots of one lane only. On a device
  // the host waits for the writes so far; later ones show in the rows once a
  // later call has returned.
  // FAILED_PRECONDITION where leaves do not lie in place
  // (DenseStorage::Options::dedup_next).
  virtual absl::StatusOr<SlotLease> Lease(SlotRange range) const = 0;

 protected:
  explicit RowReader(const StorageTraits& traits) : traits_(traits) {}

  // ReadLeaves of `keys`; without them Read. `out` is not null.
  virtual absl::Status ReadKeys(
      absl::Span<const Slot> slots,
      std::optional<absl::Span<const std::string>> keys,
      TensorDict* out) const = 0;

  // Where an enqueued read goes to: a batch, or leaves that are bound.
  struct EnqueuedPlaces {
    TensorDict* out = nullptr;  // Null: places are bound.
    absl::Span<const size_t> leaves = {};
    absl::Span<const BoundLeaf> places = {};
    std::optional<Event>* end = nullptr;  // Gets the end, unless null.
    // In place of all that, where `uploads` is not null.
    absl::Span<const ListRead> lists = {};
    StreamUploads* uploads = nullptr;
    const LaunchFn* launch = nullptr;
    ReadGraph* graph = nullptr;
  };
  // EnqueueRead and its like. The stream is of the rows' device. With an
  // error nothing is left in the stream.
  virtual absl::Status Enqueue(absl::Span<const Slot> slots,
                               const Stream& stream,
                               const EnqueuedPlaces& to) const {
    if (to.graph != nullptr) {
      return FailedPrecondition(
          "Storage::EnqueueReadsInto: graph: got one for a storage without "
          "StorageTraits::shows_tables, want null");
    }
    for (const ListRead& list : to.lists) {
      if (list.table != nullptr) {
        return absl::InternalError(
            "Storage::EnqueueReadsInto: table: got one, want null for a "
            "storage without StorageTraits::shows_tables");
      }
      RILL_RETURN_IF_ERROR(Enqueue(
          list.slots, stream, {.leaves = list.leaves, .places = list.places}));
    }
    if (to.uploads != nullptr) return (*to.launch)();
    // Work before it on the stream may still use the places.
    if (!device().is_cpu()) {
      RILL_RETURN_IF_ERROR(stream.Synchronize());
    }
    RILL_RETURN_IF_ERROR(to.out != nullptr
                             ? Read(slots, to.out)
                             : ReadInto(slots, to.leaves, to.places));
    if (to.end == nullptr) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(*to.end, Event::Record(stream));
    return absl::OkStatus();
  }

  // INVALID_ARGUMENT where there is no dictionary to read into.
  static absl::Status CheckOut(absl::string_view caller,
                               const TensorDict* out) {
    if (out != nullptr) return absl::OkStatus();
    return InvalidArgument(caller, ": out: got null, want a TensorDict");
  }
  // INVALID_ARGUMENT unless it is of the rows' device.
  absl::Status CheckStream(absl::string_view caller,
                           const Stream& stream) const {
    if (stream.device() == device()) return absl::OkStatus();
    return InvalidArgument(caller, ": stream: got one of ",
                           stream.device().ToString(), ", want one of ",
                           device().ToString(), ", where the rows lie");
  }

 private:
  const StorageTraits traits_;
};

}  // namespace rill

#endif  // RILL_STORAGE_ROW_READER_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_STORAGE_ROWS_READ_PLACES_H_
#define RILL_STORAGE_ROWS_READ_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/device/device.h"
#include "rill/slots/slot.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/specs/spec_tree.h"
#include "rill/storage/row_reader.h"
#include "rill/storage/rows/batch_leaves.h"
#include "rill/storage/rows/row_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {

// A read asks for a batch, or for rows in leaves that are bound.
struct ReadRequest {
  absl::string_view caller;
  TensorDict* out = nullptr;             // Null: places are bound.
  LeafKeys keys = std::nullopt;          // Of `out`; without them all leaves.
  absl::Span<const size_t> leaves = {};  // Storage::ReadInto's.
  absl::Span<const BoundLeaf> places = {};

  // RowReader::ReadKeys's.
  static ReadRequest Of(LeafKeys keys, TensorDict* out) {
    return {.caller = keys ? "Storage::ReadLeaves" : "Storage::Read",
            .out = out,
            .keys = keys};
  }
};

// Leaves that are bound, as Storage::ReadInto takes them.
struct BoundPlaces {
  std::vector<size_t> leaves;
  std::vector<BoundLeaf> places;
  std::vector<std::string> keys;
  bool has_all = false;  // Leaves of the rows.

  LeafKeys wanted() const { return has_all ? LeafKeys() : LeafKeys(keys); }
};

// The places of rows that are read: the tensors of the caller's batch, reused
// where they fit, those of a new one, or leaves that somebody else has bound.
// Thread-safety: thread-compatible.
struct ReadPlaces {
  // Rows of `spec` on `device`.
  struct Source {
    const TensorDictSpec& spec;
    const SpecTree& tree;  // Of `spec`.
    Device device;
  };

  // Kept so that a thread's reads stop allocating.
  static ReadPlaces& OfThread();

  // Gives the leaves that are asked for places for n rows. request.out is not
  // changed yet. Errors as Storage::ReadLeaves and ReadInto.
  absl::Status Find(const Source& source, int64_t n,
                    const ReadRequest& request);
  // The same places, for another storage to read into, and their keys.
  void Bind(const Source& source, int64_t n, BoundPlaces* bound) const;
  // The same where nothing is known of the rows, and none is read.
  void FindNone();
  // After the copy, where all went well.
  void Finish(const ReadRequest& request);
  // At its end new tensors that no Finish has given away are freed.
  struct Drop {
    explicit Drop(ReadPlaces* of) : places(of) {}
    ~Drop() { places->fresh_.reset(); }

    ReadPlaces* const places;
  };

  std::vector<LeafBatch> leaves;

 private:
  absl::Status FindAll(const Source& source, int64_t n, const TensorDict& out);
  absl::Status UseBound(const Source& source, int64_t n,
                        absl::Span<const size_t> numbers,
                        absl::Span<const BoundLeaf> bound);
  absl::Status FindSome(const Source& source, int64_t n,
                        absl::Span<const std::string> keys,
                        const TensorDict& out);
  // Makes places of tensors_, one for each leaf, or for those of `numbers`.
  bool UseTensors(const Source& source, const Shape& batch_shape,
                  absl::Span<const size_t> numbers);
  bool FindIn(const Source& source, int64_t n, const TensorDict& out);
  bool FindSomeIn(const Source& source, int64_t n, const TensorDict& out);
  void Add(size_t leaf, std::byte* data, int64_t stride, int64_t width);
  // Chooses how the batch is written.
  void PassCaches(int64_t rows);

  std::optional<TensorDict> fresh_;
  std::vector<const Tensor*> tensors_;  // The batch's.
  std::vector<ByteExtent> extents_;     // Where those lie.
  std::vector<int64_t> widths_;         // Of a row, one for each of `leaves`.
  std::vector<size_t> numbers_;         // Of the leaves of `keys`.
};

// A RowReader or Storage (Base) whose reads are all one function, ReadRows.
//
// Errors: those of ReadRows, which are Storage::Read's, ReadLeaves' and
//   ReadInto's for their requests. Read and ReadLeaves have checked that `out`
//   is not null.
// Thread-safety: as the Base says: thread-safe. ReadRows is called from several
//   threads at once, and serialises what it must itself.
template <typename Base>
class RequestReader : public Base {
 public:
  absl::Status ReadInto(absl::Span<const Slot> slots,
                        absl::Span<const size_t> leaves,
                        absl::Span<const BoundLeaf> places) const override {
    return ReadRows(
        slots,
        {.caller = "Storage::ReadInto", .leaves = leaves, .places = places});
  }

 protected:
  using Base::Base;

  absl::Status ReadKeys(absl::Span<const Slot> slots, LeafKeys keys,
                        TensorDict* out) const override {
    return ReadRows(slots, ReadRequest::Of(keys, out));
  }
  virtual absl::Status ReadRows(absl::Span<const Slot> slots,
                                const ReadRequest& request) const = 0;
};

// Reads what the request asks for.
absl::Status ReadFrom(const RowReader& reader, absl::Span<const Slot> slots,
                      const ReadRequest& request);

}  // namespace rill::storage_internal

#endif  // RILL_STORAGE_ROWS_READ_PLACES_H_

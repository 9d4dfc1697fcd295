// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/torchrl/ted_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"

// Three orders of the same steps. Rows of the places: step by step, each with
// all lanes, as the buffer holds them. Plain: lane after lane, in each from the
// oldest step on. Expanded: as plain, with one row more behind each end.
//
// In the expanded order a step's own row is its root, and the row behind it its
// "next". Inside a trajectory that row is the next step's root, so equal values
// are there once. FindSources makes the maps from the first order to the other
// two. Reading gathers by them, writing scatters.

namespace rill::formats_internal {
namespace {

constexpr absl::string_view kNext = "next/";

bool IsIn(absl::string_view key, const std::vector<std::string>& keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}
// Stored for "next" alone, under the name without it.
bool IsApart(absl::string_view key, const TorchRlFlatKeys& keys) {
  return IsIn(key, keys.done) || IsIn(key, keys.reward);
}

// Where each step of the places lies in the layout, and where each end is.
struct Places {
  int64_t steps, capacity, lanes, shift;
  bool is_full;

  // The place of the t-th oldest step.
  int64_t PlaceOf(int64_t t) const {
    return is_full ? (t + shift) % capacity : t;
  }
};

// int64 [n] for rows of the places, step after step.
struct Sources {
  Tensor plain, root, next;
  int64_t expanded_rows = 0;
  std::vector<int64_t> lengths, expanded_lengths;
};

// Memory is asked for where it may not be had: sizes are from outside.
absl::StatusOr<Tensor> Numbers(int64_t count) {
  return Tensor::Empty(DType::kInt64, {count});
}

// `ends`: of all places, lane after lane, oldest first; those that were not
// written count for nothing. A file may tell of any number of trajectories, so
// their lengths come only where they are wanted. O(places).
absl::StatusOr<Sources> FindSources(const Places& places, const uint8_t* ends,
                                    bool tells_lengths) {
  Sources sources;
  const int64_t rows = places.steps * places.lanes;
  RILL_ASSIGN_OR_RETURN(sources.plain, Numbers(rows));
  RILL_ASSIGN_OR_RETURN(sources.root, Numbers(rows));
  RILL_ASSIGN_OR_RETURN(sources.next, Numbers(rows));
  // A lane's last step ends its trajectory in any case. A buffer that was
  // loaded and not written to since does not know it: its shift is 0.
  const int64_t last =
      places.is_full ? places.capacity - 1
                     : (places.shift + places.capacity - 1) % places.capacity;
  int64_t at = 0;  // In the expanded leaves.
  for (int64_t lane = 0; lane < places.lanes; ++lane) {
    int64_t length = 0;
    for (int64_t t = 0; t < places.capacity; ++t, ++at) {
      const int64_t from = lane * places.capacity + t;
      if (t < places.steps) {
        const int64_t row = places.PlaceOf(t) * places.lanes + lane;
        sources.plain.data<int64_t>()[row] = from;
        sources.root.data<int64_t>()[row] = at;
        sources.next.data<int64_t>()[row] = at + 1;
      }
      ++length;
      const bool is_end = ends[from] != 0 || t == last;
      if (is_end) ++at;
      // The places of a lane that were not written are a trajectory of their
      // own, which has no end and so no row more.
      if (is_end || t == places.capacity - 1) {
        if (tells_lengths) {
          sources.lengths.push_back(length);
          sources.expanded_lengths.push_back(length + (is_end ? 1 : 0));
        }
        length = 0;
      }
    }
  }
  sources.expanded_rows = at;
  return sources;
}

absl::Span<const int64_t> Span(const Tensor& numbers) {
  return {numbers.data<int64_t>(), static_cast<size_t>(numbers.num_elements())};
}

// Row rows[i] of `from` as row i, through the dictionary's own gather, which
// knows strides and dtypes.
absl::StatusOr<Tensor> GatherRows(const Tensor& from, const Tensor& rows) {
  TensorDict dict({from.shape()[0]});
  RILL_RETURN_IF_ERROR(dict.Set("x", from));
  RILL_ASSIGN_OR_RETURN(const TensorDict out, dict.Gather(Span(rows)));
  return out.Get("x");
}

// Row i of `from` to row rows[i] of `out`. All contiguous.
void ScatterRows(const Tensor& from, const Tensor& rows, const Tensor& out) {
  if (from.num_elements() == 0) return;
  const size_t bytes = from.size_bytes() / from.shape()[0];
  for (int64_t i = 0; i < from.shape()[0]; ++i) {
    std::memcpy(out.raw_data() + Span(rows)[i] * bytes,
                from.raw_data() + i * bytes, bytes);
  }
}

// Its bytes, one a place.
absl::StatusOr<Tensor> EndsOf(absl::string_view where, const Tensor* done,
                              int64_t places) {
  if (done == nullptr || done->dtype() != DType::kBool ||
      done->num_elements() != places) {
    return DataLoss(where, ": \"done\": got ",
                    done == nullptr ? std::string("none") : done->DebugString(),
                    ", want one bool for each of ", places, " places");
  }
  return done->Contiguous();
}

const Tensor* FindLeaf(const std::vector<FlatTed::Leaf>& leaves,
                       absl::string_view key) {
  for (const auto& [name, tensor] : leaves) {
    if (name == key) return &tensor;
  }
  return nullptr;
}

// One leaf of the layout as one or two leaves of the rows. How many rows it has
// says which kind it is.
absl::Status AddLeaf(absl::string_view where, const FlatTed::Leaf& leaf,
                     const Sources& sources, int64_t places,
                     const TorchRlFlatKeys& keys, TensorDict* rows) {
  const auto& [key, tensor] = leaf;
  const int64_t size = tensor.rank() == 0 ? -1 : tensor.shape()[0];
  const std::string next = absl::StrCat(kNext, key);
  if (size == sources.expanded_rows) {
    RILL_ASSIGN_OR_RETURN(Tensor root, GatherRows(tensor, sources.root));
    RILL_RETURN_IF_ERROR(rows->Set(key, std::move(root)));
    RILL_ASSIGN_OR_RETURN(Tensor behind, GatherRows(tensor, sources.next));
    return rows->Set(next, std::move(behind));
  }
  if (size != places) {
    return DataLoss(where, ": \"", key, "\": got ", tensor.shape().ToString(),
                    ", want ", places, " rows, or ", sources.expanded_rows);
  }
  RILL_ASSIGN_OR_RETURN(Tensor plain, GatherRows(tensor, sources.plain));
  if (!IsApart(key, keys)) return rows->Set(key, std::move(plain));
  if (IsIn(key, keys.done)) {
    // The layout has no ends of the step itself; TorchRL makes zeros of them.
    RILL_ASSIGN_OR_RETURN(Tensor none,
                          Tensor::Zeros(plain.dtype(), plain.shape()));
    RILL_RETURN_IF_ERROR(rows->Set(key, std::move(none)));
  }
  return rows->Set(next, std::move(plain));
}

}  // namespace

absl::StatusOr<TensorDict> UnflattenTed(absl::string_view where,
                                        const FlatTed& flat,
                                        const TorchRlFlatKeys& keys) {
  const int64_t num_places = flat.storage_shape.num_elements();
  const Places places = {.steps = flat.steps,
                         .capacity = flat.storage_shape[0],
                         .lanes = flat.storage_shape.Suffix(1).num_elements(),
                         .shift = flat.shift % flat.storage_shape[0],
                         .is_full = flat.is_full()};
  RILL_ASSIGN_OR_RETURN(
      const Tensor ends,
      EndsOf(where, FindLeaf(flat.plain, "done"), num_places));
  RILL_ASSIGN_OR_RETURN(
      const Sources sources,
      FindSources(places, reinterpret_cast<const uint8_t*>(ends.raw_data()),
                  /*tells_lengths=*/false));
  TensorDict rows({places.steps * places.lanes});
  for (const auto* leaves : {&flat.plain, &flat.expanded}) {
    for (const FlatTed::Leaf& leaf : *leaves) {
      if (absl::StartsWith(leaf.first, kNext)) {
        return DataLoss(where, ": got \"", leaf.first, "\", want no \"next\"");
      }
      RILL_RETURN_IF_ERROR(
          AddLeaf(where, leaf, sources, num_places, keys, &rows));
    }
  }
  return rows.Reshape(flat.storage_shape.WithSize(0, places.steps));
}

namespace {

absl::Status CannotHold(absl::string_view where, absl::string_view key,
                        absl::string_view why) {
  return InvalidArgument(where, ": a flat checkpoint cannot hold \"", key,
                         "\": ", why);
}

// Contiguous, [rows, ...].
absl::StatusOr<Tensor> Flat(const Tensor& tensor, const Shape& batch) {
  RILL_ASSIGN_OR_RETURN(const Tensor host, tensor.To(Device::Cpu()));
  return host.Reshape(
      Shape({batch.num_elements()}).Concat(host.shape().Suffix(batch.rank())));
}

// `places` rows, zero where none of `rows` goes.
absl::StatusOr<Tensor> PlacedRows(const Tensor& rows, const Tensor& to,
                                  int64_t places) {
  RILL_ASSIGN_OR_RETURN(
      Tensor out,
      Tensor::Zeros(rows.dtype(), rows.shape().WithSize(0, places)));
  ScatterRows(rows, to, out);
  return out;
}

absl::StatusOr<Tensor> TensorOf(const std::vector<int64_t>& numbers) {
  return Tensor::From<int64_t>(numbers, {static_cast<int64_t>(numbers.size())});
}

// The leaves, as the checkpointer divides them.
absl::Status AddFlatLeaves(absl::string_view where, const TensorDict& rows,
                           const Sources& sources, const TorchRlFlatKeys& keys,
                           FlatTed* flat) {
  const Shape& batch = rows.batch_shape();
  const int64_t places = flat->storage_shape.num_elements();
  for (const std::string& key : rows.LeafKeys()) {
    if (absl::StartsWith(key, kNext)) {
      const std::string root = key.substr(kNext.size());
      if (!IsApart(root, keys) && rows.Find(root) == nullptr) {
        return CannotHold(where, key,
                          absl::StrCat("there is no \"", root, "\""));
      }
      if (!IsApart(root, keys)) continue;  // With its root.
      RILL_ASSIGN_OR_RETURN(const Tensor from, Flat(*rows.Find(key), batch));
      RILL_ASSIGN_OR_RETURN(Tensor out,
                            PlacedRows(from, sources.plain, places));
      flat->plain.emplace_back(root, std::move(out));
      continue;
    }
    if (IsApart(key, keys)) {
      if (rows.Find(absl::StrCat(kNext, key)) != nullptr) continue;
      return CannotHold(where, key, "it stands at the root alone");
    }
    RILL_ASSIGN_OR_RETURN(const Tensor from, Flat(*rows.Find(key), batch));
    const Tensor* next = rows.Find(absl::StrCat(kNext, key));
    if (next == nullptr) {
      RILL_ASSIGN_OR_RETURN(Tensor out,
                            PlacedRows(from, sources.plain, places));
      flat->plain.emplace_back(key, std::move(out));
      continue;
    }
    if (next->shape() != rows.Find(key)->shape() ||
        next->dtype() != from.dtype()) {
      return CannotHold(where, key, "its next is of another shape or dtype");
    }
    RILL_ASSIGN_OR_RETURN(const Tensor behind, Flat(*next, batch));
    RILL_ASSIGN_OR_RETURN(
        Tensor out, PlacedRows(behind, sources.next, sources.expanded_rows));
    // Last: where a step's root lies on the row behind the one before it, the
    // root's bytes stay. FlattenTed finds out whether they differ.
    ScatterRows(from, sources.root, out);
    flat->expanded.emplace_back(key, std::move(out));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FlatTed> FlattenTed(absl::string_view where,
                                   const TensorDict& rows, int64_t capacity,
                                   int64_t cursor,
                                   const TorchRlFlatKeys& keys) {
  FlatTed flat{.storage_shape = rows.batch_shape().WithSize(0, capacity),
               .steps = rows.batch_shape()[0]};
  // Never 0, which stands for a buffer that was loaded and not written to
  // since.
  flat.shift = !flat.is_full() ? flat.steps : cursor == 0 ? capacity : cursor;
  const int64_t lanes = flat.storage_shape.Suffix(1).num_elements();
  const Tensor* done = rows.Find("next/done");
  if (done == nullptr || done->dtype() != DType::kBool ||
      done->num_elements() != flat.steps * lanes) {
    return CannotHold(where, "next/done", "want one bool a row");
  }
  if (flat.steps == 0) {
    return CannotHold(where, "next/done", "there are no rows");
  }
  RILL_ASSIGN_OR_RETURN(const Tensor ends, Flat(*done, rows.batch_shape()));
  const Places places = {.steps = flat.steps,
                         .capacity = capacity,
                         .lanes = lanes,
                         .shift = flat.shift % capacity,
                         .is_full = flat.is_full()};
  // From the order of the places to that of the layout.
  RILL_ASSIGN_OR_RETURN(const Tensor in_order,
                        Tensor::Zeros(DType::kUInt8, {capacity * lanes}));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    for (int64_t t = 0; t < flat.steps; ++t) {
      in_order.data<uint8_t>()[lane * capacity + t] =
          ends.data<uint8_t>()[places.PlaceOf(t) * lanes + lane];
    }
  }
  RILL_ASSIGN_OR_RETURN(const Sources sources,
                        FindSources(places, in_order.data<uint8_t>(),
                                    /*tells_lengths=*/true));
  RILL_ASSIGN_OR_RETURN(flat.lengths, TensorOf(sources.lengths));
  RILL_ASSIGN_OR_RETURN(flat.expanded_lengths,
                        TensorOf(sources.expanded_lengths));
  RILL_RETURN_IF_ERROR(AddFlatLeaves(where, rows, sources, keys, &flat));
  // Equal values are stored once: whether they were equal shows in what comes
  // back.
  RILL_ASSIGN_OR_RETURN(const TensorDict back, UnflattenTed(where, flat, keys));
  for (const std::string& key : rows.LeafKeys()) {
    RILL_ASSIGN_OR_RETURN(const Tensor got, back.Get(key));
    RILL_ASSIGN_OR_RETURN(const bool is_equal, got.BitEquals(*rows.Find(key)));
    if (!is_equal) {
      return CannotHold(where, key,
                        "it is not the same at a step and behind the one "
                        "before, or true at the root");
    }
  }
  return flat;
}

}  // namespace rill::formats_internal

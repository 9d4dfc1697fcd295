// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/rows/batch_leaves.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/stream.h"
#include "rill/tensors/dtype.h"

namespace rill::storage_internal {
namespace {

// Names every entry of `dict` (below `path`) that is not a tensor of the spec.
void CollectStrangers(const TensorDictSpec& spec, const TensorDict& dict,
                      const std::string& path,
                      std::vector<std::string>* strangers) {
  for (const std::string& name : dict.Keys()) {
    const std::string key = path.empty() ? name : absl::StrCat(path, "/", name);
    if (const TensorDict* inner = dict.FindDict(name)) {
      const size_t before = strangers->size();
      CollectStrangers(spec, *inner, key, strangers);
      if (inner->empty() && strangers->size() == before) {
        strangers->push_back(absl::StrCat(key, " (an empty dictionary)"));
      }
    } else if (dict.Find(name) == nullptr) {
      strangers->push_back(absl::StrCat(key, " (not a tensor)"));
    } else if (spec.Find(key) == nullptr) {
      strangers->push_back(key);
    }
  }
}

// One stride goes over all rows.
bool IsFlat(const Tensor& rows, int batch_rank) {
  if (batch_rank == 1) return true;
  const auto strides = rows.strides_bytes();
  return rows.shape()[0] == 1 || rows.shape()[1] == 1 ||
         strides[0] == strides[1] * rows.shape()[1];
}

// The error for a batch whose keys do not fit: unknown entries, leaves that are
// missing, and the keys that the spec has.
absl::Status WrongKeys(absl::string_view caller, const TensorDictSpec& spec,
                       const TensorDict& dict, bool allow_part) {
  std::vector<std::string> missing;
  std::vector<std::string> known;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    known.push_back(leaf.key);
    if (!allow_part && dict.Find(leaf.key) == nullptr) {
      missing.push_back(leaf.key);
    }
  }
  std::vector<std::string> strangers;
  CollectStrangers(spec, dict, "", &strangers);
  std::string got = "got";
  if (!strangers.empty()) {
    absl::StrAppend(&got, " unknown {", absl::StrJoin(strangers, ", "), "}");
  }
  if (!missing.empty()) {
    absl::StrAppend(&got, strangers.empty() ? "" : " and", " no {",
                    absl::StrJoin(missing, ", "), "}");
  }
  if (strangers.empty() && missing.empty()) absl::StrAppend(&got, " none");
  return InvalidArgument(caller, ": keys: ", got, ", want ",
                         allow_part ? "some of {" : "{",
                         absl::StrJoin(known, ", "), "}");
}

}  // namespace

Tensor::Options RowMemory(Device device) {
  return {device,
          device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice};
}

ReuseRules RulesToTakeRows(Device device) {
  return {
      .memory = RowMemory(device), .is_passed_in = true, .allow_strides = true};
}

bool LieApart(absl::Span<const ByteExtent> extents) {
  size_t ordered = 0;  // That many lie one behind the other.
  const std::byte* end = nullptr;
  for (; ordered < extents.size() && extents[ordered].begin >= end; ++ordered) {
    end = extents[ordered].end;
  }
  for (size_t i = ordered; i < extents.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (extents[i].Overlaps(extents[k])) return false;
    }
  }
  return true;
}

absl::Status BatchLeaves::Bind(absl::string_view caller,
                               const TensorDictSpec& spec, const SpecTree& tree,
                               const TensorDict& batch, bool allow_part) {
  Clear();
  const int batch_rank = batch.batch_shape().rank();
  // Keys are judged last: their message lists all of them, so the search for
  // unknown entries runs only where there is an error.
  const bool holds_nothing_else = tree.Find(batch, &found_);
  for (size_t i = 0; i < spec.leaves().size(); ++i) {
    const TensorDictSpec::Leaf& leaf = spec.leaves()[i];
    const Tensor* const tensor = found_[i];
    if (tensor == nullptr) continue;
    if (tensor->dtype() != leaf.spec.dtype ||
        tensor->shape().sizes().subspan(batch_rank) !=
            leaf.spec.shape.sizes()) {
      return InvalidArgument(
          caller, ": leaf \"", leaf.key, "\": got ", DTypeName(tensor->dtype()),
          tensor->shape().ToString(), ", want ", DTypeName(leaf.spec.dtype),
          batch.batch_shape().Concat(leaf.spec.shape).ToString());
    }
    leaves_.push_back({.leaf = i, .given = tensor, .ready = tensor});
  }
  const bool is_whole = leaves_.size() == spec.leaves().size();
  if (leaves_.empty() || (!allow_part && !is_whole) || !holds_nothing_else) {
    return WrongKeys(caller, spec, batch, allow_part);
  }
  return absl::OkStatus();
}

absl::Status BatchLeaves::Prepare(Device device, const Buffer* lent,
                                  int batch_rank) {
  for (BatchLeaf& leaf : leaves_) {
    const Tensor& given = *leaf.given;
    if (given.num_elements() == 0) continue;
    const bool is_reached = given.is_host() || given.device() == device;
    // A tensor of a lease lies in the rows themselves: a copy from there could
    // read rows that the same call has overwritten.
    if (is_reached && HasDenseRows(given, batch_rank) &&
        (device.is_cpu() || IsFlat(given, batch_rank)) &&
        given.buffer().get() != lent) {
      continue;
    }
    if (!given.is_host()) {
      // The copy's stream is another one than that which has the values.
      RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(given.device()));
      RILL_RETURN_IF_ERROR(stream.Synchronize());
    }
    RILL_ASSIGN_OR_RETURN(Tensor copy,
                          is_reached ? given.Clone() : given.To(device));
    copies_.push_back(std::move(copy));
    leaf.ready = &copies_.back();
  }
  return absl::OkStatus();
}

void BatchLeaves::PlaceRows(int64_t first, bool past_caches,
                            std::vector<LeafBatch>* places) const {
  places->clear();
  for (const BatchLeaf& leaf : leaves_) {
    if (leaf.ready->num_elements() == 0) continue;  // And no address.
    const int64_t stride = leaf.ready->strides_bytes()[0];
    places->push_back({leaf.leaf, leaf.ready->raw_data() + first * stride,
                       stride, past_caches});
  }
}

const BatchLeaf* BatchLeaves::Find(size_t leaf) const {
  for (const BatchLeaf& candidate : leaves_) {
    if (candidate.leaf == leaf) return &candidate;
  }
  return nullptr;
}

void BatchLeaves::Clear() {
  leaves_.clear();
  copies_.clear();
}

}  // namespace rill::storage_internal

// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/spec.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/leaf_allocator.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

std::string QuotedKeys(const std::vector<std::string>& keys) {
  if (keys.empty()) return "none";
  return absl::StrCat("\"", absl::StrJoin(keys, "\", \""), "\"");
}

// Keys of `spec` without a leaf in `dict`, and leaves of `dict` without a spec.
absl::Status CheckKeys(absl::string_view caller, const TensorDictSpec& spec,
                       const TensorDict& dict, bool allow_extra) {
  std::vector<std::string> missing;
  std::vector<std::string> extra;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    if (dict.Find(leaf.key) == nullptr) missing.push_back(leaf.key);
  }
  if (!allow_extra) {
    dict.ForEachLeaf([&](absl::string_view key, const Tensor&) {
      if (spec.Find(key) == nullptr) extra.emplace_back(key);
    });
  }
  if (missing.empty() && extra.empty()) return absl::OkStatus();
  std::vector<std::string> want;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    want.push_back(leaf.key);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(caller, ": keys: missing ", QuotedKeys(missing),
                   ", too many ", QuotedKeys(extra), "; got ",
                   QuotedKeys(dict.LeafKeys()), ", want ", QuotedKeys(want)));
}

absl::Status WithCaller(absl::string_view caller, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(caller, ": ", status.message()));
}

}  // namespace

TensorDictSpec TensorDictSpec::Of(const TensorDict& dict) {
  TensorDictSpec spec;
  const int batch_rank = dict.batch_shape().rank();
  dict.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    spec.leaves_.push_back(
        {std::string(key),
         LeafSpec::Unbounded(leaf.dtype(), leaf.shape().Suffix(batch_rank))});
  });
  return spec;
}

absl::Status TensorDictSpec::Set(absl::string_view key, LeafSpec spec) {
  RILL_RETURN_IF_ERROR(CheckKey(key));
  if (absl::Status status = spec.CheckDomain(); !status.ok()) {
    return WithCaller(
        absl::StrCat("TensorDictSpec::Set: domain of \"", key, "\""), status);
  }
  for (Leaf& leaf : leaves_) {
    if (leaf.key == key) {
      leaf.spec = std::move(spec);
      return absl::OkStatus();
    }
    if (absl::StartsWith(leaf.key, absl::StrCat(key, "/")) ||
        absl::StartsWith(key, absl::StrCat(leaf.key, "/"))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TensorDictSpec::Set: key: got \"", key, "\" beside \"", leaf.key,
          "\", want each key to be a leaf or a dictionary, not both"));
    }
  }
  leaves_.push_back({std::string(key), std::move(spec)});
  return absl::OkStatus();
}

const LeafSpec* TensorDictSpec::Find(absl::string_view key) const {
  for (const Leaf& leaf : leaves_) {
    if (leaf.key == key) return &leaf.spec;
  }
  return nullptr;
}

void TensorDictSpec::Erase(absl::string_view key) {
  std::erase_if(leaves_, [key](const Leaf& leaf) { return leaf.key == key; });
}

absl::Status TensorDictSpec::CheckLayout(absl::string_view caller,
                                         const TensorDict& dict) const {
  RILL_RETURN_IF_ERROR(CheckKeys(caller, *this, dict, /*allow_extra=*/false));
  for (const Leaf& leaf : leaves_) {
    absl::Status status = leaf.spec.CheckLayout(leaf.key, dict.batch_shape(),
                                                *dict.Find(leaf.key));
    if (!status.ok()) return WithCaller(caller, status);
  }
  return absl::OkStatus();
}

absl::Status TensorDictSpec::CheckValues(absl::string_view caller,
                                         const TensorDict& dict,
                                         bool allow_extra) const {
  RILL_RETURN_IF_ERROR(CheckKeys(caller, *this, dict, allow_extra));
  for (const Leaf& leaf : leaves_) {
    absl::Status status = leaf.spec.CheckValues(leaf.key, dict.batch_shape(),
                                                *dict.Find(leaf.key));
    if (!status.ok()) return WithCaller(caller, status);
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDict> TensorDictSpec::Random(const Shape& batch_shape,
                                                  const Rng& rng,
                                                  uint64_t batch) const {
  TensorDict dict(batch_shape);
  for (size_t i = 0; i < leaves_.size(); ++i) {
    // A key of its own for each leaf, so that no two see the same numbers.
    const Rng leaf_rng(rng.Bits64(batch, static_cast<uint32_t>(i)),
                       RngStream::kSpec);
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          leaves_[i].spec.Random(batch_shape, leaf_rng, 0));
    RILL_RETURN_IF_ERROR(dict.Set(leaves_[i].key, std::move(leaf)));
  }
  return dict;
}

absl::StatusOr<TensorDict> TensorDictSpec::Empty(
    const Shape& batch_shape, const Tensor::Options& options) const {
  using tensordict_internal::LeafAllocator;
  LeafAllocator allocator(options, LeafAllocator::kShareAll);
  std::vector<Shape> shapes;
  shapes.reserve(leaves_.size());
  for (const Leaf& leaf : leaves_) {
    absl::StatusOr<Shape> shape = leaf.spec.FullShape(batch_shape);
    if (!shape.ok()) {
      return WithCaller(
          absl::StrCat("TensorDictSpec: shape of \"", leaf.key, "\""),
          shape.status());
    }
    allocator.Plan(leaf.spec.dtype, *shape);
    shapes.push_back(*std::move(shape));
  }
  TensorDict dict(batch_shape);
  for (size_t i = 0; i < leaves_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          allocator.Make(leaves_[i].spec.dtype, shapes[i]));
    RILL_RETURN_IF_ERROR(dict.Set(leaves_[i].key, std::move(leaf)));
  }
  return dict;
}

absl::StatusOr<TensorDict> TensorDictSpec::Zero(
    const Shape& batch_shape) const {
  RILL_ASSIGN_OR_RETURN(TensorDict dict, Empty(batch_shape, {}));
  dict.ForEachLeaf([](absl::string_view, const Tensor& leaf) {
    std::fill_n(leaf.raw_data(), leaf.size_bytes(), std::byte{0});
  });
  return dict;
}

std::string TensorDictSpec::ToString() const {
  return absl::StrCat("{",
                      absl::StrJoin(leaves_, ", ",
                                    [](std::string* out, const Leaf& leaf) {
                                      absl::StrAppend(out, leaf.key, ": ",
                                                      leaf.spec.ToString());
                                    }),
                      "}");
}

}  // namespace rill

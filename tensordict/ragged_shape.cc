// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/ragged_shape.h"

#include <algorithm>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rill/base/status_macros.h"

namespace rill {

RaggedShape::RaggedShape(const Shape& shape) : rank_(shape.rank()) {
  for (int d = 0; d < rank_; ++d) sizes_[d] = shape[d];
}

bool RaggedShape::is_ragged() const {
  return std::count(sizes().begin(), sizes().end(), kRagged) > 0;
}

absl::StatusOr<Shape> RaggedShape::ToShape() const {
  if (!is_ragged()) return Shape::Create(sizes());
  return InvalidArgument("RaggedShape::ToShape: got ", ToString(),
                         ", want a shape of one size in each dimension");
}

// A size that differs anywhere is ragged from then on: kRagged equals no size.
RaggedShape RaggedShape::MergedWith(const Shape& other) const {
  RaggedShape merged = *this;
  for (int d = 0; d < rank_; ++d) {
    if (merged.sizes_[d] != other[d]) merged.sizes_[d] = kRagged;
  }
  return merged;
}

RaggedShape RaggedShape::WithDim(int dim, int64_t size) const {
  // From the back, so that no size is lost.
  RaggedShape wider = *this;
  for (int d = rank_; d > dim; --d) wider.sizes_[d] = sizes_[d - 1];
  wider.sizes_[dim] = size;
  ++wider.rank_;
  return wider;
}

bool RaggedShape::StartsWith(const Shape& prefix) const {
  return rank_ >= prefix.rank() &&
         sizes().subspan(0, static_cast<size_t>(prefix.rank())) ==
             prefix.sizes();
}

bool RaggedShape::IsPrefixOf(const Shape& shape) const {
  return rank_ <= shape.rank() &&
         shape.sizes().subspan(0, static_cast<size_t>(rank_)) == sizes();
}

std::string RaggedShape::ToString() const {
  return absl::StrCat("[", absl::StrJoin(sizes(), ", "), "]");
}

std::ostream& operator<<(std::ostream& os, const RaggedShape& shape) {
  return os << shape.ToString();
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/weights/weight_layout.h"

#include <array>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/flow/packed_leaves.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"

namespace rill::weights_internal {
namespace {

// Numbers as int64, texts and shapes behind their length.
void AddNumber(int64_t number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void AddText(absl::string_view text, std::string* bytes) {
  AddNumber(static_cast<int64_t>(text.size()), bytes);
  absl::StrAppend(bytes, text);
}

void AddShape(const Shape& shape, std::string* bytes) {
  AddNumber(shape.rank(), bytes);
  for (const int64_t size : shape.sizes()) AddNumber(size, bytes);
}

absl::Status Broken(absl::string_view what, int64_t got) {
  return DataLoss("the description of the weights has ", what, " ", got);
}

// Each Take reads one item, removes it from `bytes`, and checks it: another
// process may have written over the memory.
absl::StatusOr<int64_t> TakeNumber(absl::string_view* bytes) {
  int64_t number;
  if (bytes->size() < sizeof(number)) return Broken("an end at", bytes->size());
  std::memcpy(&number, bytes->data(), sizeof(number));
  bytes->remove_prefix(sizeof(number));
  return number;
}

absl::StatusOr<absl::string_view> TakeText(absl::string_view* bytes) {
  RILL_ASSIGN_OR_RETURN(const int64_t size, TakeNumber(bytes));
  if (size < 0 || size > static_cast<int64_t>(bytes->size())) {
    return Broken("a text of size", size);
  }
  const absl::string_view text = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return text;
}

absl::StatusOr<Shape> TakeShape(absl::string_view* bytes) {
  RILL_ASSIGN_OR_RETURN(const int64_t rank, TakeNumber(bytes));
  if (rank < 0 || rank > Shape::kMaxRank) return Broken("a rank of", rank);
  std::array<int64_t, Shape::kMaxRank> sizes;
  for (int64_t d = 0; d < rank; ++d) {
    RILL_ASSIGN_OR_RETURN(sizes[d], TakeNumber(bytes));
  }
  return Shape::Create(absl::MakeConstSpan(sizes.data(), rank));
}

// Adds a leaf with its key, dtype and shape.
absl::Status TakeLeaf(absl::string_view* bytes, WeightLayout* layout) {
  RILL_ASSIGN_OR_RETURN(const absl::string_view key, TakeText(bytes));
  RILL_ASSIGN_OR_RETURN(const absl::string_view name, TakeText(bytes));
  RILL_ASSIGN_OR_RETURN(const DType dtype, DTypeFromName(name));
  RILL_ASSIGN_OR_RETURN(const Shape shape, TakeShape(bytes));
  const int rank = layout->batch_shape.rank() + shape.rank();
  if (rank > Shape::kMaxRank) return Broken("a leaf of rank", rank);
  // Refuses sizes whose product with the batch's overflows.
  RILL_RETURN_IF_ERROR(
      Shape::Create(layout->batch_shape.Concat(shape).sizes()).status());
  if (layout->spec.Find(key) != nullptr) {
    return DataLoss("two leaves \"", key, "\"");
  }
  return layout->spec.Set(key, LeafSpec::Unbounded(dtype, shape));
}

// Reads what ToBytes writes, in the same order. The codes of errors are those
// of shapes, dtypes and specs; FromBytes makes DATA_LOSS of all.
absl::StatusOr<WeightLayout> Take(absl::string_view bytes) {
  WeightLayout layout;
  RILL_ASSIGN_OR_RETURN(layout.batch_shape, TakeShape(&bytes));
  RILL_ASSIGN_OR_RETURN(const int64_t num_leaves, TakeNumber(&bytes));
  // Every leaf takes bytes, so a number that is too large ends early.
  for (int64_t i = 0; i < num_leaves; ++i) {
    RILL_RETURN_IF_ERROR(TakeLeaf(&bytes, &layout));
  }
  if (layout.spec.empty()) return Broken("leaves:", num_leaves);
  if (!bytes.empty()) return Broken("more bytes:", bytes.size());
  const int64_t packed = layout.PackedBytes();
  if (packed < 0 || packed > WeightLayout::kMaxBytes) {
    return Broken("snapshots of bytes", packed);
  }
  return layout;
}

}  // namespace

std::string WeightLayout::ToBytes() const {
  std::string bytes;
  AddShape(batch_shape, &bytes);
  AddNumber(static_cast<int64_t>(spec.leaves().size()), &bytes);
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    AddText(leaf.key, &bytes);
    AddText(DTypeName(leaf.spec.dtype), &bytes);
    AddShape(leaf.spec.shape, &bytes);
  }
  return bytes;
}

absl::StatusOr<WeightLayout> WeightLayout::FromBytes(absl::string_view bytes) {
  absl::StatusOr<WeightLayout> layout = Take(bytes);
  if (!layout.ok()) return DataLoss(layout.status().message());
  return layout;
}

int64_t WeightLayout::PackedBytes() const {
  return flow_internal::PackedBytes(spec, batch_shape.num_elements());
}

}  // namespace rill::weights_internal

// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/conformance/conformance_rows.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "gtest/gtest.h"
#include "rill/tensors/dtype.h"

namespace rill {
namespace {

TensorDictSpec MakeSpec() {
  const std::pair<const char*, LeafSpec> leaves[] = {
      {"observation", LeafSpec::Unbounded(DType::kFloat32, {3})},
      {"action", LeafSpec::Unbounded(DType::kInt64, {})},
      {"next/observation", LeafSpec::Unbounded(DType::kUInt8, {5})},
      {"next/done", LeafSpec::Binary({1})},
      {"next/deep/wide", LeafSpec::Unbounded(DType::kFloat64, {2, 5})},
      {"collector/traj_ids", LeafSpec::Unbounded(DType::kInt64, {})},
      {"priority", LeafSpec::Unbounded(DType::kFloat32, {1})},
      {"policy_version", LeafSpec::Unbounded(DType::kInt64, {1})},
      {"half", LeafSpec::Unbounded(DType::kBFloat16, {3})},
      {"nothing", LeafSpec::Unbounded(DType::kInt16, {0})},
      {"a\\/b c", LeafSpec::Unbounded(DType::kComplex128, {1})},
      {"pixels", LeafSpec::Unbounded(DType::kUInt8, {9})},
      {"next/pixels", LeafSpec::Unbounded(DType::kUInt8, {9})},
  };
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) {
    EXPECT_TRUE(spec.Set(key, leaf).ok()) << key;
  }
  return spec;
}

// The bytes of one leaf of one row.
void FillRow(const std::string& key, int64_t id, absl::Span<uint8_t> row) {
  const auto put = [row](auto value) {
    std::memcpy(row.data(), &value, sizeof(value));
  };
  if (key == "next/done") return put(ConformanceEnd(id));
  if (key == "collector/traj_ids") return put(ConformanceTrajectory(id));
  if (key == "priority") return put(ConformancePriority(id));
  if (key == "policy_version") return put(ConformancePolicyVersion(id));
  if (key == "next/pixels" && !ConformanceEnd(id)) {
    return FillRow("pixels", id + 1, row);
  }
  // An odd factor and a shift: ids that differ give bytes that differ.
  uint64_t bits = static_cast<uint64_t>(id) + key.size();
  for (size_t i = 0; i < row.size(); i += sizeof(bits)) {
    bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9u + 1;
    std::memcpy(row.data() + i, &bits, std::min(sizeof(bits), row.size() - i));
  }
}

}  // namespace

const TensorDictSpec& ConformanceSpec() {
  static const TensorDictSpec* const spec = new TensorDictSpec(MakeSpec());
  return *spec;
}

bool ConformanceEnd(int64_t id) { return id % 5 == 0; }
int64_t ConformanceTrajectory(int64_t id) { return id / 5 - 3; }
float ConformancePriority(int64_t id) {
  return static_cast<float>(id % 97) + 0.5f;
}
int64_t ConformancePolicyVersion(int64_t id) { return 3 * id; }

size_t ConformanceLeafNumber(const std::string& key) {
  const auto& leaves = ConformanceSpec().leaves();
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].key == key) return i;
  }
  ADD_FAILURE() << "no leaf " << key;
  return 0;
}

Tensor ConformanceLeaf(size_t leaf, const Shape& batch_shape,
                       absl::Span<const int64_t> ids) {
  const TensorDictSpec::Leaf& want = ConformanceSpec().leaves()[leaf];
  auto tensor =
      Tensor::Empty(want.spec.dtype, batch_shape.Concat(want.spec.shape));
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(batch_shape.num_elements(), static_cast<int64_t>(ids.size()));
  const size_t width =
      want.spec.shape.num_elements() * DTypeSize(want.spec.dtype);
  if (width == 0) return *tensor;
  auto* row = reinterpret_cast<uint8_t*>(tensor->raw_data());
  for (const int64_t id : ids) {
    FillRow(want.key, id, absl::MakeSpan(row, width));
    row += width;
  }
  return *tensor;
}

TensorDict ConformanceRows(const Shape& batch_shape,
                           absl::Span<const int64_t> ids,
                           absl::Span<const size_t> leaves) {
  TensorDict rows(batch_shape);
  for (const size_t leaf : leaves) {
    const absl::Status status =
        rows.Set(ConformanceSpec().leaves()[leaf].key,
                 ConformanceLeaf(leaf, batch_shape, ids));
    EXPECT_TRUE(status.ok()) << status;
  }
  return rows;
}

TensorDict ConformanceRows(const Shape& batch_shape,
                           absl::Span<const int64_t> ids) {
  std::vector<size_t> leaves(ConformanceSpec().leaves().size());
  std::iota(leaves.begin(), leaves.end(), size_t{0});
  return ConformanceRows(batch_shape, ids, leaves);
}

std::vector<int64_t> SlotsFrom(int64_t first, int64_t count) {
  std::vector<int64_t> slots(count);
  std::iota(slots.begin(), slots.end(), first);
  return slots;
}

}  // namespace rill

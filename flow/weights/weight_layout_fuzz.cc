// SPDX-License-Identifier: Apache-2.0
// Bytes as the description of a store's weights: what is accepted is written as
// the same bytes, and its snapshots are of a size that can be.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rill/flow/weights/weight_layout.h"
#include "rill/specs/spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::weights_internal {
namespace {

void Check(std::string_view bytes) {
  const auto layout = WeightLayout::FromBytes(bytes);
  if (!layout.ok()) {
    RILL_FUZZ_CHECK(layout.status().code() == absl::StatusCode::kDataLoss);
    return;
  }
  RILL_FUZZ_CHECK(layout->ToBytes() == bytes);
  int64_t least = 0;
  for (const TensorDictSpec::Leaf& leaf : layout->spec.leaves()) {
    const Shape shape = layout->batch_shape.Concat(leaf.spec.shape);
    RILL_FUZZ_CHECK(shape.rank() ==
                    layout->batch_shape.rank() + leaf.spec.shape.rank());
    least += shape.num_elements() * DTypeSize(leaf.spec.dtype);
  }
  RILL_FUZZ_CHECK(layout->PackedBytes() >= least);
  RILL_FUZZ_CHECK(layout->PackedBytes() <= WeightLayout::kMaxBytes);
}

}  // namespace
}  // namespace rill::weights_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::weights_internal::Check(
      std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

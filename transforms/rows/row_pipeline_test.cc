// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/rows/row_pipeline.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/instruction_sets.h"
#include "rill/testing/status_matchers.h"
#include "rill/transforms/rows/row_map.h"
#include "rill/transforms/rows/row_steps.h"

namespace rill {
namespace {

using Maps = std::vector<std::shared_ptr<const RowMap>>;
using Kind = RowStep::Kind;

Maps MapsOf(const std::vector<RowStep>& steps) {
  Maps maps;
  for (const RowStep& step : steps) maps.push_back(*MakeRowStep(step));
  return maps;
}

// Bytes that differ from their neighbours.
Tensor RowsOf(int64_t bytes) {
  Tensor rows = *Tensor::Empty(DType::kUInt8, {bytes});
  for (int64_t i = 0; i < bytes; ++i) {
    rows.data<uint8_t>()[i] = static_cast<uint8_t>(i * 7 + i / 256);
  }
  return rows;
}

// `count` rows of `width` bytes through `maps`, from `shift` floats behind an
// aligned address on, with one float before and one behind that stay.
std::vector<float> MapRows(const Maps& maps, int64_t count, int64_t width,
                           int64_t shift, bool is_streamed) {
  auto pipeline =
      RowPipeline::Create(LeafSpec::Unbounded(DType::kUInt8, {width}), maps);
  RILL_EXPECT_OK(pipeline);
  const int64_t elements = count * pipeline->spec().shape.num_elements();
  const Tensor to = *Tensor::Zeros(DType::kFloat32, {elements + shift + 2});
  float* const begin = to.data<float>() + shift;
  RILL_EXPECT_OK(pipeline->Run(count, RowsOf(count * width).raw_data(),
                               reinterpret_cast<std::byte*>(begin + 1),
                               is_streamed));
  RowPipeline::EndStreams();
  return std::vector<float>(begin, begin + elements + 2);
}

TEST(RowPipelineTest, WhatIsStreamedHasTheSameBits) {
  const std::vector<Maps> chains = {
      MapsOf({{.kind = Kind::kUnitInterval}}),
      MapsOf({{.kind = Kind::kCast, .dtype = DType::kFloat32}}),
      MapsOf({{.kind = Kind::kUnitInterval}, {.scale = {3}, .loc = {-1}}}),
      MapsOf({{.kind = Kind::kSign}, {.kind = Kind::kUnitInterval}})};
  ForEachTarget([&] {
    for (const Maps& maps : chains) {
      // Shorter than a vector, and longer than what is mapped at once.
      for (const int64_t width : {1, 3, 16, 67, 9001}) {
        for (int64_t shift = 0; shift < 16; ++shift) {
          const std::vector<float> want = MapRows(maps, 5, width, shift, false);
          EXPECT_EQ(MapRows(maps, 5, width, shift, true), want)
              << width << " bytes, " << shift << " floats behind";
          EXPECT_EQ(want.front(), 0);
          EXPECT_EQ(want.back(), 0);
        }
      }
    }
  });
}

}  // namespace
}  // namespace rill

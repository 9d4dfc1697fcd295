// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/replay/batch_memory.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

// A flag and 1,001 bytes a row, whose rows begin anywhere.
TensorDictSpec Layout() {
  TensorDict rows({1});
  RILL_EXPECT_OK(rows.Set("done", *Tensor::Zeros(DType::kBool, {1, 1})));
  RILL_EXPECT_OK(
      rows.Set("next/pixels", *Tensor::Zeros(DType::kUInt8, {1, 1001})));
  return TensorDictSpec::Of(rows);
}

Tensor PixelsOf(const TensorDict& batch) { return *batch.Find("next/pixels"); }

TEST(BatchMemoryTest, LargeBatchesShareMemoryThatHasHugePages) {
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> batches,
                            MakeBatchMemory(Layout(), {256}));
  // 256,512 bytes each.
  ASSERT_EQ(batches.size(), 17u);
  const std::byte* const begin = batches[0].Find("done")->buffer()->data();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % (2 << 20), 0u);
  for (size_t i = 0; i < batches.size(); ++i) {
    const TensorDict& batch = batches[i];
    RILL_EXPECT_OK(Layout().CheckLayout("", batch));
    EXPECT_EQ(batch.batch_shape(), Shape({256}));
    const std::shared_ptr<Buffer> buffer = PixelsOf(batch).buffer();
    EXPECT_EQ(batch.Find("done")->buffer().get(), buffer.get());
    EXPECT_EQ(buffer->data() - begin, static_cast<int64_t>(i) * 256512);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(PixelsOf(batch).raw_data()) % 64, 0u);
    EXPECT_LE(buffer->size_bytes(), 256512);
  }
}

TEST(BatchMemoryTest, TheMemoryOfABatchOutlivesTheOthers) {
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> batches,
                            MakeBatchMemory(Layout(), {256}));
  Tensor pixels = PixelsOf(batches[3]);
  batches.clear();
  // The tensor, and nobody else.
  EXPECT_EQ(pixels.buffer().use_count(), 1);
  RILL_EXPECT_OK(pixels.CopyFrom(*Tensor::Zeros(DType::kUInt8, {256, 1001})));
  EXPECT_EQ(pixels.data<uint8_t>()[0], 0);
}

TEST(BatchMemoryTest, SmallAndHugeBatchesAreMadeOneByOne) {
  for (const int64_t rows : {1, 120, 5000}) {
    RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> batches,
                              MakeBatchMemory(Layout(), {rows}));
    ASSERT_EQ(batches.size(), 1u);
    EXPECT_EQ(PixelsOf(batches[0]).shape(), Shape({rows, 1001}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(std::vector<TensorDict> batches,
                            MakeBatchMemory(TensorDictSpec(), {4}));
  EXPECT_EQ(batches.size(), 1u);
}

}  // namespace
}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/compressed/sealed_block.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/rng.h"
#include "rill/testing/status_matchers.h"

namespace rill::storage_internal {
namespace {

// Bytes below `values`: 256 of them is noise, few compress.
std::string Bytes(uint64_t seed, size_t size, int64_t values) {
  const Rng rng(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>(rng.UniformInt(i, 0, values));
  }
  return bytes;
}

std::vector<absl::string_view> Views(const std::vector<std::string>& columns) {
  return {columns.begin(), columns.end()};
}

void ExpectColumns(const SealedBlock& block,
                   const std::vector<std::string>& want) {
  ScratchBytes scratch;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(block.column_bytes(i), want[i].size());
    RILL_ASSERT_OK_AND_ASSIGN(const std::byte* const bytes,
                              block.Open(i, &scratch));
    EXPECT_TRUE(absl::string_view(reinterpret_cast<const char*>(bytes),
                                  want[i].size()) == want[i])
        << i;
  }
}

TEST(SealedBlockTest, ColumnsComeBackWhateverTheyHold) {
  for (const int level : {BlockSealer::MinLevel(), -3, 1, 3, 19}) {
    RILL_ASSERT_OK_AND_ASSIGN(BlockSealer sealer, BlockSealer::Create(level));
    const std::vector<std::string> columns = {
        Bytes(1, 5000, 256), "", std::string(70000, 'x'), "a", Bytes(2, 300, 3),
        Bytes(3, 64, 256)};
    RILL_ASSERT_OK_AND_ASSIGN(const auto block, sealer.Seal(Views(columns)));
    ExpectColumns(*block, columns);
    EXPECT_EQ(block->open_bytes(), 5000 + 70000 + 1 + 300 + 64);
  }
}

TEST(SealedBlockTest, NoiseTakesItsOwnSizeAndRepetitionNearlyNothing) {
  RILL_ASSERT_OK_AND_ASSIGN(BlockSealer sealer, BlockSealer::Create(3));
  const std::vector<std::string> noise = {Bytes(4, 4096, 256)};
  RILL_ASSERT_OK_AND_ASSIGN(const auto plain, sealer.Seal(Views(noise)));
  EXPECT_EQ(plain->memory_bytes(), 4096 + SealedBlockOverhead(1));
  RILL_ASSERT_OK_AND_ASSIGN(const auto packed,
                            sealer.Seal({std::string(100000, 'x')}));
  EXPECT_LT(packed->memory_bytes(), 500);
}

TEST(SealedBlockTest, ColumnsWithoutDataAreThoseOfTheOldBlock) {
  RILL_ASSERT_OK_AND_ASSIGN(BlockSealer sealer, BlockSealer::Create(3));
  std::vector<std::string> columns = {Bytes(5, 900, 256), "",
                                      std::string(3000, 'y'), Bytes(6, 80, 2)};
  RILL_ASSERT_OK_AND_ASSIGN(const auto old, sealer.Seal(Views(columns)));
  const std::string fresh = Bytes(7, 3000, 5);
  RILL_ASSERT_OK_AND_ASSIGN(const auto block,
                            sealer.Seal({{}, {}, fresh, {}}, old.get()));
  ExpectColumns(*old, columns);
  columns[2] = fresh;
  ExpectColumns(*block, columns);
  EXPECT_EQ(block->open_bytes(), old->open_bytes());
}

TEST(SealedBlockTest, WithoutMemoryThereIsNoBlock) {
  RILL_ASSERT_OK_AND_ASSIGN(BlockSealer sealer, BlockSealer::Create(3));
  ScopedFaultHook hook([](absl::string_view, absl::string_view) {
    return absl::ResourceExhaustedError("no memory");
  });
  EXPECT_THAT(sealer.Seal({"abc"}), IsResourceExhausted());
}

}  // namespace
}  // namespace rill::storage_internal

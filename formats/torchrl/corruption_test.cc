// SPDX-License-Identifier: Apache-2.0
// Saved buffers with damage: an error, or a buffer that can be written and
// reads the same.
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/torchrl/torchrl_replay_buffer.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::rill::formats_internal::CopyTree;
using ::rill::formats_internal::ListFiles;
using ::rill::formats_internal::WriteInPlace;

class CorruptionTest : public ::testing::TestWithParam<const char*> {
 protected:
  CorruptionTest()
      : path_(FreshPath(absl::StrCat("torchrl_corrupt_", GetParam()))) {
    RILL_EXPECT_OK(CopyTree(
        absl::StrCat("formats/torchrl/testdata/replay_buffer/", GetParam()),
        path_));
  }
  const std::string path_;
};

std::string Mutated(std::string text, const Rng& rng, uint64_t round) {
  static constexpr const char* kWords[] = {
      "-1",    "0",    "null", "[]", "{}",  "true",    "4611686018427387904",
      "1e308", "\"\"", "..",   "/",  "%2E", "[8,8,8]", "torch.int8",
      ",",     "}"};
  const size_t at = rng.UniformInt(round, 0, static_cast<int64_t>(text.size()));
  switch (rng.UniformInt(round, 1, 4)) {
    case 0:
      text[at] = static_cast<char>(rng.UniformInt(round, 2, 256));
      break;
    case 1:
      text.erase(at, rng.UniformInt(round, 2, 20) + 1);
      break;
    case 2:
      text.insert(at, kWords[rng.UniformInt(round, 2, 16)]);
      break;
    default: {  // A number, where there is one behind.
      const size_t from = text.find_first_of("0123456789", at);
      if (from == std::string::npos) break;
      const size_t to = text.find_first_not_of("0123456789.", from);
      text.replace(from, to - from, kWords[rng.UniformInt(round, 2, 16)]);
    }
  }
  return text;
}

TEST_P(CorruptionTest, DamagedJsonIsAnErrorOrABuffer) {
  const Rng rng(21);
  uint64_t round = 0;
  int accepted = 0;
  for (const std::string& file : ListFiles(path_)) {
    if (!absl::EndsWith(file, ".json")) continue;
    const std::string good = *ReadFile(JoinPath(path_, file));
    for (int i = 0; i < 40; ++i, ++round) {
      WriteInPlace(JoinPath(path_, file), Mutated(good, rng, round));
      const auto buffer = ReadTorchRlReplayBuffer(path_);
      if (!buffer.ok()) continue;
      EXPECT_LE(buffer->steps(), buffer->capacity);
      EXPECT_LT(buffer->cursor, buffer->capacity);
      RILL_EXPECT_OK(buffer->rows.Clone().status());  // Every byte is there.
      if (accepted++ % 100 != 0) continue;
      const std::string copy = FreshPath("torchrl_corrupt_copy");
      if (!WriteTorchRlReplayBuffer(*buffer, copy).ok()) continue;
      const auto again = ReadTorchRlReplayBuffer(copy);
      RILL_ASSERT_OK(again.status());
      RILL_EXPECT_OK(again->rows.CheckEqual(buffer->rows));
    }
    WriteInPlace(JoinPath(path_, file), good);
  }
  EXPECT_GE(round, 120);
}

// Ends, lengths of trajectories, rows of lists: numbers that others follow.
TEST_P(CorruptionTest, DamagedElementsAreAnErrorOrABuffer) {
  const Rng rng(22);
  uint64_t round = 0;
  for (const std::string& file : ListFiles(path_)) {
    if (!absl::EndsWith(file, ".memmap")) continue;
    const std::string good = *ReadFile(JoinPath(path_, file));
    for (int i = 0; i < 20; ++i, ++round) {
      std::string bad = good;
      for (uint32_t k = 0; k < 3; ++k) {
        const auto size = static_cast<int64_t>(bad.size());
        bad[rng.UniformInt(round, 2 * k, size)] =
            static_cast<char>(rng.UniformInt(round, 2 * k + 1, 256));
      }
      WriteInPlace(JoinPath(path_, file), bad);
      const auto buffer = ReadTorchRlReplayBuffer(path_);
      if (!buffer.ok()) continue;
      RILL_EXPECT_OK(buffer->rows.Clone().status());
    }
    WriteInPlace(JoinPath(path_, file), good);
  }
  EXPECT_GE(round, 20);
}

TEST_P(CorruptionTest, ShortFilesAreErrors) {
  for (const std::string& file : ListFiles(path_)) {
    if (!absl::EndsWith(file, ".memmap")) continue;
    // Ours needs one of the two trees.
    if (absl::EndsWith(file, "mintree.memmap")) continue;
    const std::string good = *ReadFile(JoinPath(path_, file));
    WriteInPlace(JoinPath(path_, file), good.substr(0, good.size() - 1));
    EXPECT_THAT(ReadTorchRlReplayBuffer(path_), IsDataLoss()) << file;
    WriteInPlace(JoinPath(path_, file), good);
  }
  RILL_EXPECT_OK(ReadTorchRlReplayBuffer(path_).status());
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CorruptionTest,
                         ::testing::Values("a", "b", "c", "c2", "d", "e", "f",
                                           "h", "k", "l"));

}  // namespace
}  // namespace rill

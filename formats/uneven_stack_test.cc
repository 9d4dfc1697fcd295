// SPDX-License-Identifier: Apache-2.0
// Episodes of different lengths as a lazy stack, alone and below a key, in all
// three forms: TorchRL's own files, and the same bytes from us.
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/memmap_options.h"
#include "rill/formats/tdz_archive.h"
#include "rill/formats/test_dicts.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::ExpectSameFiles;
using formats_internal::Fixture;
using formats_internal::Values;
using formats_internal::WriteInPlace;
using ::testing::ElementsAre;
using Mode = LoadMemmapOptions::Mode;

// Fixture O, and what P has at "data/episodes": 3, 1 and 4 steps.
LazyStack Episodes() {
  std::vector<TensorDict> members;
  for (const int64_t steps : {3, 1, 4}) {
    const auto number = static_cast<float>(members.size());
    TensorDict episode({steps});
    const Tensor obs = *Tensor::Empty(DType::kFloat32, {steps, 2});
    for (int64_t i = 0; i < 2 * steps; ++i) {
      obs.data<float>()[i] = 10 * number + static_cast<float>(i);
    }
    const Tensor reward = *Tensor::Empty(DType::kFloat32, {steps, 1});
    for (int64_t i = 0; i < steps; ++i) reward.data<float>()[i] = number;
    const Tensor done = *Tensor::Zeros(DType::kBool, {steps, 1});
    done.data<bool>()[steps - 1] = true;
    RILL_EXPECT_OK(episode.Set("obs", obs));
    RILL_EXPECT_OK(episode.Set("next/reward", reward));
    RILL_EXPECT_OK(episode.Set("next/done", done));
    members.push_back(std::move(episode));
  }
  return *LazyStack::Create(std::move(members));
}

TensorDict Below() {
  TensorDict dict({3});
  RILL_EXPECT_OK(dict.Set("id", Values<int64_t>({0, 1, 2}, {3})));
  RILL_EXPECT_OK(dict.Set("data/episodes", Episodes()));
  return dict;
}

void ExpectSameFile(const std::string& ours, const std::string& peers) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string want, ReadFile(peers));
  EXPECT_THAT(ReadFile(ours), IsOkAndHolds(want)) << peers;
}

TEST(UnevenStackTest, C14_PeersDirectoriesLoadAndAreSavedByteForByte) {
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LoadMemmapLazyStack(Fixture("O")));
  EXPECT_THAT(stack.batch_shape().sizes(), ElementsAre(3, -1));
  RILL_EXPECT_OK(stack.CheckEqual(Episodes()));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                            LoadMemmapDirectory(Fixture("P")));
  RILL_EXPECT_OK(dict.CheckEqual(Below()));
  const std::string again = FreshPath("again"), below = FreshPath("below");
  RILL_ASSERT_OK(SaveMemmapLazyStack(stack, again));
  ExpectSameFiles(again, Fixture("O"));
  RILL_ASSERT_OK(SaveMemmapDirectory(dict, below));
  ExpectSameFiles(below, Fixture("P"));
}

TEST(UnevenStackTest, C14_PeersArchivesLoadAndAreSavedForIt) {
  const std::string path = FreshPath("again.tdz");
  RILL_ASSERT_OK_AND_ASSIGN(LazyStack stack,
                            LoadTdzLazyStack(Fixture("O.tdz")));
  RILL_EXPECT_OK(stack.CheckEqual(Episodes()));
  RILL_ASSERT_OK(SaveTdzLazyStack(stack, path));
  RILL_ASSERT_OK_AND_ASSIGN(stack, LoadTdzLazyStack(path));
  RILL_EXPECT_OK(stack.CheckEqual(Episodes()));
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, LoadTdz(Fixture("P.tdz")));
  RILL_EXPECT_OK(dict.CheckEqual(Below()));
  RILL_ASSERT_OK(SaveTdz(dict, path));
  RILL_ASSERT_OK_AND_ASSIGN(dict, LoadTdz(path));
  RILL_EXPECT_OK(dict.CheckEqual(Below()));
}

TEST(UnevenStackTest, C14_PeersConsolidatedFilesLoadAndAreSavedByteForByte) {
  const std::string path = FreshPath("again.bin");
  for (const Mode mode : {Mode::kMapReadOnly, Mode::kCopy}) {
    RILL_ASSERT_OK_AND_ASSIGN(
        const LazyStack stack,
        LoadConsolidatedLazyStack(Fixture("O.bin"), {.mode = mode}));
    RILL_EXPECT_OK(stack.CheckEqual(Episodes()));
    RILL_ASSERT_OK(SaveConsolidatedLazyStack(stack, path));
    ExpectSameFile(path, Fixture("O.bin"));
    RILL_ASSERT_OK_AND_ASSIGN(
        const TensorDict dict,
        LoadConsolidated(Fixture("P.bin"), {.mode = mode}));
    RILL_EXPECT_OK(dict.CheckEqual(Below()));
    RILL_ASSERT_OK(SaveConsolidated(dict, path));
    ExpectSameFile(path, Fixture("P.bin"));
  }
}

// The forms allow more: another dimension, several that differ, no steps, and
// stacks in the members of stacks.
TEST(UnevenStackTest, OtherUnevenStacksGoRoundTrip) {
  const auto steps = [](const Shape& batch) {
    TensorDict dict(batch);
    RILL_EXPECT_OK(
        dict.Set("x", *Tensor::Zeros(DType::kInt16, batch.Concat({2}))));
    return dict;
  };
  TensorDict one = steps({1}), two = steps({2});
  RILL_ASSERT_OK(one.Set("turns", *LazyStack::Create({steps({3})})));
  RILL_ASSERT_OK(
      two.Set("turns", *LazyStack::Create({steps({0}), steps({5})})));
  const std::vector<LazyStack> stacks = {
      *LazyStack::Create({steps({3}), steps({1})}, 1),
      *LazyStack::Create({steps({3, 2, 5}), steps({1, 4, 5})}, 1),
      *LazyStack::Create({steps({0}), steps({2})}),
      *LazyStack::Create({one, two}),
  };
  const std::string directory = FreshPath("stack");
  const std::string archive = FreshPath("stack.tdz");
  const std::string file = FreshPath("stack.bin");
  for (const LazyStack& stack : stacks) {
    SCOPED_TRACE(stack.batch_shape().ToString());
    ASSERT_TRUE(stack.batch_shape().is_ragged());
    RILL_ASSERT_OK(SaveMemmapLazyStack(stack, directory));
    RILL_ASSERT_OK(SaveTdzLazyStack(stack, archive));
    RILL_ASSERT_OK(SaveConsolidatedLazyStack(stack, file));
    for (const auto& loaded :
         {LoadMemmapLazyStack(directory), LoadTdzLazyStack(archive),
          LoadConsolidatedLazyStack(file)}) {
      RILL_ASSERT_OK(loaded.status());
      EXPECT_EQ(loaded->batch_shape(), stack.batch_shape());
      RILL_EXPECT_OK(loaded->CheckEqual(stack));
    }
  }
}

TEST(UnevenStackTest, MembersOfDifferentRanksAreDataLoss) {
  const std::string directory = FreshPath("ranks");
  RILL_ASSERT_OK(SaveMemmapLazyStack(Episodes(), directory));
  TensorDict wide({1, 1});
  const std::string other = FreshPath("wide");
  RILL_ASSERT_OK(SaveMemmapDirectory(wide, other));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string meta,
                            ReadFile(JoinPath(other, "meta.json")));
  WriteInPlace(JoinPath(directory, "2/meta.json"), meta);
  EXPECT_THAT(LoadMemmapLazyStack(directory),
              IsDataLoss("batch shape of member 2: got [1, 1]"));
}

// Below a key the even dimensions must be those of the dictionary around.
TEST(UnevenStackTest, AnotherBatchAroundIsRefused) {
  const std::string directory = FreshPath("around");
  RILL_ASSERT_OK(SaveMemmapDirectory(Below(), directory));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string meta,
                            ReadFile(JoinPath(directory, "data/meta.json")));
  std::string changed = meta;
  changed.replace(changed.find("[3]"), 3, "[2]");
  WriteInPlace(JoinPath(directory, "data/meta.json"), changed);
  EXPECT_THAT(LoadMemmapDirectory(directory),
              IsInvalidArgument("got [3, -1], want one that starts with the "
                                "batch shape [2]"));
}

}  // namespace
}  // namespace rill

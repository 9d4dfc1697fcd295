// SPDX-License-Identifier: Apache-2.0
// Whatever is on the disk, loading gives a dictionary or a status: no crash, no
// hang, no allocation that the files do not back.
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/test_dicts.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using formats_internal::CopyTree;
using formats_internal::ListFiles;
using formats_internal::WithRandomEdits;
using formats_internal::WriteInPlace;

class CorruptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = FreshPath("corrupt");
    const std::string copy = FreshPath("peer");
    RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/A", copy));
    auto peers = LoadMemmapDirectory(copy);
    RILL_ASSERT_OK(peers);
    RILL_ASSERT_OK(peers->Set("note", NonTensor{"{\"a\":[1,2]}"}));
    RILL_ASSERT_OK(SaveMemmapDirectory(*peers, directory_));
  }

  // Loads and reads every byte.
  void LoadAndTouch(const std::string& what) {
    for (const auto mode : {LoadMemmapOptions::Mode::kMapReadOnly,
                            LoadMemmapOptions::Mode::kCopy}) {
      auto loaded = LoadMemmapDirectory(directory_, {mode});
      if (!loaded.ok()) {
        EXPECT_THAT(loaded.status().code(),
                    ::testing::AnyOf(absl::StatusCode::kDataLoss,
                                     absl::StatusCode::kInvalidArgument,
                                     absl::StatusCode::kNotFound))
            << what << ": " << loaded.status();
        ++refused_;
        continue;
      }
      ++loaded_;
      EXPECT_THAT(loaded->Clone(), IsOk()) << what;
    }
  }

  std::string directory_;
  int loaded_ = 0;
  int refused_ = 0;
};

TEST_F(CorruptionTest, EveryTruncationGivesAStatusOrTheRows) {
  for (const std::string& file : ListFiles(directory_)) {
    const std::string path = JoinPath(directory_, file);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
    const size_t step = whole.size() < 64 ? 1 : 7;
    for (size_t size = 0; size < whole.size(); size += step) {
      WriteInPlace(path, whole.substr(0, size));
      EXPECT_THAT(LoadMemmapDirectory(directory_), ::testing::Not(IsOk()))
          << file << " of " << size << " bytes";
    }
    WriteInPlace(path, whole);
  }
  RILL_EXPECT_OK(LoadMemmapDirectory(directory_));
}

TEST_F(CorruptionTest, ChangedMetaGivesAStatusOrADictionary) {
  const Rng rng(23);
  for (const std::string& file :
       {std::string("meta.json"), std::string("next/meta.json"),
        std::string("note/meta.json")}) {
    const std::string path = JoinPath(directory_, file);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
    const std::string alphabet = "0123456789[]{}\",:-.e\\\0\xFFtrueTensorDict";
    for (int round = 0; round < 250; ++round) {
      const std::string changed = WithRandomEdits(whole, alphabet, rng, round);
      WriteInPlace(path, changed);
      LoadAndTouch(changed);
    }
    WriteInPlace(path, whole);
  }
  // Both happened, so the test looked at both.
  EXPECT_GT(loaded_, 20);
  EXPECT_GT(refused_, 200);
}

TEST_F(CorruptionTest, FoldersInThePlaceOfFilesAndTheReverseAreFound) {
  for (const std::string& file : ListFiles(directory_)) {
    const std::string path = JoinPath(directory_, file);
    RILL_ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(path));
    RILL_ASSERT_OK(RemoveAll(path));
    RILL_ASSERT_OK(CreateDirectories(path));
    EXPECT_THAT(LoadMemmapDirectory(directory_), ::testing::Not(IsOk()));
    RILL_ASSERT_OK(RemoveAll(path));
    WriteInPlace(path, whole);
  }
  RILL_ASSERT_OK(RemoveAll(JoinPath(directory_, "next")));
  WriteInPlace(JoinPath(directory_, "next"), "x");
  EXPECT_THAT(LoadMemmapDirectory(directory_), IsDataLoss());
}

}  // namespace
}  // namespace rill

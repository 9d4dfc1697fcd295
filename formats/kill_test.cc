// SPDX-License-Identifier: Apache-2.0
// A process that saves new over old dies (SIGKILL) at every operation on the
// way: what stands there is exactly the old or the new dictionary.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/rng.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

struct Format {
  std::string name;
  absl::Status (*save)(const TensorDict&, const std::string&);
  absl::StatusOr<TensorDict> (*load)(const std::string&,
                                     const LoadMemmapOptions&);
};

// All of it says which version it is, so that a mixture is seen.
TensorDict Version(int64_t version) {
  TensorDict dict({3});
  const std::vector<int64_t> values(3, version);
  for (const absl::string_view key : {"version", "next/x", "y"}) {
    RILL_EXPECT_OK(dict.Set(key, *Tensor::From<int64_t>(values, {3})));
  }
  // Sizes change from version to version too.
  const std::vector<uint8_t> bytes(3 * (version % 5 + 1), version % 251);
  RILL_EXPECT_OK(
      dict.Set("z", *Tensor::From<uint8_t>(
                        bytes, {3, static_cast<int64_t>(bytes.size() / 3)})));
  RILL_EXPECT_OK(dict.Set("note", NonTensor{absl::StrCat(version)}));
  return dict;
}

class KillTest : public ::testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    root_ = FreshPath(absl::StrCat("kill_", GetParam().name));
    RILL_ASSERT_OK(CreateDirectories(root_));
    path_ = JoinPath(root_, "saved");
  }
  void TearDown() override { RILL_EXPECT_OK(RemoveAll(root_)); }

  absl::Status Save(int64_t version) const {
    return GetParam().save(Version(version), path_);
  }

  // The version that stands there; -1 after a failure.
  int64_t Load() const {
    const auto dict = GetParam().load(path_, {});
    EXPECT_THAT(dict, IsOk());
    if (!dict.ok()) return -1;
    const Tensor* const version = dict->Find("version");
    if (version == nullptr) return -1;
    RILL_EXPECT_OK(dict->CheckEqual(Version(version->data<int64_t>()[0])));
    EXPECT_THAT(
        dict->GetNonTensor("note"),
        IsOkAndHolds(NonTensor{absl::StrCat(version->data<int64_t>()[0])}));
    return version->data<int64_t>()[0];
  }

  // How many operations a save over an old one takes.
  int CountOperations() const {
    int count = 0;
    ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
      ++count;
      return absl::OkStatus();
    });
    RILL_EXPECT_OK(Save(0));
    return count;
  }

  // A child saves the versions behind `version` until it dies at operation
  // `kill_at` (from 1 on).
  void SaveInChildAndKill(int64_t version, int kill_at) const {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int count = 0;
      ScopedFaultHook hook([&](absl::string_view, absl::string_view) {
        if (++count == kill_at) kill(getpid(), SIGKILL);
        return absl::OkStatus();
      });
      while (Save(++version).ok()) {
      }
      _exit(1);
    }
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    ASSERT_TRUE(WIFSIGNALED(how));
    ASSERT_EQ(WTERMSIG(how), SIGKILL);
  }

  std::string root_, path_;
};

TEST_P(KillTest, AtEveryOperationTheOldOrTheNewStandsThere) {
  RILL_ASSERT_OK(Save(0));
  const int operations = CountOperations();
  ASSERT_GE(operations, 6);
  int old_stood = 0;
  int new_stood = 0;
  int64_t version = Load();
  for (int kill_at = 1; kill_at <= operations; ++kill_at) {
    SaveInChildAndKill(version, kill_at);
    const int64_t now = Load();
    ASSERT_TRUE(now == version || now == version + 1)
        << kill_at << ": got " << now << " after " << version;
    ++(now == version ? old_stood : new_stood);
    version = now;
  }
  EXPECT_GE(old_stood, 5);
  EXPECT_GE(new_stood, 1);  // The last one: the directory's sync.
}

TEST_P(KillTest, InALongRunOfSavesNoneIsLostAndNoneIsMixed) {
  RILL_ASSERT_OK(Save(0));
  const int operations = CountOperations();
  const Rng rng(17);
  int64_t version = Load();
  for (int round = 0; round < 40; ++round) {
    const int kill_at =
        1 + static_cast<int>(rng.UniformInt(round, 0, 4 * operations));
    SaveInChildAndKill(version, kill_at);
    const int64_t done = version + (kill_at - 1) / operations;
    const int64_t now = Load();
    ASSERT_TRUE(now == done || now == done + 1)
        << kill_at << ": got " << now << ", want " << done << " or the next";
    version = now;
  }
  // Files that the dead process left beside are in nobody's way.
  RILL_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(root_));
  EXPECT_GT(names.size(), 1);
  RILL_EXPECT_OK(Save(version));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, KillTest,
    ::testing::Values(
        Format{"directory", SaveMemmapDirectory, LoadMemmapDirectory},
        Format{"tdz", SaveTdz, LoadTdz},
        Format{"consolidated", SaveConsolidated, LoadConsolidated}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace rill

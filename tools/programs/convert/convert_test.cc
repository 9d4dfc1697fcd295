// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/convert/convert.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/manifest.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/saved.h"

namespace rill::convert {
namespace {

using formats_internal::CopyTree;
using formats_internal::ListFiles;
using formats_internal::WriteInPlace;
using inspect::Form;
using inspect::OpenSaved;
using inspect::Saved;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ConvertTest : public ::testing::Test {
 protected:
  void SetUp() override {
    work_ = FreshPath("convert");
    RILL_ASSERT_OK(CreateDirectories(work_));
    RILL_ASSERT_OK(
        CopyTree("formats/testdata/tensordict/A", JoinPath(work_, "in")));
  }

  std::string Path(absl::string_view name) const {
    return JoinPath(work_, name);
  }
  absl::Status Run(absl::string_view in, absl::string_view out, Form to) {
    return Convert(Path(in), Path(out), to).status();
  }

  std::string work_;
};

TEST_F(ConvertTest, Example) {
  EXPECT_THAT(Convert(Path("in"), Path("steps.tdz"), Form::kTdz),
              IsOkAndHolds(AllOf(HasSubstr("(.tdz archive) from"),
                                 HasSubstr("batch [3], 10 tensors, 114 bytes"),
                                 HasSubstr("wrote"))));
}

TEST_F(ConvertTest, RoundTripThroughEveryFormKeepsEveryByte) {
  RILL_ASSERT_OK(Run("in", "1.tdz", Form::kTdz));
  RILL_ASSERT_OK(Run("1.tdz", "2.bin", Form::kConsolidated));
  RILL_ASSERT_OK(Run("2.bin", "3", Form::kDirectory));
  const auto files = ListFiles(Path("in"));
  EXPECT_EQ(ListFiles(Path("3")), files);
  for (const std::string& file : files) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string before,
                              ReadFile(JoinPath(Path("in"), file)));
    EXPECT_THAT(ReadFile(JoinPath(Path("3"), file)), IsOkAndHolds(before));
  }
}

TEST_F(ConvertTest, LazyStackKeepsItsMembersApart) {
  RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/E", Path("stack")));
  EXPECT_THAT(Convert(Path("stack"), Path("stack.tdz"), Form::kTdz),
              IsOkAndHolds(HasSubstr("lazy stack of batch [2], 2 dict")));
  RILL_ASSERT_OK(Run("stack.tdz", "stack.bin", Form::kConsolidated));
  RILL_ASSERT_OK(Run("stack.bin", "again", Form::kDirectory));
  EXPECT_EQ(ListFiles(Path("again")), ListFiles(Path("stack")));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved want, OpenSaved(Path("stack")));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved got, OpenSaved(Path("again")));
  ASSERT_TRUE(want.stack && got.stack);
  RILL_EXPECT_OK(got.stack->CheckEqual(*want.stack));
}

// Episodes of different lengths, alone and below a key.
TEST_F(ConvertTest, UnevenStacksKeepTheirLengths) {
  RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/O", Path("stack")));
  RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/P", Path("below")));
  EXPECT_THAT(Convert(Path("stack"), Path("stack.tdz"), Form::kTdz),
              IsOkAndHolds(HasSubstr("lazy stack of batch [3, -1], 3 dict")));
  for (const std::string name : {"stack", "below"}) {
    RILL_ASSERT_OK(Run(name, name + ".tdz", Form::kTdz));
    RILL_ASSERT_OK(Run(name + ".tdz", name + ".bin", Form::kConsolidated));
    RILL_ASSERT_OK(Run(name + ".bin", name + "_again", Form::kDirectory));
    EXPECT_EQ(ListFiles(Path(name + "_again")), ListFiles(Path(name)));
    for (const std::string& file : ListFiles(Path(name))) {
      RILL_ASSERT_OK_AND_ASSIGN(const std::string before,
                                ReadFile(JoinPath(Path(name), file)));
      EXPECT_THAT(ReadFile(JoinPath(Path(name + "_again"), file)),
                  IsOkAndHolds(before));
    }
  }
}

TEST_F(ConvertTest, ReplayBufferOfTorchRlIsRefusedAndSaysWhatToDo) {
  RILL_ASSERT_OK(CreateDirectories(Path("buffer")));
  WriteInPlace(Path("buffer/buffer_metadata.json"), "{}");
  EXPECT_THAT(Run("buffer", "out", Form::kDirectory),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want its rows alone")));
}

TEST_F(ConvertTest, EveryFormBecomesEveryForm) {
  const std::pair<const char*, Form> forms[] = {
      {"d", Form::kDirectory},
      {"t.tdz", Form::kTdz},
      {"c.bin", Form::kConsolidated},
  };
  RILL_ASSERT_OK_AND_ASSIGN(const Saved want, OpenSaved(Path("in")));
  for (const auto& [from, from_form] : forms) {
    RILL_ASSERT_OK(Run("in", from, from_form));
    for (const auto& [to, to_form] : forms) {
      const std::string out = absl::StrCat("from_", from, "_to_", to);
      RILL_ASSERT_OK(Run(from, out, to_form));
      RILL_ASSERT_OK_AND_ASSIGN(const Saved got, OpenSaved(Path(out)));
      EXPECT_EQ(got.form, to_form);
      RILL_EXPECT_OK(got.dict.CheckEqual(want.dict)) << out;
    }
  }
}

TEST_F(ConvertTest, WhatItWroteIsReplacedAndNothingElse) {
  WriteInPlace(Path("notes.tdz"), "my notes");
  RILL_ASSERT_OK(CreateDirectories(Path("home")));
  WriteInPlace(Path("home/letter"), "dear");
  RILL_ASSERT_OK(Run("in", "a.tdz", Form::kTdz));
  RILL_ASSERT_OK(Run("in", "a.bin", Form::kConsolidated));
  RILL_ASSERT_OK(Run("in", "a", Form::kDirectory));
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("name another"));
  EXPECT_THAT(Run("in", "notes.tdz", Form::kTdz), refused);
  EXPECT_THAT(Run("in", "home", Form::kDirectory), refused);
  EXPECT_THAT(Run("in", "home", Form::kTdz), refused);
  EXPECT_THAT(Run("in", "a.bin", Form::kTdz), refused);
  EXPECT_THAT(Run("in", "a.tdz", Form::kConsolidated), refused);
  EXPECT_THAT(Run("in", "a.tdz", Form::kDirectory), refused);
  EXPECT_THAT(Run("in", "a", Form::kConsolidated), refused);
  EXPECT_THAT(ReadFile(Path("notes.tdz")), IsOkAndHolds("my notes"));
  EXPECT_THAT(ReadFile(Path("home/letter")), IsOkAndHolds("dear"));

  EXPECT_THAT(Convert(Path("in"), Path("a.tdz"), Form::kTdz),
              IsOkAndHolds(HasSubstr("replaced")));
  RILL_EXPECT_OK(Run("in", "a.bin", Form::kConsolidated));
  RILL_EXPECT_OK(Run("a.tdz", "a", Form::kDirectory));
}

TEST_F(ConvertTest, ReplacingADirectoryDoesNotTakeItsSourceAway) {
  EXPECT_THAT(Run("in/next", "in", Form::kDirectory),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("none lies in the other")));
  EXPECT_THAT(Run("in", "in/x.tdz", Form::kTdz),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Run("in", "in/../in", Form::kDirectory),
              StatusIs(absl::StatusCode::kInvalidArgument));
  RILL_EXPECT_OK(OpenSaved(Path("in")));
  RILL_EXPECT_OK(Run("in", "in2", Form::kDirectory));  // Only a common prefix.
}

TEST_F(ConvertTest, WhatWouldBeLostIsRefused) {
  RILL_ASSERT_OK(CopyTree("formats/testdata/tensordict/D", Path("pickled")));
  EXPECT_THAT(Run("pickled", "out.tdz", Form::kTdz),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"obj\""), HasSubstr("lost"))));
  RILL_ASSERT_OK(CreateDirectories(Path("run")));
  RILL_ASSERT_OK(CopyTree(Path("in"), Path("run/rows")));
  RILL_ASSERT_OK(WriteManifest({.kind = "storage"}, Path("run")));
  EXPECT_THAT(
      Run("run", "out.tdz", Form::kTdz),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run/rows")));
  EXPECT_FALSE(PathExists(Path("out.tdz")));
}

TEST(FormTest, EndingsAndNames) {
  EXPECT_THAT(FormFromPath("a/b.c/d"), IsOkAndHolds(Form::kDirectory));
  EXPECT_THAT(FormFromPath("a/b/"), IsOkAndHolds(Form::kDirectory));
  EXPECT_THAT(FormFromPath("a.tdz"), IsOkAndHolds(Form::kTdz));
  EXPECT_THAT(FormFromPath("a.bin"), IsOkAndHolds(Form::kConsolidated));
  EXPECT_THAT(FormFromPath("a.td"), IsOkAndHolds(Form::kConsolidated));
  EXPECT_THAT(FormFromPath("a.zip"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--to")));
  EXPECT_THAT(FormFromName("consolidated"), IsOkAndHolds(Form::kConsolidated));
  EXPECT_THAT(FormFromName("zip"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace rill::convert

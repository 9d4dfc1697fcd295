// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/base/state/saved_state.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/manifest.h"
#include "rill/formats/memmap_directory.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"
#include "rill/tools/programs/inspect/json_report.h"
#include "rill/tools/programs/inspect/saved.h"
#include "rill/tools/programs/inspect/text_report.h"

namespace rill::inspect {
namespace {

using formats_internal::CopyTree;
using formats_internal::WriteInPlace;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor Floats(absl::Span<const float> values, const Shape& shape) {
  return *Tensor::From<float>(values, shape);
}

// Files of TorchRL's; loading refuses the links that a test's data may be.
std::string PeerDirectory(absl::string_view name) {
  const std::string path = FreshPath(name);
  RILL_EXPECT_OK(
      CopyTree(absl::StrCat("formats/testdata/tensordict/", name), path));
  return path;
}

std::string PeerJson(absl::string_view name, bool values) {
  const auto saved = OpenSaved(PeerDirectory(name));
  EXPECT_TRUE(saved.ok()) << saved.status();
  if (!saved.ok()) return "";
  return *JsonReport(*saved, {.values = values});
}

TEST(JsonReportTest, Example) {
  TensorDict dict({1});
  RILL_ASSERT_OK(dict.Set("next/reward", Floats({0.5f}, {1, 1})));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json,
                            JsonReport(dict, {.values = true}));
  EXPECT_EQ(json,
            R"({"batch_shape":[1],"leaves":{"next/reward":{"dtype":"float32",)"
            R"("shape":[1,1],"values":[0.5]}}})");
}

TEST(JsonReportTest, ShowsWhatThePeerWrote) {
  EXPECT_EQ(
      PeerJson("A", /*values=*/true),
      R"({"batch_shape":[3],"leaves":{)"
      R"("obs":{"dtype":"float32","shape":[3,2],"values":[0,1,2,3,4,5]},)"
      R"("next/done":{"dtype":"bool","shape":[3,1],)"
      R"("values":[false,false,true]},)"
      R"("next/reward":{"dtype":"float64","shape":[3,1],"values":[0,1,2]},)"
      R"("u8":{"dtype":"uint8","shape":[3],"values":[0,1,2]},)"
      R"("h":{"dtype":"float16","shape":[3],"values":[1,1,1]},)"
      R"("bf":{"dtype":"bfloat16","shape":[3],"values":[1,1,1]},)"
      R"("i64":{"dtype":"int64","shape":[3],"values":[0,1,2]},)"
      R"("empty":{"dtype":"float32","shape":[3,0],"values":[]},)"
      R"("a\\/b c":{"dtype":"float32","shape":[3],"values":[1,1,1]},)"
      R"("a.b":{"dtype":"float32","shape":[3],"values":[1,1,1]}}})");
  EXPECT_THAT(PeerJson("A", /*values=*/false),
              AllOf(HasSubstr(R"("obs":{"dtype":"float32","shape":[3,2]},)"),
                    Not(HasSubstr("values"))));
}

TEST(JsonReportTest, OtherEntriesHaveMembersOfTheirOwn) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("x", Floats({1, 2}, {2})));
  RILL_ASSERT_OK(dict.Set("info/task", NonTensor{R"(["a",{"b":null}])"}));
  RILL_ASSERT_OK(dict.Set("grid", TensorDict({2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(dict));
  EXPECT_EQ(json, R"({"batch_shape":[2],"leaves":{"x":{"dtype":"float32",)"
                  R"("shape":[2]}},"dicts":{"grid":[2,3]},)"
                  R"("non_tensors":{"info/task":["a",{"b":null}]}})");
}

// Two values, a lazy stack of different shapes, and ragged rows.
TensorDict RareEntries() {
  TensorDict dict({2});
  RILL_EXPECT_OK(
      dict.Set("s", *NonTensorStack::Create({2}, {"\"a\"", "[null]"})));
  TensorDict one, two;
  RILL_EXPECT_OK(one.Set("x", Floats({1}, {1})));
  RILL_EXPECT_OK(two.Set("x", Floats({2, 3}, {2})));
  RILL_EXPECT_OK(dict.Set("in/l", *LazyStack::Create({one, two})));
  RILL_EXPECT_OK(dict.Set(
      "r", *RaggedTensor::FromRows({Floats({1, 2}, {2}), Floats({3}, {1})})));
  return dict;
}

TEST(JsonReportTest, RareEntriesHaveMembersOfTheirOwn) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json,
                            JsonReport(RareEntries(), {.values = true}));
  EXPECT_EQ(
      json,
      R"({"batch_shape":[2],"leaves":{},)"
      R"("stacks":{"s":{"shape":[2],"values":["a",[null]]}},)"
      R"("lazy_stacks":{"in/l":{"batch_shape":[2],"stack_dim":0,"members":[)"
      R"({"batch_shape":[],"leaves":{"x":{"dtype":"float32","shape":[1],)"
      R"("values":[1]}}},)"
      R"({"batch_shape":[],"leaves":{"x":{"dtype":"float32","shape":[2],)"
      R"("values":[2,3]}}}]}},)"
      R"("ragged":{"r":{"dtype":"float32","shapes":[[2],[1]],)"
      R"("values":[1,2,3]}}})");
}

TEST(TextReportTest, RareEntriesAreRowsToo) {
  Saved saved;
  saved.dict = RareEntries();
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TextReport(saved, "d", {.values = true}));
  EXPECT_EQ(text, R"(d: memmap directory, batch [2], 0 tensors, 24 bytes
  key        dtype           shape   bytes  min  max  mean  NaN  first
  s          JSON            [2]     10     "a" [null]
  in/l[]                     [2]            a lazy stack along dimension 0
  in/l[0]/x  float32         [1]     4      1    1    1     0    1
  in/l[1]/x  float32         [2]     8      2    3    2.5   0    2 3
  r          ragged float32  2 rows  12     1    3    2     0    1 2 3
)");
}

TEST(JsonReportTest, DimensionsMayHaveNames) {
  TensorDict dict({2, 3});
  RILL_ASSERT_OK(dict.SetDimNames({"", "time"}));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(dict));
  EXPECT_EQ(json,
            R"({"batch_shape":[2,3],"leaves":{},"dim_names":[null,"time"]})");
}

TEST(JsonReportTest, EmptyDictionaryKeepsItsLeaves) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(TensorDict()));
  EXPECT_EQ(json, R"({"batch_shape":[],"leaves":{}})");
}

class RillDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    top_ = FreshPath("checkpoint");
    TensorDict rows({2});
    RILL_ASSERT_OK(rows.Set("x", Floats({1, 2}, {2})));
    const std::string inner = JoinPath(top_, "replay");
    RILL_ASSERT_OK(CreateDirectories(JoinPath(inner, "a")));
    RILL_ASSERT_OK(SaveMemmapDirectory(rows, JoinPath(inner, "a/rows")));
    WriteInPlace(JoinPath(inner, "sampler.state"), "12345");
    RILL_ASSERT_OK(WriteManifest({.kind = "replay_buffer"}, inner));
    Manifest manifest{.kind = "run", .version = 3};
    manifest.SetInt("step", 70);
    RILL_ASSERT_OK(WriteManifest(manifest, top_));
  }

  std::string top_;
};

TEST_F(RillDirectoryTest, JsonShowsManifestsFilesAndPartsBelow) {
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(top_));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(saved));
  EXPECT_EQ(json,
            R"({"manifest":{"kind":"run","version":3,"fields":{"step":"70"}},)"
            R"("files":{},"parts":{"replay":{"manifest":{)"
            R"("kind":"replay_buffer","version":1,"fields":{}},)"
            R"("files":{"sampler.state":5},"parts":{"a/rows":)"
            R"({"batch_shape":[2],"leaves":{"x":{"dtype":"float32",)"
            R"("shape":[2]}}}}}}})");
}

TEST_F(RillDirectoryTest, TextShowsThemByPath) {
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(top_));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "run"));
  EXPECT_EQ(text, R"(run: directory of Rill, kind run, version 3
  step  =  70

run/replay: directory of Rill, kind replay_buffer, version 1
  sampler.state    5 bytes

run/replay/a/rows: memmap directory, batch [2], 1 tensor, 8 bytes
  key  dtype    shape  bytes
  x    float32  [2]    8
)");
}

TEST_F(RillDirectoryTest, ChangedFileBelowIsToldAndTheRestIsShown) {
  WriteInPlace(JoinPath(top_, "replay/sampler.state"), "12346");
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(top_));
  EXPECT_TRUE(saved.is_damaged());
  EXPECT_THAT(saved.damage, ElementsAre(AllOf(HasSubstr("sampler.state"),
                                              HasSubstr("CRC32C: got "))));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "run"));
  EXPECT_THAT(text, AllOf(HasSubstr("  damaged  \""),
                          HasSubstr("run/replay/a/rows: memmap directory")));
}

TEST_F(RillDirectoryTest, PartThatDoesNotLoadIsToldAndTheRestIsShown) {
  WriteInPlace(JoinPath(top_, "replay/a/rows/x.memmap"), "short");
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(top_));
  EXPECT_TRUE(saved.is_damaged());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "run"));
  EXPECT_THAT(text, AllOf(HasSubstr("x.memmap"), HasSubstr("sampler.state")));
}

TEST(TextReportTest, ValuesAreSummarised) {
  Saved saved;
  saved.dict = TensorDict({2});
  RILL_ASSERT_OK(saved.dict.Set("next/obs", Floats({1, 2, 3, 6}, {2, 2})));
  RILL_ASSERT_OK(saved.dict.Set("note", NonTensor{"\"x\""}));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TextReport(saved, "d", {.values = true}));
  EXPECT_EQ(text, R"(d: memmap directory, batch [2], 1 tensor, 16 bytes
  key       dtype    shape   bytes  min  max  mean  NaN  first
  next/obs  float32  [2, 2]  16     1    6    3     0    1 2 3 6
  note      JSON             3      "x"
)");
}

TEST(TextReportTest, HostileNamesStayInTheirLine) {
  Saved saved;
  RILL_ASSERT_OK(saved.dict.Set("a\n\x1b[2J", Floats({1}, {1})));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "d\r"));
  EXPECT_THAT(text, AllOf(HasSubstr("a\\x0a\\x1b[2J"), HasSubstr("d\\x0d"),
                          Not(HasSubstr("\x1b"))));
}

TEST(OpenSavedTest, WhatIsNotSavedSaysWhatIsKnown) {
  EXPECT_THAT(OpenSaved(FreshPath("none")),
              StatusIs(absl::StatusCode::kNotFound));
  const std::string path = FreshPath("other");
  RILL_ASSERT_OK(CreateDirectories(path));
  EXPECT_THAT(OpenSaved(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("rill.json")));
  WriteInPlace(JoinPath(path, "notes.txt"), "hello");
  EXPECT_THAT(OpenSaved(JoinPath(path, "notes.txt")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("memmap directory")));
}

TEST(OpenSavedTest, ArchivesAndConsolidatedFilesShowTheSame) {
  const std::string directory = PeerDirectory("A");
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(directory));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved archive,
                            OpenSaved("formats/testdata/tensordict/I.tdz"));
  EXPECT_EQ(archive.form, Form::kTdz);
  RILL_EXPECT_OK(archive.dict.CheckEqual(saved.dict));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved consolidated,
                            OpenSaved("formats/testdata/tensordict/J.bin"));
  EXPECT_EQ(consolidated.form, Form::kConsolidated);
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all_but_one,
                            saved.dict.Exclude({"empty"}));
  RILL_EXPECT_OK(consolidated.dict.CheckEqual(all_but_one));
}

TEST(OpenSavedTest, ArchiveIsKnownByItsBytesOrElseByItsName) {
  RILL_ASSERT_OK_AND_ASSIGN(const std::string bytes,
                            ReadFile("formats/testdata/tensordict/I.tdz"));
  const std::string path = FreshPath("archive");
  WriteInPlace(path, bytes);
  EXPECT_THAT(FormOf(path), IsOkAndHolds(Form::kTdz));
  const std::string broken = FreshPath("broken.tdz");
  WriteInPlace(broken, "x");
  EXPECT_THAT(OpenSaved(broken), StatusIs(absl::StatusCode::kDataLoss));
}

TEST(OpenSavedTest, PicklesAreRefusedByKeyAndTheRestIsShown) {
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(PeerDirectory("D")));
  ASSERT_FALSE(saved.refused.empty());
  EXPECT_TRUE(saved.dict.Contains("x"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(saved));
  EXPECT_THAT(json, HasSubstr(R"("refused":{")"));
  EXPECT_THAT(json, HasSubstr(R"("obj":")"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "D"));
  EXPECT_THAT(text, HasSubstr("  refused: obj: "));
}

TEST(OpenSavedTest, LazyStackMayStandAlone) {
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(PeerDirectory("E")));
  ASSERT_TRUE(saved.stack.has_value());
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(saved));
  EXPECT_EQ(json, R"({"batch_shape":[2],"stack_dim":0,"members":[)"
                  R"({"batch_shape":[],"leaves":{"x":{"dtype":"float32",)"
                  R"("shape":[2]}}},)"
                  R"({"batch_shape":[],"leaves":{"x":{"dtype":"float32",)"
                  R"("shape":[3]},"y":{"dtype":"float32","shape":[1]}}}]})");
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "E"));
  EXPECT_EQ(text,
            R"(E: memmap directory, lazy stack of batch [2] along dimension 0
  key    dtype    shape  bytes
  [0]/x  float32  [2]    8
  [1]/x  float32  [3]    12
  [1]/y  float32  [1]    4
)");
}

TEST(OpenSavedTest, LazyStackOfDifferentBatchShapesIsShownInEveryForm) {
  for (const std::string& path :
       {PeerDirectory("O"), std::string("formats/testdata/tensordict/O.tdz"),
        std::string("formats/testdata/tensordict/O.bin")}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(path));
    RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(saved));
    EXPECT_THAT(json, HasSubstr(R"({"batch_shape":[3,-1],"stack_dim":0,)"
                                R"("members":[{"batch_shape":[3],"leaves":)"
                                R"({"obs":{"dtype":"float32","shape":[3,2]})"));
    RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(saved, "O"));
    EXPECT_THAT(text, HasSubstr("lazy stack of batch [3, -1] along dimension"));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const Saved below, OpenSaved(PeerDirectory("P")));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json, JsonReport(below));
  EXPECT_THAT(json, HasSubstr(R"("lazy_stacks":{"data/episodes":)"
                              R"({"batch_shape":[3,-1],"stack_dim":0,)"));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text, TextReport(below, "P"));
  EXPECT_THAT(text, HasSubstr("  data/episodes[]"));
  EXPECT_THAT(text, HasSubstr("[3, -1]"));
}

TEST(OpenSavedTest, LazyStackOfLazyStacksIsRefusedAsWhatItIs) {
  const std::string stacks = FreshPath("stack_of_stacks");
  for (const std::string& folder : {stacks, JoinPath(stacks, "0")}) {
    RILL_ASSERT_OK(CreateDirectories(folder));
    WriteInPlace(
        JoinPath(folder, "meta.json"),
        R"({"_type":"<class 'tensordict._lazy.LazyStackedTensorDict'>",)"
        R"("stack_dim":0})");
  }
  EXPECT_THAT(OpenSaved(stacks),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got a lazy stack of what is refused")));
}

TEST(OpenSavedTest, TruncatedLeafIsDataLossWithTheFile) {
  const std::string path = PeerDirectory("A");
  WriteInPlace(JoinPath(path, "obs.memmap"), "short");
  EXPECT_THAT(OpenSaved(path),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("obs.memmap")));
}

SavedState CountersState() {
  SavedState inner("Prioritized", 1);
  inner.Set("alpha", 0.5);
  SavedState state("PrioritizedSampler", 2);
  state.Set("slots", std::vector<int64_t>{3, 4});
  state.SetPart("selector", inner);
  return state;
}

TEST(StateReportTest, AStateIsShownAsADictionary) {
  const std::string path = FreshPath("sampler.state");
  RILL_ASSERT_OK(WriteFileAtomically(path, CountersState().Encode()));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(path));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string text,
                            TextReport(saved, "s", {.values = true}));
  EXPECT_THAT(text, AllOf(HasSubstr("s: saved state, batch [], 2 tensors"),
                          HasSubstr("PrioritizedSampler"),
                          HasSubstr("selector/alpha"), HasSubstr("3 4")));
  RILL_ASSERT_OK_AND_ASSIGN(const std::string json,
                            JsonReport(saved, {.values = true}));
  EXPECT_THAT(json, HasSubstr(R"("selector/type":"Prioritized")"));
}

TEST(StateReportTest, StatesOfADirectoryAreItsParts) {
  const std::string path = FreshPath("buffer");
  RILL_ASSERT_OK(CreateDirectories(path));
  RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "sampler.state"),
                                     CountersState().Encode()));
  RILL_ASSERT_OK(WriteFileAtomically(JoinPath(path, "old.state"), "RILLSMPL"));
  RILL_ASSERT_OK(WriteManifest({.kind = "some", .version = 1}, path));
  RILL_ASSERT_OK_AND_ASSIGN(const Saved saved, OpenSaved(path));
  EXPECT_FALSE(saved.is_damaged());
  EXPECT_EQ(saved.parts.at("sampler.state").form, Form::kState);
  EXPECT_EQ(saved.files.at("old.state"), 8);
}

TEST(StateReportTest, ADamagedStateIsSaid) {
  const std::string path = FreshPath("sampler.state");
  std::string bytes = CountersState().Encode();
  bytes.back() ^= 1;
  RILL_ASSERT_OK(WriteFileAtomically(path, bytes));
  EXPECT_THAT(OpenSaved(path), StatusIs(absl::StatusCode::kDataLoss));
}

}  // namespace
}  // namespace rill::inspect

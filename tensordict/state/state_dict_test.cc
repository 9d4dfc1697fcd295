// SPDX-License-Identifier: Apache-2.0
#include "rill/tensordict/state/state_dict.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

absl::StatusOr<TensorDict> Example() {
  StateWriter state("TimeLimit", /*version=*/1);
  state.Set("limit", int64_t{500});
  state.List<int64_t>("steps", {3, 4}, {2});
  RILL_ASSIGN_OR_RETURN(const TensorDict dict, std::move(state).Finish());
  return dict;
}

TEST(StateDictTest, Example) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, Example());
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                            StateReader::Open("TimeLimit", 1, dict));
  EXPECT_EQ(state.version(), 1);
  EXPECT_THAT(state.Get<int64_t>("limit"), IsOkAndHolds(500));
  EXPECT_THAT(state.CheckNothingElse(),
              IsFailedPrecondition("\"steps\": got an"));
  EXPECT_THAT(*state.List<int64_t>("steps"), ElementsAre(3, 4));
  RILL_EXPECT_OK(state.CheckNothingElse());
}

TEST(StateDictTest, EveryKindOfEntry) {
  StateWriter state("Part", 2, {2});
  state.List<bool>("flags", {1, 0}, {2, 1});
  state.List<double>("values", {0.5, 1.5}, {2});
  state.List<uint64_t>("seed", {7, UINT64_MAX}, {2, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, std::move(state).Finish());
  EXPECT_EQ(dict.batch_shape(), Shape({2}));
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader read,
                            StateReader::Open("Part", 2, dict));
  EXPECT_THAT(*read.List<bool>("flags", Shape({2, 1})), ElementsAre(1, 0));
  EXPECT_THAT(*read.List<double>("values"), ElementsAre(0.5, 1.5));
  EXPECT_THAT(*read.List<uint64_t>("seed", Shape({2, 1})),
              ElementsAre(7, UINT64_MAX));

  StateWriter outer("Outer", 1);
  outer.Entry("inner", Example());
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict all, std::move(outer).Finish());
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader whole,
                            StateReader::Open("Outer", 1, all));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict* const inner, whole.Dict("inner"));
  RILL_EXPECT_OK(StateReader::Open("TimeLimit", 1, *inner));
}

TEST(StateDictTest, TextsReadBack) {
  for (const char* text : {"", "none", R"(["a\\b", "c"])"}) {
    StateWriter writer("Part", 1);
    writer.Entry<NonTensor>("text", JsonString(text));
    writer.Entry<NonTensor>("number", NonTensor{"1"});
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict,
                              std::move(writer).Finish());
    RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                              StateReader::Open("Part", 1, dict));
    EXPECT_THAT(state.Text("text"), IsOkAndHolds(std::string(text)));
    EXPECT_THAT(state.Text("number"),
                IsFailedPrecondition("\"number\": got 1, want a text"));
  }
}

TEST(StateDictTest, ListsMayHaveGaps) {
  StateWriter writer("Part", 1);
  writer.List<int64_t>("all", {1, 2, 3, 4}, {2, 2});
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, std::move(writer).Finish());
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor all, dict.Get("all"));
  RILL_ASSERT_OK_AND_ASSIGN(Tensor column, all.Select(1, 0));
  RILL_ASSERT_OK(dict.Set("column", std::move(column)));
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                            StateReader::Open("Part", 1, dict));
  EXPECT_THAT(*state.List<int64_t>("column"), ElementsAre(1, 3));
}

TEST(StateDictTest, ErrorsNameTypeEntryGotAndWanted) {
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, Example());
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                            StateReader::Open("TimeLimit", 1, dict));
  EXPECT_THAT(state.Get<int64_t>("none"),
              IsFailedPrecondition("TimeLimit::LoadState: \"none\": got none, "
                                   "want int64[]; load what"));
  EXPECT_THAT(state.Get<bool>("limit"),
              IsFailedPrecondition("\"limit\": got int64[], want bool[]"));
  EXPECT_THAT(state.List<int64_t>("steps", Shape({3})),
              IsFailedPrecondition("\"steps\": got int64[2], want int64[3]"));
  EXPECT_THAT(state.List<int64_t>("limit"),
              IsFailedPrecondition("got int64[], want int64 of rank 1"));
  EXPECT_THAT(state.Dict("steps"), IsFailedPrecondition("want a dictionary"));
}

TEST(StateDictTest, TypeAndVersionAreChecked) {
  RILL_ASSERT_OK_AND_ASSIGN(TensorDict dict, Example());
  EXPECT_THAT(StateReader::Open("FrameSkip", 1, dict),
              IsFailedPrecondition("FrameSkip::LoadState: got the state of "
                                   "\"TimeLimit\" version 1, want that of "
                                   "\"FrameSkip\" version <= 1"));
  RILL_ASSERT_OK(dict.Set("version", NonTensor{"2"}));
  EXPECT_THAT(StateReader::Open("TimeLimit", 1, dict),
              IsFailedPrecondition("version 2, want"));
  RILL_ASSERT_OK(dict.Set("version", NonTensor{"[]"}));
  EXPECT_THAT(StateReader::Open("TimeLimit", 1, dict), IsFailedPrecondition());
}

TEST(StateDictTest, AStateWithoutATypeIsOfVersion0) {
  const TensorDict dict;
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader state,
                            StateReader::Open("TimeLimit", 1, dict));
  EXPECT_EQ(state.version(), 0);
}

TEST(StateDictTest, AnEntryDoesNotTakeThePlaceOfTypeOrVersion) {
  for (const char* key : {"type", "version"}) {
    StateWriter state("Learner", /*version=*/1);
    state.Set(key, int64_t{7});
    EXPECT_THAT(std::move(state).Finish(), IsInvalidArgument(key));
    SavedState without_tensors("Learner", /*version=*/1);
    without_tensors.Set(key, int64_t{7});
    EXPECT_THAT(ToDict(without_tensors), IsInvalidArgument(key));
  }
}

TEST(StateDictTest, TheFirstErrorOfAWriterComesBack) {
  StateWriter state("Part", 1);
  state.Entry<TensorDict>("inner", absl::UnimplementedError("cannot"));
  state.List<int64_t>("steps", {1}, {2});
  EXPECT_THAT(std::move(state).Finish(),
              StatusIs(absl::StatusCode::kUnimplemented));
  StateWriter other("Part", 1);
  other.List<int64_t>("steps", {1}, {2});
  EXPECT_THAT(std::move(other).Finish(),
              IsInternal("\"steps\": got 1, want 2"));
}

TEST(StateDictTest, AStateWithoutTensorsIsTheSameDictionary) {
  SavedState inner("Inner", 1);
  inner.Set("count", int64_t{1});
  SavedState state("Outer", 3);
  state.Set("name", std::string("a\"b"));
  state.Set("share", 0.5);
  state.Set("slots", std::vector<int64_t>{1, 2});
  state.SetPart("inner", inner);
  state.Set("both", std::vector<SavedState>{inner, SavedState("Other", 2)});
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict dict, ToDict(state));
  RILL_ASSERT_OK_AND_ASSIGN(const StateReader read,
                            StateReader::Open("Outer", 3, dict));
  EXPECT_EQ(dict.GetNonTensor("name")->json, R"("a\"b")");
  EXPECT_THAT(read.Get<double>("share"), IsOkAndHolds(0.5));
  EXPECT_THAT(*read.List<int64_t>("slots"), ElementsAre(1, 2));
  EXPECT_THAT(read.Get<int64_t>("inner/count"), IsOkAndHolds(1));
  EXPECT_THAT(read.Get<int64_t>("both/0/count"), IsOkAndHolds(1));
  EXPECT_EQ(dict.GetNonTensor("both/1/type")->json, R"("Other")");
}

}  // namespace
}  // namespace rill

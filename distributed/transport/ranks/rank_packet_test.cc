// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/ranks/rank_packet.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/state/saved_state.h"
#include "rill/distributed/transport/message.h"
#include "rill/flow/frames/frame.h"
#include "rill/tensordict/test_steps.h"
#include "rill/testing/status_matchers.h"

namespace rill::ranks_internal {
namespace {

using ::testing::HasSubstr;

std::string Header(int64_t kind, int64_t number, int64_t text_bytes,
                   absl::string_view rest) {
  const int64_t front[] = {kind, 7, number, text_bytes};
  return absl::StrCat(
      absl::string_view(reinterpret_cast<const char*>(front), sizeof(front)),
      rest);
}

TEST(RankPacketTest, WhatIsEncodedReadsTheSame) {
  for (int64_t kind = 0; kind < RankPacket::kNumKinds; ++kind) {
    RankPacket packet = {.kind = static_cast<RankPacket::Kind>(kind),
                         .stream = 5,
                         .number = 16,
                         .text = std::string("a\0b", 3)};
    packet.message.values.Set("n", int64_t{1});
    packet.message.batch = MakeSteps(3);
    RILL_ASSERT_OK_AND_ASSIGN(const FramePieces pieces, EncodePacket(packet));
    RILL_ASSERT_OK_AND_ASSIGN(auto bytes, JoinFrame(pieces));
    const std::byte* const begin = bytes->data();
    const std::byte* const end = begin + bytes->size_bytes();
    RILL_ASSERT_OK_AND_ASSIGN(const RankPacket read,
                              DecodePacket(std::move(bytes)));
    EXPECT_EQ(read.kind, packet.kind);
    EXPECT_EQ(read.stream, 5);
    EXPECT_EQ(read.number, 16);
    EXPECT_EQ(read.text, packet.text);
    EXPECT_EQ(read.message.values.Encode(), packet.message.values.Encode());
    RILL_EXPECT_OK(read.message.batch.CheckEqual(packet.message.batch));
    // Where it arrived.
    const std::byte* const leaf =
        read.message.batch.Find("observation")->raw_data();
    EXPECT_TRUE(leaf >= begin && leaf < end);
  }
}

TEST(RankPacketTest, HeadersThatAreNoneAreRefused) {
  const std::string values = SavedState().Encode();
  const struct {
    std::string header;
    std::string says;
  } kCases[] = {
      {"short", "a header of 5 bytes that is none"},
      {Header(-1, 0, 0, values), "of kind -1"},
      {Header(RankPacket::kNumKinds, 0, 0, values), "that is none, of kind"},
      {Header(RankPacket::kOpen, 0, -1, values), "that is none"},
      {Header(RankPacket::kOpen, 0, static_cast<int64_t>(values.size()) + 1,
              values),
       "that is none"},
      {Header(RankPacket::kReply, 17, 0, values), "code of a status: got 17"},
      {Header(RankPacket::kEnded, -1, 0, values), "code of a status: got -1"},
      {Header(RankPacket::kRequest, 17, 1, values), "SavedState::Decode"},
  };
  for (const auto& one : kCases) {
    RILL_ASSERT_OK_AND_ASSIGN(auto bytes, EncodeFrame(one.header, {}));
    EXPECT_THAT(DecodePacket(std::move(bytes)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(one.says)));
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      auto bytes, EncodeFrame(Header(RankPacket::kRequest, -5, 0, values), {}));
  RILL_EXPECT_OK(DecodePacket(std::move(bytes)));
}

}  // namespace
}  // namespace rill::ranks_internal

// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/state_bytes.h"

#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/testing/status_matchers.h"

namespace rill::samplers_internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

std::string Written() {
  StateWriter writer("S", 2);
  writer.Int(-3);
  writer.Double(0.5);
  writer.Int(kMin);
  return std::move(writer).Finish();
}

TEST(StateBytesTest, ReadsBackWhatWasWritten) {
  const std::string bytes = Written();
  RILL_ASSERT_OK_AND_ASSIGN(StateReader reader,
                            StateReader::Open("S", 2, bytes));
  EXPECT_EQ(reader.version(), 2u);
  EXPECT_THAT(reader.Int(), IsOkAndHolds(-3));
  EXPECT_THAT(reader.Double(), IsOkAndHolds(0.5));
  EXPECT_THAT(reader.Finish(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(reader.Int(), IsOkAndHolds(kMin));
  RILL_EXPECT_OK(reader.Finish());
  EXPECT_THAT(reader.Int(), StatusIs(absl::StatusCode::kDataLoss));
}

// The bytes of docs/formats/replay_buffer.md; the last four are the CRC32C.
TEST(StateBytesTest, HasTheDocumentedBytes) {
  StateWriter writer("Ab", 1);
  writer.Int(258);
  const std::string bytes = std::move(writer).Finish();
  EXPECT_EQ(bytes.substr(0, bytes.size() - 4),
            std::string("RILLSMPL"
                        "\x01\x00\x00\x00"
                        "\x02\x00\x00\x00"
                        "Ab"
                        "\x02\x01\x00\x00\x00\x00\x00\x00",
                        26));
  EXPECT_EQ(bytes.size(), 30u);
}

TEST(StateBytesTest, EveryFlippedByteAndEveryCutIsDataLoss) {
  const std::string good = Written();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_THAT(
        StateReader::Open("S", 2, bad),
        StatusIs(absl::StatusCode::kDataLoss, HasSubstr("S::LoadState")))
        << "byte " << i;
    EXPECT_THAT(StateReader::Open("S", 2, good.substr(0, i)),
                StatusIs(absl::StatusCode::kDataLoss))
        << "cut at " << i;
  }
}

TEST(StateBytesTest, OtherSamplerOrNewerVersionIsRefusedNamingBothSides) {
  const std::string bytes = Written();
  EXPECT_THAT(StateReader::Open("Other", 2, bytes),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("state of S version 2"),
                             HasSubstr("want that of Other"))));
  EXPECT_THAT(StateReader::Open("S", 1, bytes),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("version <= 1")));
}

TEST(StateBytesTest, ChangedOptionsAreThoseOfThePartThatReads) {
  const std::string bytes = Written();
  RILL_ASSERT_OK_AND_ASSIGN(StateReader reader,
                            StateReader::Open("S", 2, bytes));
  EXPECT_FALSE(reader.HasChanges());
  reader.SetChangedOptions({"selector.beta", "selector.inner.alpha"});
  EXPECT_TRUE(reader.HasChanges());
  EXPECT_FALSE(reader.has_other_anchors());
  {
    const StateReader::InPart unit(&reader, "unit");
    EXPECT_FALSE(reader.HasChanges());
  }
  {
    const StateReader::InPart selector(&reader, "selector");
    EXPECT_TRUE(reader.HasChanged("beta"));
    EXPECT_FALSE(reader.HasChanged("alpha"));
    {
      const StateReader::InPart inner(&reader, "inner");
      EXPECT_TRUE(reader.HasChanged("alpha"));
      EXPECT_FALSE(reader.HasChanged("beta"));
    }
    EXPECT_TRUE(reader.HasChanged("beta"));
  }
  EXPECT_FALSE(reader.HasChanged("beta"));
  reader.SetChangedOptions({"unit.length"});
  EXPECT_TRUE(reader.has_other_anchors());
}

}  // namespace
}  // namespace rill::samplers_internal

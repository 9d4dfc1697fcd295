// SPDX-License-Identifier: Apache-2.0
#include "rill/telemetry/tensorboard_writer.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/file.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixMillis(1'700'000'000'250);

template <typename T>
T TakeRaw(absl::string_view& bytes) {
  T value{};
  if (bytes.size() < sizeof(T)) {
    ADD_FAILURE() << "record ends early";
    bytes = {};
    return value;
  }
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

// CRC-32C from its definition, bit by bit: polynomial 0x1EDC6F41, reflected.
uint32_t SlowMaskedCrc(absl::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

uint64_t TakeVarint(absl::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = TakeRaw<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return value;
}

absl::string_view TakeBytes(absl::string_view& bytes) {
  const uint64_t size = TakeVarint(bytes);
  const absl::string_view taken = bytes.substr(0, size);
  EXPECT_EQ(taken.size(), size);
  bytes.remove_prefix(taken.size());
  return taken;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  std::vector<std::pair<std::string, float>> scalars;
};

void DecodeSummary(absl::string_view summary, Event& event) {
  while (!summary.empty()) {
    EXPECT_EQ(TakeVarint(summary), 1u << 3 | 2u);
    absl::string_view value = TakeBytes(summary);
    EXPECT_EQ(TakeVarint(value), 1u << 3 | 2u);
    const std::string tag(TakeBytes(value));
    EXPECT_EQ(TakeVarint(value), 2u << 3 | 5u);
    event.scalars.push_back({tag, TakeRaw<float>(value)});
    EXPECT_THAT(value, IsEmpty());
  }
}

std::vector<Event> Decode(const std::string& path) {
  std::vector<Event> events;
  const auto content = ReadFile(path);
  EXPECT_THAT(content, IsOk());
  if (!content.ok()) return events;
  absl::string_view bytes = *content;
  while (!bytes.empty()) {
    const absl::string_view length_bytes = bytes.substr(0, 8);
    const uint64_t length = TakeRaw<uint64_t>(bytes);
    EXPECT_EQ(TakeRaw<uint32_t>(bytes), SlowMaskedCrc(length_bytes));
    absl::string_view data = bytes.substr(0, length);
    bytes.remove_prefix(data.size());
    EXPECT_EQ(TakeRaw<uint32_t>(bytes), SlowMaskedCrc(data));
    Event event;
    while (!data.empty()) {
      switch (TakeVarint(data)) {
        case 1 << 3 | 1:
          event.wall_time = TakeRaw<double>(data);
          break;
        case 2 << 3 | 0:
          event.step = TakeVarint(data);
          break;
        case 3 << 3 | 2:
          event.version = std::string(TakeBytes(data));
          break;
        case 5 << 3 | 2:
          DecodeSummary(TakeBytes(data), event);
          break;
        default:
          ADD_FAILURE() << "unknown field";
          return events;
      }
    }
    events.push_back(event);
  }
  return events;
}

TEST(TensorBoardWriterTest, Example) {
  const std::string run_dir = FreshDirectory();
  RILL_ASSERT_OK_AND_ASSIGN(
      auto events, TensorBoardWriter::Create(run_dir, kNow, HostName()));
  RILL_ASSERT_OK(events->WriteScalars(
      /*step=*/4096, kNow, {{"train/loss", 0.5}, {"train/return", 210}}));
  EXPECT_THAT(events->path(), EndsWith(HostName()));
  EXPECT_THAT(Decode(events->path()), SizeIs(2));
}

TEST(TensorBoardWriterTest, FileDecodesToWhatWasWritten) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto writer, TensorBoardWriter::Create(FreshDirectory(), kNow, "host"));
  EXPECT_THAT(writer->path(), EndsWith("/events.out.tfevents.1700000000.host"));
  RILL_ASSERT_OK(writer->WriteScalars(
      300, kNow, {{"train/loss", 0.5}, {"train/return", -2}}));
  RILL_ASSERT_OK(writer->WriteScalars(int64_t{1} << 40, kNow, {}));
  const std::vector<Event> events = Decode(writer->path());
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1700000000.25);
  EXPECT_EQ(events[1].step, 300);
  EXPECT_EQ(events[1].wall_time, 1700000000.25);
  EXPECT_THAT(events[1].scalars,
              ElementsAre(Pair("train/loss", FloatEq(0.5)),
                          Pair("train/return", FloatEq(-2))));
  EXPECT_EQ(events[2].step, int64_t{1} << 40);
  EXPECT_THAT(events[2].scalars, IsEmpty());
}

TEST(TensorBoardWriterTest, ReopenCutsOffWhatCameLater) {
  std::string path;
  int64_t noted = 0;
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        auto writer, TensorBoardWriter::Create(FreshDirectory(), kNow, "host"));
    path = writer->path();
    RILL_ASSERT_OK(writer->WriteScalars(1, kNow, {{"a", 1}}));
    noted = writer->size_bytes();
    RILL_ASSERT_OK(writer->WriteScalars(2, kNow, {{"longer", 2}}));
  }
  RILL_ASSERT_OK_AND_ASSIGN(auto writer,
                            TensorBoardWriter::Reopen(path, noted));
  RILL_ASSERT_OK(writer->WriteScalars(3, kNow, {{"a", 3}}));
  const std::vector<Event> events = Decode(path);
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 3);
}

TEST(TensorBoardWriterTest, ReopenRefusesAShorterFile) {
  const std::string path = JoinPath(FreshDirectory(), "events");
  RILL_ASSERT_OK(WriteFileAtomically(path, "12345"));
  EXPECT_THAT(TensorBoardWriter::Reopen(path, 6),
              IsDataLoss("has 5 bytes, want at least 6"));
  EXPECT_THAT(ReadFile(path), IsOkAndHolds("12345"));
}

TEST(TensorBoardWriterTest, CreateRefusesAnExistingFileAndAMissingFolder) {
  const std::string directory = FreshDirectory();
  RILL_ASSERT_OK_AND_ASSIGN(auto writer,
                            TensorBoardWriter::Create(directory, kNow, "host"));
  EXPECT_THAT(TensorBoardWriter::Create(directory, kNow, "host"),
              IsFailedPrecondition(writer->path()));
  EXPECT_THAT(TensorBoardWriter::Create(JoinPath(directory, "no"), kNow, "h"),
              IsNotFound("/no/events"));
}

TEST(TensorBoardWriterTest, FailedAppendLeavesWholeRecordsOnly) {
  RILL_ASSERT_OK_AND_ASSIGN(
      auto writer, TensorBoardWriter::Create(FreshDirectory(), kNow, "host"));
  RILL_ASSERT_OK(writer->WriteScalars(1, kNow, {{"a", 1}}));
  const int64_t size = writer->size_bytes();
  // A file size limit takes a part of the record, as a full disk may.
  struct rlimit kept;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &kept), 0);
  struct rlimit tight = kept;
  tight.rlim_cur = size + 5;
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const absl::Status full = writer->WriteScalars(2, kNow, {{"a", 2}});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &kept), 0);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_THAT(full, StatusIs(::testing::Ne(absl::StatusCode::kOk),
                             HasSubstr(writer->path())));
  EXPECT_THAT(FileSize(writer->path()), IsOkAndHolds(size));
  RILL_ASSERT_OK(writer->WriteScalars(3, kNow, {{"a", 3}}));
  EXPECT_THAT(Decode(writer->path()), SizeIs(3));
}

}  // namespace
}  // namespace rill

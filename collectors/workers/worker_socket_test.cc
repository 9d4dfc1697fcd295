// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/workers/worker_socket.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/base/file_error.h"
#include "rill/testing/status_matchers.h"

namespace rill::workers_internal {
namespace {

// Tells one open file from another.
ino_t NumberOf(int fd) {
  struct stat file = {};
  EXPECT_EQ(fstat(fd, &file), 0);
  return file.st_ino;
}

// All are sent before the first is received, so the kernel may join them in one
// read. Sizes around those of a read.
TEST(WorkerSocketTest, EachMessageComesWithItsOwnDescriptor) {
  const size_t sizes[] = {0, 24, 16367, 16368, 16369, 20000, 40000};
  for (const size_t size : sizes) {
    SCOPED_TRACE(size);
    RILL_ASSERT_OK_AND_ASSIGN(auto ends, WorkerSocket::MakePair());
    auto& [sender, receiver] = ends;
    const std::vector<std::string> texts = {std::string(size, 'a'), "",
                                            std::string(size, 'b'), "c", "d"};
    std::vector<std::unique_ptr<base_internal::FileDescriptor>> files;
    for (const std::string& text : texts) {
      // The message before the last has none.
      if (text == "c") {
        files.push_back(nullptr);
      } else {
        files.push_back(std::make_unique<base_internal::FileDescriptor>(
            memfd_create("worker_socket_test", MFD_CLOEXEC)));
      }
      RILL_ASSERT_OK(
          sender.Send(MessageKind::kInference, text, absl::InfiniteFuture(),
                      files.back() == nullptr ? -1 : files.back()->get()));
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const auto message,
                                receiver.Receive(absl::InfinitePast()));
      ASSERT_TRUE(message.has_value());
      EXPECT_EQ(message->kind, MessageKind::kInference);
      EXPECT_EQ(message->bytes, texts[i]);
      ASSERT_EQ(message->descriptor != nullptr, files[i] != nullptr) << i;
      if (files[i] == nullptr) continue;
      EXPECT_EQ(NumberOf(message->descriptor->get()), NumberOf(files[i]->get()))
          << i;
    }
    EXPECT_THAT(receiver.Receive(absl::InfinitePast()),
                IsOkAndHolds(::testing::Eq(std::nullopt)));
  }
}

TEST(WorkerSocketTest, APollThatFailsIsAnErrorAndNoMissingMessage) {
  RILL_ASSERT_OK_AND_ASSIGN(auto ends, WorkerSocket::MakePair());
  auto& [sender, receiver] = ends;
  const auto has_failed = StatusIs(absl::StatusCode::kResourceExhausted,
                                   ::testing::HasSubstr("poll of a socket: "));
  {
    ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      return point == "process.poll" ? absl::InternalError("planted")
                                     : absl::OkStatus();
    });
    EXPECT_THAT(receiver.Receive(absl::InfiniteFuture()), has_failed);
    // More than the kernel holds for a receiver that does not read.
    EXPECT_THAT(sender.Send(MessageKind::kBatch, std::string(1 << 24, 'a'),
                            absl::InfiniteFuture()),
                has_failed);
  }
  // Messages the other way are whole.
  RILL_ASSERT_OK(
      receiver.Send(MessageKind::kPause, "b", absl::InfiniteFuture()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto message,
                            sender.Receive(absl::InfinitePast()));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->bytes, "b");
}

}  // namespace
}  // namespace rill::workers_internal

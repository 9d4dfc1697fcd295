// SPDX-License-Identifier: Apache-2.0
// Graphs.
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/device/buffer.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/row_copy.h"
#include "rill/device/stream.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::Each;

constexpr int64_t kBytes = 100000;

TEST_P(BackendConformanceTest, TheHostHasNoGraphs) {
  if (!device().is_cpu()) GTEST_SKIP() << "no host";
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  EXPECT_THAT(Graph::Capture(stream, [] { return absl::OkStatus(); }).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_P(BackendConformanceTest, AGraphDoesItsWorkAtEachLaunchAlone) {
  if (device().is_cpu()) GTEST_SKIP() << "the host has no graphs";
  const std::shared_ptr<Buffer> a = Upload(std::vector<uint8_t>(kBytes, 1));
  const std::shared_ptr<Buffer> b = Upload(std::vector<uint8_t>(kBytes, 1));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Graph graph, Graph::Capture(stream, [&]() -> absl::Status {
        const absl::Status copied =
            CopyAsync(b->data(), a->data(), kBytes, stream);
        if (!copied.ok()) return copied;
        return backend()->Fill(index(), a->data(), 0, kBytes, stream.handle());
      }));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(a->data(), kBytes), Each(1));
  EXPECT_THAT(Download(b->data(), kBytes), Each(1));
  // Each launch takes the values of its time, on any stream.
  RILL_ASSERT_OK_AND_ASSIGN(const Stream other, Stream::Create(device()));
  for (const uint8_t value : {2, 3, 4}) {
    const Stream& on = value == 3 ? other : stream;
    RILL_ASSERT_OK(
        backend()->Fill(index(), a->data(), value, kBytes, on.handle()));
    RILL_ASSERT_OK(graph.Launch(on));
    RILL_ASSERT_OK(on.Synchronize());
    EXPECT_THAT(Download(b->data(), kBytes), Each(value));
    EXPECT_THAT(Download(a->data(), kBytes), Each(0));
  }
}

TEST_P(BackendConformanceTest, AGraphMayGoWhileItRuns) {
  if (device().is_cpu()) GTEST_SKIP() << "the host has no graphs";
  const std::shared_ptr<Buffer> a = Upload(std::vector<uint8_t>(kBytes, 1));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  {
    RILL_ASSERT_OK_AND_ASSIGN(const Graph graph, Graph::Capture(stream, [&] {
                                return backend()->Fill(index(), a->data(), 2,
                                                       kBytes, stream.handle());
                              }));
    RILL_ASSERT_OK(graph.Launch(stream));
  }
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(a->data(), kBytes), Each(2));
}

TEST_P(BackendConformanceTest, AStreamWorksOnAfterACaptureThatFailed) {
  if (device().is_cpu()) GTEST_SKIP() << "the host has no graphs";
  const std::shared_ptr<Buffer> a = Upload(std::vector<uint8_t>(kBytes, 1));
  const std::shared_ptr<Buffer> b = Upload(std::vector<uint8_t>(kBytes, 1));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream, Stream::Create(device()));
  const std::vector<int64_t> rows = {0};
  const RowColumn column = {a->data(), 8, b->data(), 8, 8};
  EXPECT_THAT(Graph::Capture(stream,
                             [&] {
                               return backend()->GatherRows(index(),
                                                            {&column, 1}, rows,
                                                            stream.handle());
                             })
                  .status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  RILL_ASSERT_OK(
      backend()->Fill(index(), a->data(), 5, kBytes, stream.handle()));
  RILL_ASSERT_OK(stream.Synchronize());
  EXPECT_THAT(Download(a->data(), kBytes), Each(5));
}

}  // namespace
}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/device/graphs/graph.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"
#include "rill/device/kernels/testing/scale_kernel.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/device/testing/fake_device_test.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::absl_testing::StatusIs;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Operation = FakeBackend::Operation;

class GraphTest : public FakeDeviceTest {
 protected:
  void SetUp() override {
    stream_ = std::make_unique<Stream>(*Stream::Create(Device::Fake(0)));
    values_ = *Buffer::Allocate(kCount * sizeof(double), Device::Fake(0),
                                MemoryKind::kDevice);
    Set(1);
  }
  void TearDown() override {
    values_.reset();
    stream_.reset();
    EXPECT_EQ(fake_->NumGraphs(), 0);
    FakeDeviceTest::TearDown();
  }

  void Set(double value) {
    const std::vector<double> values(kCount, value);
    RILL_ASSERT_OK(CopyBlocking(values_->data(), values.data(),
                                kCount * sizeof(double), Device::Fake(0)));
  }
  absl::Status Double() {
    const Scale kernel = {reinterpret_cast<double*>(values_->data()), kCount,
                          2};
    return LaunchKernel(kernel, GridFor(kCount), *stream_);
  }
  std::vector<double> Peek() {
    const auto bytes =
        *fake_->Peek(0, values_->data(), kCount * sizeof(double));
    std::vector<double> values(kCount);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  static constexpr int64_t kCount = 4;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Buffer> values_;
};

absl::Status RunExample(double* values, int64_t n, const Stream& stream) {
  const Scale kernel = {.values = values, .count = n, .factor = 2};
  const auto enqueue = [&] { return LaunchKernel(kernel, GridFor(n), stream); };
  RILL_ASSIGN_OR_RETURN(const Graph graph, Graph::Capture(stream, enqueue));
  for (int i = 0; i < 3; ++i) RILL_RETURN_IF_ERROR(graph.Launch(stream));
  return stream.Synchronize();
}

TEST_F(GraphTest, Example) {
  const Device device = Device::Fake(0);
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto buffer,
      Buffer::Allocate(2 * sizeof(double), device, MemoryKind::kDevice));
  double values[2] = {1, 3};
  RILL_ASSERT_OK(CopyBlocking(buffer->data(), values, sizeof(values), device));
  RILL_ASSERT_OK(
      RunExample(reinterpret_cast<double*>(buffer->data()), 2, *stream_));
  RILL_ASSERT_OK(CopyBlocking(values, buffer->data(), sizeof(values), device));
  EXPECT_THAT(values, ElementsAre(8, 24));
}

TEST_F(GraphTest, ManyKernelsAreOneOperationOfTheStream) {
  RILL_ASSERT_OK_AND_ASSIGN(const Graph graph,
                            Graph::Capture(*stream_, [&]() -> absl::Status {
                              for (int i = 0; i < 5; ++i)
                                RILL_RETURN_IF_ERROR(Double());
                              return absl::OkStatus();
                            }));
  EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 0);
  const int64_t launches = fake_->Count(Operation::kLaunch);
  RILL_ASSERT_OK(graph.Launch(*stream_));
  EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 1);
  EXPECT_EQ(fake_->Count(Operation::kLaunch), launches);
  EXPECT_EQ(fake_->Count(Operation::kLaunchGraph), 1);
  EXPECT_THAT(Peek(), Each(1));
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_THAT(Peek(), Each(32));
}

TEST_F(GraphTest, WhatAGraphCannotHoldIsAnErrorAndTheStreamWorksOn) {
  RILL_ASSERT_OK_AND_ASSIGN(Event event, Event::Record(*stream_));
  RILL_ASSERT_OK(event.Synchronize());
  StreamUploads uploads(Device::Fake(0));
  const RowColumn column = {values_->data(), 1, values_->data() + 3, 1, 1};
  const std::vector<int64_t> rows = {0};
  const std::pair<const char*, std::function<absl::Status()>> refused[] = {
      {"Buffer::Allocate",
       [] {
         return Buffer::Allocate(8, Device::Fake(0), MemoryKind::kDevice)
             .status();
       }},
      {"Buffer::Allocate",
       [] {
         return Buffer::Allocate(8, Device::Fake(0), MemoryKind::kPinned)
             .status();
       }},
      {"Stream::Synchronize", [&] { return stream_->Synchronize(); }},
      {"Stream::WaitFor", [&] { return stream_->WaitFor(event); }},
      {"Event::Record", [&] { return Event::Record(*stream_).status(); }},
      {"Event::RecordAgain", [&] { return event.RecordAgain(*stream_); }},
      {"Event::Synchronize", [&] { return event.Synchronize(); }},
      {"a copy of rows",
       [&] {
         return fake_->GatherRows(0, {&column, 1}, rows, stream_->handle());
       }},
      {"a copy of rows",
       [&] {
         return fake_->ScatterRows(0, {&column, 1}, rows, stream_->handle());
       }},
      {"StreamUploads::Send", [&] { return uploads.Send(); }},
      {"Graph::Capture",
       [&] {
         return Graph::Capture(*stream_, [] { return absl::OkStatus(); })
             .status();
       }},
  };
  for (const auto& [call, enqueue] : refused) {
    RILL_ASSERT_OK(uploads.Begin(*stream_));
    RILL_ASSERT_OK(uploads.Mirror<int64_t>(1));
    EXPECT_THAT(
        Graph::Capture(*stream_,
                       [&, &enqueue = enqueue]() -> absl::Status {
                         RILL_RETURN_IF_ERROR(Double());
                         return enqueue();
                       })
            .status(),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(call)))
        << call;
    EXPECT_EQ(fake_->NumPending(0, stream_->handle()), 0) << call;
    RILL_ASSERT_OK(enqueue()) << call;
    RILL_ASSERT_OK(stream_->Synchronize());
    uploads.End(nullptr);
  }
  // The work that was captured before the error has not run.
  EXPECT_THAT(Peek(), Each(1));
  RILL_ASSERT_OK(Double());
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_THAT(Peek(), Each(2));
}

TEST_F(GraphTest, AnExceptionLeavesAStreamThatWorks) {
  EXPECT_THROW(Graph::Capture(*stream_,
                              [&]() -> absl::Status {
                                RILL_RETURN_IF_ERROR(Double());
                                throw std::runtime_error("thrown");
                              })
                   .IgnoreError(),
               std::runtime_error);
  EXPECT_EQ(fake_->NumGraphs(), 0);
  RILL_ASSERT_OK(Double());
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_THAT(Peek(), Each(2));
}

TEST_F(GraphTest, MemoryOfTheHostIsNoneOfTheDevices) {
  RILL_EXPECT_OK(Graph::Capture(*stream_, [] {
                   return Buffer::Allocate(1 << 20).status();
                 }).status());
}

TEST_F(GraphTest, StreamsThatCannotBeCapturedAreNamed) {
  const auto nothing = [] { return absl::OkStatus(); };
  RILL_ASSERT_OK_AND_ASSIGN(const Stream host, Stream::Create(Device::Cpu()));
  EXPECT_THAT(
      Graph::Capture(host, nothing).status(),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("got cpu")));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream common,
                            Stream::Default(Device::Fake(0)));
  EXPECT_THAT(Graph::Capture(common, nothing).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("got the default one")));
  RILL_ASSERT_OK_AND_ASSIGN(const Graph graph,
                            Graph::Capture(*stream_, nothing));
  RILL_ASSERT_OK_AND_ASSIGN(const Stream other,
                            Stream::Create(Device::Fake(1)));
  EXPECT_THAT(graph.Launch(other), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("fake:1")));
}

TEST_F(GraphTest, EachCallThatFailsIsAnErrorWithoutALeak) {
  int64_t failures = 0;
  for (int64_t nth = 1;; ++nth) {
    Set(1);
    fake_->FailCall(nth, absl::InternalError("planted"));
    const absl::Status status = [&]() -> absl::Status {
      RILL_ASSIGN_OR_RETURN(const Graph graph,
                            Graph::Capture(*stream_, [&] { return Double(); }));
      RILL_RETURN_IF_ERROR(graph.Launch(*stream_));
      return stream_->Synchronize();
    }();
    if (!fake_->Recover()) {
      RILL_EXPECT_OK(status);
      break;
    }
    ++failures;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, "planted"));
    EXPECT_EQ(fake_->NumGraphs(), 0) << nth;
    RILL_ASSERT_OK(stream_->Synchronize());
  }
  // Begin, the kernel, end, the launch, the wait.
  EXPECT_EQ(failures, 5);
}

TEST_F(GraphTest, ALaunchThatFailsCostsNoOther) {
  RILL_ASSERT_OK_AND_ASSIGN(const Graph graph,
                            Graph::Capture(*stream_, [&]() -> absl::Status {
                              RILL_RETURN_IF_ERROR(Double());
                              return Double();
                            }));
  for (const auto& [operation, values] :
       {std::pair{Operation::kLaunchGraph, 1}, {Operation::kLaunch, 1}}) {
    Set(1);
    fake_->FailNext(operation, 1, absl::DataLossError("planted"));
    RILL_ASSERT_OK(graph.Launch(*stream_));
    EXPECT_THAT(stream_->Synchronize(),
                StatusIs(absl::StatusCode::kDataLoss, "planted"));
    EXPECT_THAT(Peek(), Each(values));
    fake_->Recover();
    RILL_ASSERT_OK(graph.Launch(*stream_));
    RILL_ASSERT_OK(stream_->Synchronize());
    EXPECT_THAT(Peek(), Each(4));
  }
}

TEST_F(GraphTest, MemoryThatIsGoneIsFoundAtTheLaunch) {
  RILL_ASSERT_OK_AND_ASSIGN(const Graph graph,
                            Graph::Capture(*stream_, [&] { return Double(); }));
  values_.reset();
  EXPECT_THAT(graph.Launch(*stream_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("freed before the operation ran")));
}

TEST_F(GraphTest, AGraphMovesAndIsDestroyedOnce) {
  std::optional<Graph> kept;
  {
    RILL_ASSERT_OK_AND_ASSIGN(
        Graph graph, Graph::Capture(*stream_, [&] { return Double(); }));
    kept = std::move(graph);
  }
  EXPECT_EQ(fake_->NumGraphs(), 1);
  RILL_ASSERT_OK(kept->Launch(*stream_));
  kept.reset();
  // Under way it goes on.
  RILL_ASSERT_OK(stream_->Synchronize());
  EXPECT_THAT(Peek(), ElementsAre(2, 2, 2, 2));
}

}  // namespace
}  // namespace rill

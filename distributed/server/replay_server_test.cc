// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/server/replay_server.h"

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/log/log.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/server/server_config.h"
#include "rill/distributed/transport/inproc/inproc_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/replay/testing/numbered_steps.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::HasSubstr;

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

std::string Path(absl::string_view name) {
  return absl::StrCat(::testing::TempDir(), "/replay_server_", name);
}

std::shared_ptr<InprocTransport> MakeInproc() {
  auto transport = InprocTransport::Create();
  RILL_EXPECT_OK(transport.status());
  return *std::move(transport);
}

// A server of one table with these further fields.
absl::StatusOr<std::unique_ptr<ReplayServer>> Start(
    std::shared_ptr<Transport> transport, absl::string_view fields = "") {
  RILL_ASSIGN_OR_RETURN(
      ServerConfig config,
      ServerConfig::Parse(absl::StrCat(
          R"({"listen": "server", "tables": {"replay": {"capacity": 100,)",
          R"("batch_size": 8}})", fields, "}")));
  return ReplayServer::Start(std::move(transport), std::move(config));
}

std::string CheckpointIn(const std::string& directory,
                         absl::string_view every = "") {
  return absl::StrCat(R"(, "checkpoint": {"directory": ")", directory, "\"",
                      every, "}");
}

TEST(ReplayServerTest, Example) {
  const auto run = [](std::shared_ptr<Transport> transport,
                      absl::string_view json,
                      absl::Time deadline) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(ServerConfig config, ServerConfig::Parse(json));
    RILL_ASSIGN_OR_RETURN(auto server,
                          ReplayServer::Start(transport, std::move(config)));
    LOG(INFO) << "serving at " << server->address();
    return server->Shutdown(deadline);
  };
  RILL_EXPECT_OK(
      run(MakeInproc(), R"({"tables": {"a": {"capacity": 10}}})", Soon()));
}

TEST(ReplayServerTest, ClientsWriteAndSample) {
  const auto transport = MakeInproc();
  RILL_ASSERT_OK_AND_ASSIGN(const auto server, Start(transport));
  const RemoteServer remote = {.transport = transport,
                               .address = server->address()};
  RILL_ASSERT_OK_AND_ASSIGN(const auto sink,
                            RemoteSink::Create({.server = remote}));
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 20), {}));
  RILL_ASSERT_OK_AND_ASSIGN(const auto sampler,
                            RemoteSampler::Create({.server = remote}));
  RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, sampler->Sample());
  ExpectWholeSteps(batch, 100);
  RILL_EXPECT_OK(server->Shutdown(Soon()));
}

TEST(ReplayServerTest, AnotherStartGoesOnFromTheLastCheckpoint) {
  const std::string fields = CheckpointIn(Path("again"));
  const auto transport = MakeInproc();
  RILL_ASSERT_OK_AND_ASSIGN(auto server, Start(transport, fields));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto sink, RemoteSink::Create({.server = {.transport = transport,
                                                      .address = "server"}}));
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 20), {}));
  RILL_ASSERT_OK(sink->Flush());
  RILL_ASSERT_OK(server->Shutdown(Soon()));
  server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(server, Start(transport, fields));
  EXPECT_EQ(server->service().table("replay")->size(), 20);
  RILL_ASSERT_OK(sink->Write(NumberedSteps(1, 5, 20), {}));
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_EQ(server->service().table("replay")->size(), 25);
  EXPECT_EQ(sink->GetStats().lost_rows, 0);
  // Ended without Shutdown, as by a kill: those five are lost.
  server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(server, Start(transport, fields));
  EXPECT_EQ(server->service().table("replay")->size(), 20);
  RILL_ASSERT_OK(sink->Flush());
  EXPECT_EQ(sink->GetStats().lost_rows, 5);
}

TEST(ReplayServerTest, RowsInFilesAreThoseOfTheCheckpointOrAsTheyWere) {
  const auto transport = MakeInproc();
  for (const bool has_checkpoint : {true, false}) {
    const std::string name = has_checkpoint ? "with" : "without";
    const std::string json = absl::StrCat(
        R"({"listen": "server", "tables": {"replay": {"capacity": 100,
            "storage": {"kind": "memmap", "directory": ")",
        Path("rows_" + name), R"("}}})",
        has_checkpoint ? CheckpointIn(Path("rows_checkpoint")) : "", "}");
    const auto start = [&]() -> absl::StatusOr<std::unique_ptr<ReplayServer>> {
      RILL_ASSIGN_OR_RETURN(ServerConfig config, ServerConfig::Parse(json));
      return ReplayServer::Start(transport, std::move(config));
    };
    RILL_ASSERT_OK_AND_ASSIGN(auto server, start());
    RILL_ASSERT_OK(
        server->service().table("replay")->Extend(NumberedSteps(1, 20)));
    RILL_ASSERT_OK(server->Shutdown(Soon()));
    server = nullptr;
    RILL_ASSERT_OK_AND_ASSIGN(server, start());
    EXPECT_EQ(server->service().table("replay")->size(), 20);
    RILL_ASSERT_OK(
        server->service().table("replay")->Extend(NumberedSteps(1, 5, 20)));
    server = nullptr;  // Without Shutdown, as by a kill.
    RILL_ASSERT_OK_AND_ASSIGN(server, start());
    EXPECT_EQ(server->service().table("replay")->size(),
              has_checkpoint ? 20 : 25);
  }
}

TEST(ReplayServerTest, RowsInFilesStayWhereTheDirectoryHoldsNoCheckpoint) {
  const auto start = [&](const std::string& checkpoint)
      -> absl::StatusOr<std::unique_ptr<ReplayServer>> {
    RILL_ASSIGN_OR_RETURN(
        ServerConfig config,
        ServerConfig::Parse(absl::StrCat(
            R"({"listen": "server", "tables": {"replay": {"capacity": 100,
                "storage": {"kind": "memmap", "directory": ")",
            Path("kept_rows"), R"("}}})", checkpoint, "}")));
    return ReplayServer::Start(MakeInproc(), std::move(config));
  };
  RILL_ASSERT_OK_AND_ASSIGN(auto server, start(""));
  RILL_ASSERT_OK(
      server->service().table("replay")->Extend(NumberedSteps(1, 20)));
  server = nullptr;
  const std::string empty = Path("kept_empty");
  RILL_ASSERT_OK(CreateDirectories(empty));
  EXPECT_THAT(start(CheckpointIn(empty)),
              StatusIs(absl::StatusCode::kNotFound));
  RILL_ASSERT_OK_AND_ASSIGN(server, start(""));
  EXPECT_EQ(server->service().table("replay")->size(), 20);
}

TEST(ReplayServerTest, TheTimerMakesCheckpoints) {
  const std::string directory = Path("timer");
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto server,
      Start(MakeInproc(),
            CheckpointIn(directory, R"(, "every_seconds": 0.01)")));
  while (!absl::StrContains(server->MetricsText(),
                            "rill_replay_checkpoints_total 2")) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(PathExists(directory));
}

TEST(ReplayServerTest, AFullDiskLeavesTheLastCheckpointAndTheServer) {
  const std::string fields = CheckpointIn(Path("full"));
  const auto transport = MakeInproc();
  RILL_ASSERT_OK_AND_ASSIGN(auto server, Start(transport, fields));
  RILL_ASSERT_OK(
      server->service().table("replay")->Extend(NumberedSteps(1, 7)));
  RILL_ASSERT_OK(server->Checkpoint());
  RILL_ASSERT_OK(
      server->service().table("replay")->Extend(NumberedSteps(1, 5)));
  {
    ScopedFaultHook hook([](absl::string_view point, absl::string_view) {
      return point == "file.write"
                 ? absl::ResourceExhaustedError("the disk is full")
                 : absl::OkStatus();
    });
    EXPECT_THAT(server->Checkpoint(),
                StatusIs(absl::StatusCode::kResourceExhausted));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect("server", Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const Message health,
                            connection->Call("server/health", {}, Soon()));
  EXPECT_THAT(health.values.Get<std::string>("status"),
              IsOkAndHolds("SERVING"));
  EXPECT_THAT(health.values.Get<int64_t>("failed_checkpoints"),
              IsOkAndHolds(1));
  server = nullptr;
  RILL_ASSERT_OK_AND_ASSIGN(server, Start(transport, fields));
  EXPECT_EQ(server->service().table("replay")->size(), 7);
}

TEST(ReplayServerTest, MetricsAreInAFileAndByACall) {
  const std::string file = Path("metrics.prom");
  const auto transport = MakeInproc();
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto server,
      Start(transport, absl::StrCat(R"(, "metrics_file": ")", file, "\"")));
  RILL_ASSERT_OK(
      server->service().table("replay")->Extend(NumberedSteps(1, 7)));
  RILL_ASSERT_OK(server->service().table("replay")->Sample().status());
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect("server", Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const Message reply,
                            connection->Call("server/metrics", {}, Soon()));
  RILL_ASSERT_OK_AND_ASSIGN(const auto text,
                            reply.values.Get<std::string>("text"));
  for (const char* const line :
       {"# TYPE rill_replay_rows gauge\nrill_replay_rows{table=\"replay\"} 7\n",
        "rill_replay_capacity_rows{table=\"replay\"} 100\n",
        "rill_replay_written_rows_total{table=\"replay\"} 7\n",
        "rill_replay_sampled_items_total{table=\"replay\"} 8\n",
        "rill_replay_batches_total{table=\"replay\"} 1\n",
        "rill_replay_failed_checkpoints_total 0\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  RILL_ASSERT_OK(server->Shutdown(Soon()));
  EXPECT_THAT(ReadFile(file), IsOkAndHolds(HasSubstr("} 7\n")));
}

TEST(ReplayServerTest, WhatItCannotDoIsSaid) {
  const auto transport = MakeInproc();
  RILL_ASSERT_OK_AND_ASSIGN(const auto server, Start(transport));
  EXPECT_THAT(server->Checkpoint(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("checkpoint.directory")));
  EXPECT_THAT(Start(transport), StatusIs(absl::StatusCode::kAlreadyExists));
  RILL_ASSERT_OK_AND_ASSIGN(const auto connection,
                            transport->Connect("server", Soon()));
  EXPECT_THAT(connection->Call("server/stop", {}, Soon()),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("server/health or server/metrics")));
}

}  // namespace
}  // namespace rill

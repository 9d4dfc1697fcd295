// SPDX-License-Identifier: Apache-2.0
#include "rill/benchmarks/distributed_cases.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/median.h"
#include "rill/distributed/replay/remote_sampler.h"
#include "rill/distributed/replay/remote_sink.h"
#include "rill/distributed/replay/replay_service.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/service_set.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kSmall = 0;
constexpr int64_t k3Kb = 55 * 55;
constexpr int64_t k56Kb = 2 * 4 * 84 * 84;  // Two stacks of four frames.

constexpr DistributedCase kCases[] = {
    {"insert, 256 rows of 3 KB", DistributedCase::kInsert, k3Kb, 256, 16},
    {"insert, 256 rows of 56 KB", DistributedCase::kInsert, k56Kb, 256, 16},
    {"sample, 256 rows of 3 KB", DistributedCase::kSample, k3Kb, 256, 3},
    {"sample, 256 rows of 56 KB", DistributedCase::kSample, k56Kb, 256, 3},
    {"sample, 256 rows of 47 B", DistributedCase::kSample, kSmall, 256, 9},
    {"call with a row of 47 B", DistributedCase::kCall, kSmall, 1, 1},
};

std::string TableOf(int64_t pixels) { return absl::StrCat("pixels", pixels); }

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

// Answers with what it is asked.
class EchoService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo& /*info*/,
                               const Message& request) override {
    return request;
  }
};

absl::StatusOr<RunExchanges> OpenSink(const DistributedCase& of,
                                      RemoteServer server) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<RemoteSink> sink,
                        RemoteSink::Create({.server = std::move(server),
                                            .table = TableOf(of.pixels),
                                            .max_unacknowledged = of.ahead}));
  RILL_ASSIGN_OR_RETURN(TensorDict rows, MakeRows(of));
  RILL_RETURN_IF_ERROR(sink->Write(rows, {}));
  // As a collector, which records into the sink's memory. The bare loop makes
  // no rows, so this does once for each piece of memory.
  std::set<const std::byte*> made;
  return [sink = std::move(sink), rows = std::move(rows),
          made = std::move(made)](int64_t exchanges) mutable -> absl::Status {
    for (int64_t i = 0; i < exchanges; ++i) {
      RILL_ASSIGN_OR_RETURN(TensorDict memory,
                            sink->Reserve(rows.batch_shape()));
      if (made.insert(memory.Find("observation")->raw_data()).second) {
        RILL_RETURN_IF_ERROR(memory.CopyFrom(rows));
      }
      RILL_RETURN_IF_ERROR(sink->Write(memory, {}));
    }
    return sink->Flush();
  };
}

absl::StatusOr<std::shared_ptr<RemoteSampler>> OpenSampler(
    const DistributedCase& of, RemoteServer server) {
  return RemoteSampler::Create({.server = std::move(server),
                                .table = TableOf(of.pixels),
                                .batch_size = of.rows,
                                .ahead = of.ahead - 1});
}

absl::StatusOr<RunExchanges> OpenCalls(const DistributedCase& of,
                                       const RemoteServer& server) {
  RILL_ASSIGN_OR_RETURN(const auto connection,
                        server.transport->Connect(server.address, Soon()));
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<CallStream> stream,
                        connection->Open("echo", {}, Soon()));
  Message message;
  RILL_ASSIGN_OR_RETURN(message.batch, MakeRows(of));
  return [stream = std::move(stream),
          message = std::move(message)](int64_t exchanges) -> absl::Status {
    const absl::Time deadline = Soon();
    for (int64_t i = 0; i < exchanges; ++i) {
      RILL_RETURN_IF_ERROR(stream->Send(message, deadline));
      RILL_ASSIGN_OR_RETURN(const Reply reply, stream->Receive(deadline));
      RILL_RETURN_IF_ERROR(reply.status);
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<RunExchanges> OpenRill(const DistributedCase& of,
                                      const RemoteServer& server) {
  if (of.kind == DistributedCase::kInsert) return OpenSink(of, server);
  if (of.kind == DistributedCase::kCall) return OpenCalls(of, server);
  RILL_ASSIGN_OR_RETURN(auto sampler, OpenSampler(of, server));
  return [sampler = std::move(sampler)](int64_t exchanges) -> absl::Status {
    for (int64_t i = 0; i < exchanges; ++i) {
      RILL_RETURN_IF_ERROR(sampler->Sample().status());
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<double> SecondsOf(const RunExchanges& run, int64_t exchanges) {
  const absl::Time begin = Clock::Steady().Now();
  RILL_RETURN_IF_ERROR(run(exchanges));
  return absl::ToDoubleSeconds(Clock::Steady().Now() - begin);
}

// The median of runs of some 30 ms, of a second or a tenth in all.
absl::StatusOr<double> SecondsAnExchange(bool is_quick,
                                         const RunExchanges& run) {
  constexpr double kRun = 0.03;
  int64_t exchanges = 8;
  RILL_ASSIGN_OR_RETURN(double seconds, SecondsOf(run, exchanges));  // Warm-up.
  for (;;) {
    RILL_ASSIGN_OR_RETURN(seconds, SecondsOf(run, exchanges));
    if (seconds >= kRun) break;
    exchanges *= 2;
  }
  std::vector<double> times;
  for (int turn = 0; turn < (is_quick ? 3 : 20); ++turn) {
    RILL_ASSIGN_OR_RETURN(seconds, SecondsOf(run, exchanges));
    times.push_back(seconds / static_cast<double>(exchanges));
  }
  return MedianOf(std::move(times));
}

// The share of its time for which a learner waits: steps of 1 ms on a core, and
// a sample for each.
absl::StatusOr<double> ShareOfWaits(RemoteSampler* sampler, int steps) {
  constexpr absl::Duration kStep = absl::Milliseconds(1);
  const Clock& clock = Clock::Steady();
  absl::Duration waits;
  const absl::Time begin = clock.Now();
  for (int step = 0; step < steps; ++step) {
    const absl::Time asks = clock.Now();
    RILL_RETURN_IF_ERROR(sampler->Sample().status());
    const absl::Time learns = clock.Now();
    waits += learns - asks;
    while (clock.Now() < learns + kStep) {
    }
  }
  return absl::FDivDuration(waits, clock.Now() - begin);
}

absl::Status MeasureLearner(bool is_quick, const DistributedCase& of,
                            const RemoteServer& server) {
  // Threads of the engine may wait for 15 steps while the learner has their
  // processor.
  DistributedCase ahead = of;
  ahead.ahead = 33;
  RILL_ASSIGN_OR_RETURN(const auto sampler, OpenSampler(ahead, server));
  RILL_RETURN_IF_ERROR(ShareOfWaits(sampler.get(), 50).status());  // Warm-up.
  RILL_ASSIGN_OR_RETURN(const double share,
                        ShareOfWaits(sampler.get(), is_quick ? 50 : 1000));
  absl::PrintF("learner, steps of 1 ms, %s\t%.6f\n", of.name, share);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReplayBuffer>> MakeTable(
    const DistributedCase& of) {
  RILL_ASSIGN_OR_RETURN(auto storage,
                        DenseStorage::Create({.capacity = kTableRows}));
  RILL_ASSIGN_OR_RETURN(auto buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = MakeUniformSampler(),
                                              .batch_size = 256}));
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, MakeRows(of));
  while (buffer->size() < kTableRows) {
    RILL_RETURN_IF_ERROR(buffer->Extend(rows).status());
  }
  return buffer;
}

}  // namespace

absl::Span<const DistributedCase> DistributedCases() { return kCases; }

absl::StatusOr<TensorDict> MakeRows(const DistributedCase& of) {
  const struct {
    const char* key;
    DType dtype;
    int64_t elements;
  } kLeaves[] = {
      {"observation", DType::kFloat32, 4},
      {"action", DType::kInt64, 1},
      {"next/observation", DType::kFloat32, 4},
      {"next/reward", DType::kFloat32, 1},
      {"next/done", DType::kBool, 1},
      {"next/terminated", DType::kBool, 1},
      {"next/truncated", DType::kBool, 1},
      {"pixels", DType::kUInt8, of.pixels},
  };
  TensorDict rows({of.rows});
  for (const auto& [key, dtype, elements] : kLeaves) {
    if (elements == 0) continue;
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          Tensor::Empty(dtype, {of.rows, elements}));
    // Memory that was never written is one page for all.
    std::memset(leaf.raw_data(), 1, static_cast<size_t>(leaf.size_bytes()));
    RILL_RETURN_IF_ERROR(rows.Set(key, std::move(leaf)));
  }
  return rows;
}

void BareTable::Draw(int64_t rows, void* to) {
  auto* at = static_cast<char*>(to);
  for (int64_t i = 0; i < rows; ++i, at += row_bytes_) {
    std::memcpy(at, bytes_.data() + random_() % kTableRows * row_bytes_,
                row_bytes_);
  }
}

void BareTable::Write(int64_t rows, const void* from) {
  const auto* at = static_cast<const char*>(from);
  for (int64_t i = 0; i < rows; ++i, at += row_bytes_) {
    std::memcpy(bytes_.data() + next_ * row_bytes_, at, row_bytes_);
    next_ = (next_ + 1) % kTableRows;
  }
}

absl::Status MeasureCases(bool is_quick, OpenCase open) {
  for (const DistributedCase& of : kCases) {
    RILL_ASSIGN_OR_RETURN(const RunExchanges run, open(of));
    RILL_ASSIGN_OR_RETURN(const double seconds,
                          SecondsAnExchange(is_quick, run));
    absl::PrintF("%s\t%.9f\t%d\n", of.name, seconds,
                 of.rows * (of.pixels + 47));
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

int SideMain(
    int argc, char** argv, const std::vector<absl::string_view>& others,
    absl::FunctionRef<absl::Status(absl::string_view side, bool is_quick)>
        run) {
  std::vector<absl::string_view> sides = {kBareSide, kTableSide, kRillSide};
  sides.insert(sides.end(), others.begin(), others.end());
  const std::vector<absl::string_view> arguments(argv + 1, argv + argc);
  const bool is_quick = arguments.size() == 2 && arguments[1] == "--quick";
  absl::Status status;
  if ((arguments.size() == 1 || is_quick) &&
      std::count(sides.begin(), sides.end(), arguments[0]) == 1) {
    status = run(arguments[0], is_quick);
  } else {
    status = InvalidArgument("got \"", absl::StrJoin(arguments, " "),
                             "\", want bare, table or rill, and --quick or "
                             "nothing");
  }
  if (status.ok()) return 0;
  absl::FPrintF(stderr, "distributed: %s\n", status.ToString());
  return 1;
}

absl::StatusOr<std::shared_ptr<Service>> MakeCasesService() {
  ReplayService::Tables tables;
  for (const DistributedCase& of : kCases) {
    auto& table = tables[TableOf(of.pixels)];
    if (table != nullptr) continue;
    RILL_ASSIGN_OR_RETURN(table, MakeTable(of));
  }
  ServiceSet::Services services;
  RILL_ASSIGN_OR_RETURN(services["replay"],
                        ReplayService::Create(std::move(tables)));
  services["echo"] = std::make_shared<EchoService>();
  return std::make_shared<ServiceSet>(std::move(services));
}

absl::Status MeasureRill(bool is_quick, std::shared_ptr<Transport> transport,
                         const std::string& address) {
  const RemoteServer server = {.transport = std::move(transport),
                               .address = address};
  RILL_RETURN_IF_ERROR(MeasureCases(
      is_quick, [&](const DistributedCase& of) -> absl::StatusOr<RunExchanges> {
        return OpenRill(of, server);
      }));
  for (const DistributedCase& of : kCases) {
    if (of.kind != DistributedCase::kSample || of.pixels == k56Kb) continue;
    RILL_RETURN_IF_ERROR(MeasureLearner(is_quick, of, server));
  }
  return absl::OkStatus();
}

}  // namespace rill

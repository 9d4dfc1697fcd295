// SPDX-License-Identifier: Apache-2.0
// One side of benchmarks/distributed over MPI, as a job of two ranks: rank 1
// serves rank 0.
// usage: mpirun -n 2 distributed_mpi_main bare|table|rill [--quick]
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/distributed_cases.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/mpi/mpi_transport.h"
#include "rill/distributed/transport/ranks/rank_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {
namespace {

// --- MPI alone ---------------------------------------------------------------

constexpr int kClient = 0;
constexpr int kServer = 1;
constexpr int kTag = 0;
constexpr int kWord = 8;  // Bytes of a message without rows.
// The server receives it: the exchanges to make, and of which case.
struct Order {
  int64_t exchanges = 0;  // 0: no more.
  int64_t number = 0;
};

// Messages of one rank's side of an exchange, in blocks that are used again one
// after the other.
struct Messages {
  Messages(int64_t bytes, int64_t ahead)
      : blocks(static_cast<size_t>(ahead),
               std::vector<char>(static_cast<size_t>(bytes), 1)),
        requests(static_cast<size_t>(ahead), MPI_REQUEST_NULL) {}

  void Send(int64_t number, int rank) {
    MPI_Request* const request = Await(number);
    std::vector<char>& block = BlockOf(number);
    MPI_Isend(block.data(), static_cast<int>(block.size()), MPI_BYTE, rank,
              kTag, MPI_COMM_WORLD, request);
  }
  void Receive(int64_t number, int rank) {
    MPI_Request* const request = Await(number);
    std::vector<char>& block = BlockOf(number);
    MPI_Irecv(block.data(), static_cast<int>(block.size()), MPI_BYTE, rank,
              kTag, MPI_COMM_WORLD, request);
  }
  // Until message `number`, or the one that had its request before, is done.
  MPI_Request* Await(int64_t number) {
    MPI_Request* const request =
        &requests[static_cast<size_t>(number) % requests.size()];
    MPI_Wait(request, MPI_STATUS_IGNORE);
    return request;
  }
  std::vector<char>& BlockOf(int64_t number) {
    return blocks[static_cast<size_t>(number) % blocks.size()];
  }
  void AwaitAll() {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(),
                MPI_STATUSES_IGNORE);
  }

  std::vector<std::vector<char>> blocks;
  std::vector<MPI_Request> requests;
};

int64_t BytesOf(const DistributedCase& of, bool has_rows) {
  return has_rows ? of.rows * (of.pixels + 47) : kWord;
}

// Requests and replies of a case on one rank.
struct BareRank {
  BareRank(const DistributedCase& of, bool has_table)
      : requests(BytesOf(of, of.kind != DistributedCase::kSample), of.ahead),
        replies(BytesOf(of, of.kind != DistributedCase::kInsert), of.ahead),
        kind(of.kind),
        rows(of.rows),
        ahead(of.ahead) {
    if (has_table) table.emplace(of.pixels + 47);
  }

  void Ask(int64_t exchanges) {
    for (int64_t sent = 0, received = 0; received < exchanges; ++received) {
      for (; sent < exchanges && sent < received + ahead; ++sent) {
        replies.Receive(sent, kServer);
        requests.Send(sent, kServer);
      }
      replies.Await(received);
    }
    requests.AwaitAll();
  }
  void Answer(int64_t exchanges) {
    const int64_t first = std::min(exchanges, ahead);
    for (int64_t i = 0; i < first; ++i) requests.Receive(i, kClient);
    for (int64_t i = 0; i < exchanges; ++i) {
      requests.Await(i);
      if (table && kind == DistributedCase::kInsert) {
        table->Write(rows, requests.BlockOf(i).data());
      }
      if (table && kind == DistributedCase::kSample) {
        replies.Await(i);
        table->Draw(rows, replies.BlockOf(i).data());
      }
      replies.Send(i, kClient);
      if (i + ahead < exchanges) requests.Receive(i + ahead, kClient);
    }
    replies.AwaitAll();
  }

  Messages requests;
  Messages replies;
  std::optional<BareTable> table;
  const DistributedCase::Kind kind;
  const int64_t rows;
  const int64_t ahead;
};

void SendOrder(const Order& order) {
  MPI_Send(&order, sizeof(order), MPI_BYTE, kServer, kTag, MPI_COMM_WORLD);
}

absl::Status MeasureBare(bool is_quick) {
  RILL_RETURN_IF_ERROR(MeasureCases(
      is_quick, [](const DistributedCase& of) -> absl::StatusOr<RunExchanges> {
        const int64_t number = &of - DistributedCases().data();
        auto rank = std::make_shared<BareRank>(of, /*has_table=*/false);
        return [number, rank = std::move(rank)](int64_t exchanges) {
          SendOrder({.exchanges = exchanges, .number = number});
          rank->Ask(exchanges);
          return absl::OkStatus();
        };
      }));
  SendOrder({});
  return absl::OkStatus();
}

absl::Status ServeBare(bool has_table) {
  std::unique_ptr<BareRank> rank;
  for (int64_t number = -1;;) {
    Order order;
    MPI_Recv(&order, sizeof(order), MPI_BYTE, kClient, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    if (order.exchanges == 0) return absl::OkStatus();
    if (order.number != number) {
      number = order.number;
      rank = std::make_unique<BareRank>(
          DistributedCases()[static_cast<size_t>(number)], has_table);
    }
    rank->Answer(order.exchanges);
  }
}

absl::Status RunBare(bool has_table, bool is_quick) {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const absl::Status status =
      rank == kClient ? MeasureBare(is_quick) : ServeBare(has_table);
  MPI_Finalize();
  return status;
}

// --- Rill --------------------------------------------------------------------

constexpr char kEnd[] = "end";

// Ends the server when it is called.
class EndService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo& /*info*/,
                               const Message& request) override {
    has_ended.Notify();
    return request;
  }

  absl::Notification has_ended;
};

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

absl::Status RunRill(bool is_quick,
                     const std::shared_ptr<RankTransport>& transport) {
  const std::string address = absl::StrCat("rank:", kServer);
  if (transport->rank() == kServer) {
    const auto end = std::make_shared<EndService>();
    RILL_ASSIGN_OR_RETURN(
        const auto ends, transport->Listen(absl::StrCat(address, "/end"), end));
    RILL_ASSIGN_OR_RETURN(const auto service, MakeCasesService());
    RILL_ASSIGN_OR_RETURN(const auto server,
                          transport->Listen(address, service));
    end->has_ended.WaitForNotification();
    return ends->Shutdown(Soon());
  }
  // Until it listens.
  absl::StatusOr<std::unique_ptr<Connection>> connection;
  const absl::Time deadline = Soon();
  do {
    connection = transport->Connect(address, deadline);
  } while (absl::IsUnavailable(connection.status()) &&
           Clock::System().Now() < deadline);
  RILL_RETURN_IF_ERROR(connection.status());
  absl::Status status = MeasureRill(is_quick, transport, address);
  connection = transport->Connect(absl::StrCat(address, "/end"), Soon());
  if (connection.ok()) {
    status.Update((*connection)->Call(kEnd, {}, Soon()).status());
  }
  return status;
}

absl::Status Run(absl::string_view side, bool is_quick) {
  if (side != kRillSide) return RunBare(side == kTableSide, is_quick);
  RILL_ASSIGN_OR_RETURN(const std::shared_ptr<RankTransport> transport,
                        CreateMpiTransport());
  const absl::Status status = RunRill(is_quick, transport);
  if (status.ok()) return status;
  absl::FPrintF(stderr, "distributed: %s\n", status.ToString());
  // The end of the transport would wait for the other rank; so mpirun ends it.
  std::_Exit(1);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  return rill::SideMain(argc, argv, {}, rill::Run);
}

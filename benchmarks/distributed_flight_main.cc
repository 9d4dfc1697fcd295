// SPDX-License-Identifier: Apache-2.0
// One side of benchmarks/distributed over Arrow Flight. The server is a process
// of its own: this program again.
// usage: distributed_flight_main bare|table|rill [--quick]
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "arrow/array/array_base.h"
#include "arrow/array/data.h"
#include "arrow/buffer.h"
#include "arrow/flight/client.h"
#include "arrow/flight/server.h"
#include "arrow/record_batch.h"
#include "arrow/status.h"
#include "rill/base/process/child_process.h"
#include "rill/base/status_macros.h"
#include "rill/benchmarks/distributed_cases.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

namespace flight = ::arrow::flight;

// Modes of the server's process.
constexpr char kServeRill[] = "serve-rill";
constexpr char kServeBare[] = "serve-bare";
constexpr char kServeTable[] = "serve-table";

absl::Status Of(const arrow::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(status.ToString());
}

// Rows as Flight sends them, and where their pixels are; null: none.
struct SentRows {
  std::shared_ptr<arrow::RecordBatch> batch = nullptr;
  std::byte* pixels = nullptr;
};

absl::StatusOr<SentRows> MakeSentRows(const DistributedCase& of) {
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, MakeRows(of));
  SentRows sent;
  if (of.pixels > 0) {
    RILL_ASSIGN_OR_RETURN(const Tensor pixels, rows.Get("pixels"));
    sent.pixels = pixels.raw_data();
  }
  RILL_ASSIGN_OR_RETURN(sent.batch, ToArrow(rows));  // Keeps the pixels.
  return sent;
}

// A list of fixed size is a column of its elements.
const uint8_t* PixelsOf(const arrow::RecordBatch& batch) {
  return batch.GetColumnByName("pixels")
      ->data()
      ->child_data[0]
      ->GetValues<uint8_t>(1);
}

// --- Flight alone ------------------------------------------------------------

std::shared_ptr<arrow::Buffer> Word() {
  return arrow::Buffer::FromString("next");
}

// Answers what the case of the path's number wants. With a table the pixels of
// samples are drawn from it, and those of inserts are written to it.
class BareServer final : public flight::FlightServerBase {
 public:
  explicit BareServer(bool has_table) : has_table_(has_table) {}

  arrow::Status DoExchange(
      const flight::ServerCallContext& /*context*/,
      std::unique_ptr<flight::FlightMessageReader> reader,
      std::unique_ptr<flight::FlightMessageWriter> writer) override {
    size_t number = 0;
    const std::vector<std::string>& path = reader->descriptor().path;
    if (path.size() != 1 || !absl::SimpleAtoi(path[0], &number) ||
        number >= DistributedCases().size()) {
      return arrow::Status::Invalid("path");
    }
    const DistributedCase& of = DistributedCases()[number];
    std::optional<BareTable> table;
    if (has_table_ && of.pixels > 0) table.emplace(of.pixels);
    // While one is sent, the next one is made.
    std::vector<SentRows> rows;
    for (int i = 0; i < (table ? 2 : 1); ++i) {
      absl::StatusOr<SentRows> made = MakeSentRows(of);
      if (!made.ok()) return arrow::Status::Invalid(made.status().ToString());
      rows.push_back(*std::move(made));
    }
    if (of.kind != DistributedCase::kInsert) {
      ARROW_RETURN_NOT_OK(writer->Begin(rows[0].batch->schema()));
    }
    for (size_t answered = 0;; ++answered) {
      ARROW_ASSIGN_OR_RAISE(const auto chunk, reader->Next());
      if (chunk.data == nullptr && chunk.app_metadata == nullptr) break;
      if (of.kind == DistributedCase::kCall) {
        ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*chunk.data));
      } else if (of.kind == DistributedCase::kInsert) {
        if (table) table->Write(of.rows, PixelsOf(*chunk.data));
        ARROW_RETURN_NOT_OK(writer->WriteMetadata(Word()));
      } else {
        const SentRows& sent = rows[answered % rows.size()];
        if (table) table->Draw(of.rows, sent.pixels);
        ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*sent.batch));
      }
    }
    return arrow::Status::OK();
  }

 private:
  const bool has_table_;
};

struct BareStream {
  flight::FlightClient::DoExchangeResult exchange;
  std::vector<SentRows> rows;  // Of requests, in turns; empty: none.

  arrow::Status Run(int64_t exchanges, int64_t ahead) const {
    for (int64_t sent = 0, received = 0; received < exchanges; ++received) {
      for (; sent < exchanges && sent < received + ahead; ++sent) {
        ARROW_RETURN_NOT_OK(
            rows.empty()
                ? exchange.writer->WriteMetadata(Word())
                : exchange.writer->WriteRecordBatch(
                      *rows[static_cast<size_t>(sent) % rows.size()].batch));
      }
      ARROW_ASSIGN_OR_RAISE(const auto chunk, exchange.reader->Next());
      if (chunk.data == nullptr && chunk.app_metadata == nullptr) {
        return arrow::Status::IOError("the server has ended the stream");
      }
    }
    return arrow::Status::OK();
  }
};

absl::StatusOr<RunExchanges> OpenBare(flight::FlightClient* client,
                                      const DistributedCase& of,
                                      bool has_table) {
  const auto number = &of - DistributedCases().data();
  auto exchange = client->DoExchange(
      flight::FlightDescriptor::Path({absl::StrCat(number)}));
  RILL_RETURN_IF_ERROR(Of(exchange.status()));
  auto stream = std::make_shared<BareStream>();
  stream->exchange = *std::move(exchange);
  if (of.kind != DistributedCase::kSample) {
    for (int64_t i = 0; i < (has_table ? of.ahead : 1); ++i) {
      RILL_ASSIGN_OR_RETURN(stream->rows.emplace_back(), MakeSentRows(of));
    }
    RILL_RETURN_IF_ERROR(
        Of(stream->exchange.writer->Begin(stream->rows[0].batch->schema())));
  }
  return [stream = std::move(stream), ahead = of.ahead](int64_t exchanges) {
    return Of(stream->Run(exchanges, ahead));
  };
}

absl::Status MeasureBare(bool has_table, bool is_quick,
                         const std::string& address) {
  const auto location = flight::Location::Parse(address);
  RILL_RETURN_IF_ERROR(Of(location.status()));
  const auto client = flight::FlightClient::Connect(*location);
  RILL_RETURN_IF_ERROR(Of(client.status()));
  return MeasureCases(
      is_quick, [&](const DistributedCase& of) -> absl::StatusOr<RunExchanges> {
        return OpenBare(client->get(), of, has_table);
      });
}

// --- Both sides --------------------------------------------------------------

// Says where it serves, and does so until the starter has gone.
absl::Status SayAndWait(const std::string& address) {
  const std::string line = address + "\n";
  if (write(3, line.data(), line.size()) < 0) {
    return absl::UnavailableError("descriptor 3 takes no address");
  }
  char byte;
  while (read(4, &byte, 1) > 0) {
  }
  return absl::OkStatus();
}

absl::Status Serve(absl::string_view mode) {
  if (mode == kServeRill) {
    RILL_ASSIGN_OR_RETURN(const auto service, MakeCasesService());
    RILL_ASSIGN_OR_RETURN(const auto transport, FlightTransport::Create());
    RILL_ASSIGN_OR_RETURN(const auto server, transport->Listen("", service));
    return SayAndWait(server->address());
  }
  BareServer server(mode == kServeTable);
  const auto location = flight::Location::ForGrpcTcp("127.0.0.1", 0);
  RILL_RETURN_IF_ERROR(Of(location.status()));
  RILL_RETURN_IF_ERROR(Of(server.Init(flight::FlightServerOptions(*location))));
  RILL_RETURN_IF_ERROR(
      SayAndWait(absl::StrCat("grpc://127.0.0.1:", server.port())));
  return Of(server.Shutdown());
}

absl::Status Measure(absl::string_view side, bool is_quick) {
  std::array<int, 2> says, life;
  if (pipe2(says.data(), O_CLOEXEC) != 0 ||
      pipe2(life.data(), O_CLOEXEC) != 0) {
    return absl::UnavailableError("pipe2: no descriptors");
  }
  const std::string mode = absl::StrCat("serve-", side);
  RILL_ASSIGN_OR_RETURN(
      const auto server,
      ChildProcess::Start({.program = "/proc/self/exe",
                           .arguments = {mode},
                           .descriptors = {says[1], life[0]}}));
  close(says[1]);
  std::string address;
  char byte;
  while (read(says[0], &byte, 1) == 1 && byte != '\n') address += byte;
  if (side != kRillSide) {
    return MeasureBare(side == kTableSide, is_quick, address);
  }
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Transport> transport,
                        FlightTransport::Create());
  return MeasureRill(is_quick, std::move(transport), address);
}

absl::Status Run(absl::string_view side, bool is_quick) {
  if (absl::StartsWith(side, "serve-")) return Serve(side);
  return Measure(side, is_quick);
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  return rill::SideMain(argc, argv,
                        {rill::kServeRill, rill::kServeBare, rill::kServeTable},
                        rill::Run);
}

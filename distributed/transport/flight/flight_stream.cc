// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_stream.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "arrow/flight/client.h"
#include "arrow/status.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/blocking_stream.h"
#include "rill/distributed/transport/flight/flight_message.h"
#include "rill/distributed/transport/message.h"

namespace rill::flight_internal {
namespace {

class FlightExchange final : public BlockingExchange {
 public:
  explicit FlightExchange(FlightStreamParts parts) : parts_(std::move(parts)) {}
  // Else Flight logs that it was cancelled.
  ~FlightExchange() override {
    if (exchange_.writer != nullptr) (void)exchange_.writer->Close();
  }

  absl::StatusOr<Write> Prepare(const Message& request,
                                absl::Time deadline) override {
    RILL_ASSIGN_OR_RETURN(FlightMessage message, EncodeRequest(request));
    return [this, deadline, message = std::move(message)]() mutable {
      AddTimes(deadline, &message);
      return StatusOfFlight(parts_.who, writer_->Write(message));
    };
  }

  absl::Status Begin() override {
    auto exchange = parts_.client->DoExchange(
        parts_.options, arrow::flight::FlightDescriptor::Path({parts_.method}));
    if (!exchange.ok()) return StatusOfFlight(parts_.who, exchange.status());
    exchange_ = *std::move(exchange);
    writer_.emplace(exchange_.writer.get());
    return absl::OkStatus();
  }

  absl::StatusOr<Reply> Read() override {
    const auto chunk = exchange_.reader->Next();
    if (!chunk.ok()) return StatusOfFlight(parts_.who, chunk.status());
    if (chunk->data == nullptr && chunk->app_metadata == nullptr) {
      return Unavailable(parts_.who, ": the server has ended the stream");
    }
    absl::StatusOr<Reply> reply = DecodeReply(*chunk);
    if (!reply.ok()) return Reply{.status = reply.status()};
    return reply;
  }

  void Cancel() override { exchange_.reader->Cancel(); }

 private:
  const FlightStreamParts parts_;
  // Begin sets these.
  arrow::flight::FlightClient::DoExchangeResult exchange_;
  std::optional<MessageWriter> writer_;
};

}  // namespace

std::unique_ptr<CallStream> MakeFlightStream(FlightStreamParts parts) {
  std::string who = parts.who;
  const int64_t window = parts.window;
  return std::make_unique<BlockingStream>(
      std::make_unique<FlightExchange>(std::move(parts)), std::move(who),
      window);
}

}  // namespace rill::flight_internal

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_MESSAGE_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/request_ages.h"

namespace arrow {
class RecordBatch;
class Schema;
class Status;
namespace flight {
class MetadataRecordBatchWriter;
struct FlightStreamChunk;
}  // namespace flight
}  // namespace arrow

namespace rill::flight_internal {

// A message as Flight carries it.
struct FlightMessage {
  std::shared_ptr<arrow::RecordBatch> batch = nullptr;  // Null: no columns.
  int64_t batch_bytes = 0;
  std::string metadata = {};
};

// INVALID_ARGUMENT names the key that Arrow has no column for.
absl::StatusOr<FlightMessage> EncodeRequest(const Message& request);
// Once, when the request is written. Behind the deadline the server says so.
void AddTimes(absl::Time deadline, FlightMessage* request);
// A message that cannot be carried becomes an error's reply.
FlightMessage EncodeReply(const absl::StatusOr<Message>& reply);

// Messages of one direction of a stream, one thread's.
class MessageWriter {
 public:
  explicit MessageWriter(arrow::flight::MetadataRecordBatchWriter* writer)
      : writer_(writer) {}
  // May wait for as long as the other side does not read.
  arrow::Status Write(const FlightMessage& message);

 private:
  arrow::flight::MetadataRecordBatchWriter* const writer_;
  std::shared_ptr<arrow::Schema> schema_;  // Of all batches; null before one.
};

// The next of a stream, that was read now. Takes anything; INVALID_ARGUMENT.
absl::StatusOr<Request> DecodeRequest(
    const arrow::flight::FlightStreamChunk& chunk, RequestAges* ages);
absl::StatusOr<Reply> DecodeReply(
    const arrow::flight::FlightStreamChunk& chunk);

// Whether and why a stream or a call failed: UNAVAILABLE, but for the errors of
// a token and of a deadline. `who` begins the text.
absl::Status StatusOfFlight(absl::string_view who, const arrow::Status& status);

}  // namespace rill::flight_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_MESSAGE_H_

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_message.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "arrow/buffer.h"
#include "arrow/flight/types.h"
#include "arrow/io/memory.h"
#include "arrow/ipc/reader.h"
#include "arrow/ipc/writer.h"
#include "arrow/record_batch.h"
#include "arrow/status.h"
#include "arrow/type.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/distributed/transport/message_header.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::flight_internal {
namespace {

// A message is a protocol buffer, whose bytes are an int32; this is what is
// left for all but the elements.
constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max() - (1 << 24);

absl::StatusOr<FlightMessage> Encode(const Message& message,
                                     MessageHeader metadata) {
  const TensorDict& batch = message.batch;
  metadata.values = message.values;
  if (batch.batch_shape().rank() > 0 || !batch.empty()) {
    metadata.batch_shape = batch.batch_shape();
    metadata.dim_names = batch.dim_names();
  }
  FlightMessage encoded;
  RILL_ASSIGN_OR_RETURN(encoded.metadata, EncodeMessageHeader(metadata));
  encoded.batch_bytes = batch.size_bytes();
  if (encoded.batch_bytes + static_cast<int64_t>(encoded.metadata.size()) >
      kMaxBytes) {
    return InvalidArgument("message: got ", encoded.batch_bytes,
                           " bytes, want at most ", kMaxBytes);
  }
  if (!batch.empty()) {
    RILL_ASSIGN_OR_RETURN(encoded.batch,
                          ToArrow(batch, {.writes_batch_shape = false}));
  }
  return encoded;
}

struct Decoded {
  MessageHeader metadata;
  TensorDict batch;
};

// The batch whose stream of Arrow's IPC stands behind the metadata.
absl::StatusOr<std::shared_ptr<arrow::RecordBatch>> ReadIpc(
    std::shared_ptr<arrow::Buffer> bytes) {
  auto reader = arrow::ipc::RecordBatchStreamReader::Open(
      std::make_shared<arrow::io::BufferReader>(std::move(bytes)));
  std::shared_ptr<arrow::RecordBatch> batch;
  arrow::Status status = reader.status();
  if (status.ok()) status = (*reader)->ReadNext(&batch);
  if (status.ok() && batch != nullptr) return batch;
  return InvalidArgument("metadata: no batch behind it: ", status.message());
}

absl::StatusOr<Decoded> Decode(const arrow::flight::FlightStreamChunk& chunk) {
  if (chunk.app_metadata == nullptr) {
    return InvalidArgument("message: got no metadata, want JSON");
  }
  const absl::string_view all(
      reinterpret_cast<const char*>(chunk.app_metadata->data()),
      static_cast<size_t>(chunk.app_metadata->size()));
  const size_t end = all.find('\n');
  Decoded decoded;
  RILL_ASSIGN_OR_RETURN(decoded.metadata,
                        DecodeMessageHeader(all.substr(0, end)));
  if (!decoded.metadata.error.ok()) return decoded;
  std::shared_ptr<arrow::RecordBatch> batch = chunk.data;
  if (end != absl::string_view::npos) {
    RILL_ASSIGN_OR_RETURN(
        batch, ReadIpc(arrow::SliceBuffer(chunk.app_metadata,
                                          static_cast<int64_t>(end) + 1)));
  }
  if (batch == nullptr) {
    if (decoded.metadata.batch_shape.has_value()) {
      decoded.batch = TensorDict(*decoded.metadata.batch_shape);
    }
  } else {
    // Nobody else has the batch that came in.
    RILL_ASSIGN_OR_RETURN(
        decoded.batch,
        FromArrow(batch, {.batch_shape = decoded.metadata.batch_shape,
                          .is_writable = true}));
  }
  if (!decoded.metadata.dim_names.empty()) {
    RILL_RETURN_IF_ERROR(decoded.batch.SetDimNames(decoded.metadata.dim_names));
  }
  return decoded;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> WriteIpc(
    const FlightMessage& message) {
  ARROW_ASSIGN_OR_RAISE(const auto bytes,
                        arrow::io::BufferOutputStream::Create());
  ARROW_RETURN_NOT_OK(bytes->Write(message.metadata));
  ARROW_RETURN_NOT_OK(bytes->Write("\n", 1));
  ARROW_ASSIGN_OR_RAISE(const auto writer, arrow::ipc::MakeStreamWriter(
                                               bytes, message.batch->schema()));
  ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*message.batch));
  ARROW_RETURN_NOT_OK(writer->Close());
  return bytes->Finish();
}

}  // namespace

absl::StatusOr<FlightMessage> EncodeRequest(const Message& request) {
  return Encode(request, {});
}

void AddTimes(absl::Time deadline, FlightMessage* request) {
  AddHeaderTimes(deadline - Clock::System().Now(),
                 Clock::Steady().Now() - absl::UnixEpoch(), &request->metadata);
}

FlightMessage EncodeReply(const absl::StatusOr<Message>& reply) {
  absl::StatusOr<FlightMessage> encoded =
      reply.ok() ? Encode(*reply, {}) : reply.status();
  if (encoded.ok()) return *std::move(encoded);
  // An error can be encoded.
  return {.metadata = *EncodeMessageHeader({.error = encoded.status()})};
}

arrow::Status MessageWriter::Write(const FlightMessage& message) {
  if (message.batch == nullptr) {
    return writer_->WriteMetadata(arrow::Buffer::FromString(message.metadata));
  }
  const std::shared_ptr<arrow::Schema>& schema = message.batch->schema();
  if (schema_ == nullptr) {
    ARROW_RETURN_NOT_OK(writer_->Begin(schema));
    schema_ = schema;
  }
  if (schema_->Equals(*schema, /*check_metadata=*/true)) {
    return writer_->WriteWithMetadata(
        *message.batch, arrow::Buffer::FromString(message.metadata));
  }
  // A direction of a stream has one schema.
  ARROW_ASSIGN_OR_RAISE(auto bytes, WriteIpc(message));
  return writer_->WriteMetadata(std::move(bytes));
}

absl::StatusOr<Request> DecodeRequest(
    const arrow::flight::FlightStreamChunk& chunk, RequestAges* ages) {
  const absl::Time now = Clock::System().Now();
  RILL_ASSIGN_OR_RETURN(Decoded decoded, Decode(chunk));
  if (!decoded.metadata.error.ok()) {
    return InvalidArgument("request: got an error, want values");
  }
  const absl::Duration age =
      decoded.metadata.sent.has_value()
          ? ages->Of(Clock::Steady().Now(), *decoded.metadata.sent)
          : absl::ZeroDuration();
  return Request{.message = {.values = std::move(decoded.metadata.values),
                             .batch = std::move(decoded.batch)},
                 .deadline = now - age + decoded.metadata.timeout};
}

absl::StatusOr<Reply> DecodeReply(
    const arrow::flight::FlightStreamChunk& chunk) {
  RILL_ASSIGN_OR_RETURN(Decoded decoded, Decode(chunk));
  return Reply{.status = std::move(decoded.metadata.error),
               .message = {.values = std::move(decoded.metadata.values),
                           .batch = std::move(decoded.batch)}};
}

absl::Status StatusOfFlight(absl::string_view who,
                            const arrow::Status& status) {
  using arrow::flight::FlightStatusCode;
  if (status.ok()) return absl::OkStatus();
  // Behind the first sentence stand gRPC's own notes.
  absl::string_view text = status.message();
  text = text.substr(0, text.find(". gRPC client debug context"));
  text = text.substr(0, text.find(". Client context"));
  const std::string message = absl::StrCat(who, ": ", text);
  const auto detail = arrow::flight::FlightStatusDetail::UnwrapStatus(status);
  if (detail != nullptr) {
    switch (detail->code()) {
      case FlightStatusCode::Unauthenticated:
        return absl::UnauthenticatedError(message);
      case FlightStatusCode::Unauthorized:
        return absl::PermissionDeniedError(message);
      case FlightStatusCode::TimedOut:
        return absl::DeadlineExceededError(message);
      default:
        break;
    }
  }
  return absl::UnavailableError(message);
}

}  // namespace rill::flight_internal

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "arrow/flight/client.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"

namespace rill::flight_internal {

// A client's end of a stream. Flight's calls wait as long as it takes, so two
// threads of its own make them, the one that begins the stream among them. The
// caller waits for these by its deadline.
// A write to a peer that has stopped reading ends no sooner than the
// connection: the destructor leaves such a thread behind. Thread-safety: as
// CallStream.
class FlightStream final : public CallStream {
 public:
  struct Parts {
    std::string who;  // Begins messages.
    int64_t window;
    std::string method;
    std::shared_ptr<arrow::flight::FlightClient> client;
    arrow::flight::FlightCallOptions options;
  };
  explicit FlightStream(Parts parts);
  ~FlightStream() override;

  absl::Status Send(const Message& request, absl::Time deadline) override;
  absl::StatusOr<Reply> Receive(absl::Time deadline) override;

 private:
  class Core;

  const std::shared_ptr<Core> core_;  // The threads have it too.
  std::thread writes_;
  std::thread reads_;
};

}  // namespace rill::flight_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_FLIGHT_FLIGHT_STREAM_H_

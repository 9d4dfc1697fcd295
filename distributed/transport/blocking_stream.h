// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_BLOCKING_STREAM_H_
#define RILL_DISTRIBUTED_TRANSPORT_BLOCKING_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// The client's end of a stream in an engine whose calls wait as long as it
// takes: all that the engine has to be for a BlockingStream. Begin comes first,
// then Read and writes at once, a thread each.
class BlockingExchange {
 public:
  using Write = std::function<absl::Status()>;

  virtual ~BlockingExchange() = default;

  // Makes the request ready in the thread that sends it, perhaps before Begin;
  // an error is Send's, and the stream goes on. The write may come much later,
  // also behind `deadline`: the time that is left is known there.
  virtual absl::StatusOr<Write> Prepare(const Message& request,
                                        absl::Time deadline) = 0;
  virtual absl::Status Begin() = 0;
  // The next reply. An error ends the stream.
  virtual absl::StatusOr<Reply> Read() = 0;
  // Behind Begin, from any thread, perhaps several times and at once, also
  // behind an error of Read: Read and writes return an error. A write may take
  // until the connection ends.
  virtual void Cancel() = 0;
};

// A stream with two threads of its own, which make such calls. The caller waits
// for them by its deadline. The destructor leaves threads behind, with the
// exchange, whose call takes longer than 0.2 s.
// Thread-safety: as CallStream.
// Cost: two hand-overs between threads a call.
class BlockingStream final : public CallStream {
 public:
  // `who` begins messages.
  BlockingStream(std::unique_ptr<BlockingExchange> exchange, std::string who,
                 int64_t window);
  ~BlockingStream() override;

  absl::Status Send(const Message& request, absl::Time deadline) override;
  absl::StatusOr<Reply> Receive(absl::Time deadline) override;

 private:
  class Core;

  const std::shared_ptr<Core> core_;  // The threads have it too.
  std::thread writes_;
  std::thread reads_;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_BLOCKING_STREAM_H_

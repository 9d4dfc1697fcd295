// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_WAY_H_
#define RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_WAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/reply_window.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/transport.h"

namespace rill::inproc_internal {

// Calls of a service that come late, behind those of others.
// Thread-safety: thread-safe.
class LateCalls {
 public:
  // To be carried out when `calls` others have begun; never, where these do not
  // come.
  void Add(const CallInfo& info, const Message& request, int64_t calls);
  // Another call begins: carries out what is late by now.
  void CarryOutDue(Service& service);
  // The server is gone: no call comes any more, and requests are let go.
  void Close();

 private:
  struct Late {
    std::string method, peer;
    absl::Time deadline;
    Message request;
    int64_t calls;  // Before this one.
  };

  absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Late> late_ ABSL_GUARDED_BY(mu_);
};

// The way of a stream within the process, with its faults.
class InprocWay final : public ReplyWay {
 public:
  struct Parts {
    std::shared_ptr<ReplyWindow> replies = nullptr;  // The client has it too.
    std::shared_ptr<LateCalls> late = nullptr;
    std::string server = {};  // Its address.
    InprocFaults faults = {};
    uint64_t stream = 0;  // Its number among the engine's.
  };
  explicit InprocWay(Parts parts) : parts_(std::move(parts)) {}

  // Each request has its fate.
  void Await() override;
  std::optional<absl::StatusOr<Message>> Call(Service& service,
                                              const CallInfo& info,
                                              const Message& request) override;
  void Reply(absl::StatusOr<Message> reply) override;
  void End(const absl::Status& why) override { parts_.replies->End(why); }
  void Cut(const absl::Status& why) override { parts_.replies->Cut(why); }

 private:
  InprocFate NextFate() const {
    return DrawInprocFate(parts_.faults, parts_.stream, requests_);
  }

  const Parts parts_;
  uint32_t requests_ = 0;
};

}  // namespace rill::inproc_internal

#endif  // RILL_DISTRIBUTED_TRANSPORT_INPROC_INPROC_WAY_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVICE_H_
#define RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVICE_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// The server of the conformance suite. Its methods:
// - "echo": the request comes back.
// - "fail": the error of the request's values `code` and `text`.
// - "throw": an exception with the text "thrown".
// - "hold": the request comes back once Release was called; DEADLINE_EXCEEDED
//   where that does not come by the call's deadline.
// Thread-safety: thread-safe.
class HeldService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override;

  // Lets this call of "hold", and `count - 1` more, go on.
  void Release(int64_t count = 1);
  // Waits until so many calls have begun; false after a minute.
  bool AwaitBegun(int64_t count);
  int64_t begun() const;
  std::string last_method() const;
  std::string last_peer() const;
  absl::Time last_deadline() const;

 private:
  mutable absl::Mutex mu_;
  int64_t begun_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t released_ ABSL_GUARDED_BY(mu_) = 0;
  std::string last_method_ ABSL_GUARDED_BY(mu_);
  std::string last_peer_ ABSL_GUARDED_BY(mu_);
  absl::Time last_deadline_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_TRANSPORT_CONFORMANCE_HELD_SERVICE_H_

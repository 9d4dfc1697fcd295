// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_CLIENT_RETRYING_STREAM_H_
#define RILL_DISTRIBUTED_CLIENT_RETRYING_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

// A server's address, and what a client thinks of time.
struct RemoteServer {
  std::shared_ptr<Transport> transport = nullptr;  // Required.
  std::string address = {};
  // The server answers a request within this time, and has done nothing where
  // it could not, as where a rate limiter holds it. A connection that has been
  // silent for twice as long is given up and made anew.
  absl::Duration reply_timeout = absl::Seconds(5);
  // How long one call tries, over as many connections as it takes.
  absl::Duration timeout = absl::Seconds(60);
};

// INVALID_ARGUMENT, beginning with `caller`, names the option.
absl::Status CheckRemoteServer(const std::string& caller,
                               const RemoteServer& server);

// One stream to a server, which is opened again behind each error. Waits
// between attempts grow from 1 to 100 ms, and to what the last attempt took.
// Thread-safety: thread-compatible.
class RetryingStream {
 public:
  // Called for each new connection, before its stream is used.
  using Greeting = std::function<absl::Status(Connection&, absl::Time)>;

  RetryingStream(RemoteServer server, std::string method, int64_t window,
                 Greeting greeting)
      : server_(std::move(server)),
        method_(std::move(method)),
        window_(window),
        greeting_(std::move(greeting)) {}

  // The stream; null where there is none.
  CallStream* stream() { return stream_.get(); }
  // Connects where there is no stream. One attempt; the error of the last one
  // where the time for the next has not come.
  absl::Status Open();
  // Gives the stream up because of an error, which is returned.
  absl::Status Drop(absl::Status why);
  // Gives it up for no error: the next attempt may come at once.
  void Reset();
  // The stream works: the next wait is a short one.
  void Worked() { wait_ = absl::ZeroDuration(); }
  // Waits until the next attempt is due. False where `deadline` comes first.
  bool AwaitAttempt(absl::Time deadline);
  // The value of `attempt`, or its error that is final
  // (transport/final_error.h). It is called again behind others until
  // `deadline`, which give its last error, behind `who` and the address.
  template <typename Attempt>
  std::invoke_result_t<const Attempt&> Persist(absl::string_view who,
                                               absl::Time deadline,
                                               const Attempt& attempt) {
    for (;;) {
      auto result = attempt();
      if (result.ok() || IsFinalError(result.status())) return result;
      if (!AwaitAttempt(deadline)) {
        return absl::Status(result.status().code(),
                            absl::StrCat(who, " at \"", server_.address,
                                         "\": ", result.status().message()));
      }
    }
  }

  // Connections that were made.
  int64_t connects() const { return connects_; }
  const RemoteServer& server() const { return server_; }

 private:
  absl::Status Connect(absl::Time deadline);

  const RemoteServer server_;
  const std::string method_;
  const int64_t window_;
  const Greeting greeting_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<CallStream> stream_;
  int64_t connects_ = 0;
  absl::Status last_error_;
  absl::Duration wait_ = absl::ZeroDuration();
  absl::Time next_attempt_ = absl::InfinitePast();
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_CLIENT_RETRYING_STREAM_H_

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_server.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "arrow/flight/server.h"
#include "arrow/flight/server_middleware.h"
#include "arrow/status.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/flight/flight_message.h"
#include "rill/distributed/transport/listen_error.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/request_ages.h"
#include "rill/distributed/transport/running_calls.h"

namespace rill::flight_internal {
namespace {

namespace flight = ::arrow::flight;

// Far longer than streams take to end where no call runs.
constexpr absl::Duration kStreamsEnd = absl::Seconds(1);

// As long as it takes to look at all of `want`, whatever `got` is.
bool IsSame(absl::string_view got, absl::string_view want) {
  size_t difference = got.size() ^ want.size();
  for (size_t i = 0; i < want.size(); ++i) {
    const char other = i < got.size() ? got[i] : '\0';
    difference |= static_cast<unsigned char>(other ^ want[i]);
  }
  return difference == 0;
}

class TokenCheck final : public flight::ServerMiddlewareFactory {
 public:
  explicit TokenCheck(absl::string_view token)
      : want_(absl::StrCat("Bearer ", token)) {}

  arrow::Status StartCall(
      const flight::CallInfo& /*info*/,
      const flight::ServerCallContext& context,
      std::shared_ptr<flight::ServerMiddleware>* /*middleware*/) override {
    const auto& headers = context.incoming_headers();
    const auto [begin, end] = headers.equal_range("authorization");
    for (auto it = begin; it != end; ++it) {
      if (IsSame(it->second, want_)) return arrow::Status::OK();
    }
    return flight::MakeFlightError(
        flight::FlightStatusCode::Unauthenticated,
        begin == end ? "got no token, want this server's"
                     : "got another token, want this server's");
  }

 private:
  const std::string want_;
};

// From here on a reply takes far longer to write than a thread to wake.
constexpr int64_t kLongReplyBytes = 256 << 10;

// Writes a stream's replies in order, and ends their calls. Long ones are
// written on a thread of its own, so that the service may be at the next
// request meanwhile.
class ReplyWriter {
 public:
  ReplyWriter(flight::FlightMessageWriter* writer, RunningCalls* calls)
      : calls_(*calls), writer_(writer) {}
  // Behind the last reply.
  ~ReplyWriter() {
    if (!thread_.joinable()) return;
    {
      absl::MutexLock lock(&mu_);
      is_ending_ = true;
    }
    thread_.join();
  }

  // Waits until no other reply waits. The error is that of this or an earlier
  // one.
  arrow::Status Write(FlightMessage reply) {
    absl::ReleasableMutexLock lock(&mu_);
    const auto has_room = [this] {
      mu_.AssertReaderHeld();
      return !waiting_.has_value();
    };
    mu_.Await(absl::Condition(&has_room));
    if (status_.ok() && (is_writing_ || reply.batch_bytes >= kLongReplyBytes)) {
      waiting_ = std::move(reply);
      if (!thread_.joinable()) thread_ = std::thread([this] { WriteAll(); });
      return status_;
    }
    arrow::Status status = status_;
    lock.Release();
    if (status.ok()) status = writer_.Write(reply);
    calls_.End();
    return status;
  }

 private:
  // The thread.
  void WriteAll() {
    FlightMessage reply;
    while (Take(&reply)) {
      const arrow::Status status = writer_.Write(reply);
      reply = {};
      calls_.End();
      absl::MutexLock lock(&mu_);
      is_writing_ = false;
      status_ = status;
    }
  }
  bool Take(FlightMessage* reply) {
    absl::MutexLock lock(&mu_);
    const auto has_work = [this] {
      mu_.AssertReaderHeld();
      return waiting_.has_value() || is_ending_;
    };
    mu_.Await(absl::Condition(&has_work));
    if (!waiting_.has_value()) return false;
    *reply = *std::exchange(waiting_, std::nullopt);
    is_writing_ = true;
    return true;
  }

  RunningCalls& calls_;
  MessageWriter writer_;
  std::thread thread_;
  absl::Mutex mu_;
  std::optional<FlightMessage> waiting_ ABSL_GUARDED_BY(mu_);
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;  // The thread.
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  arrow::Status status_ ABSL_GUARDED_BY(mu_);
};

// The server as Flight sees it.
class Handler final : public flight::FlightServerBase {
 public:
  explicit Handler(std::shared_ptr<Service> service)
      : service_(std::move(service)) {}

  // How clients ask whether the server is there.
  arrow::Status ListActions(const flight::ServerCallContext& /*context*/,
                            std::vector<flight::ActionType>* actions) override {
    actions->clear();
    return arrow::Status::OK();
  }

  arrow::Status DoExchange(
      const flight::ServerCallContext& context,
      std::unique_ptr<flight::FlightMessageReader> reader,
      std::unique_ptr<flight::FlightMessageWriter> writer) override {
    const flight::FlightDescriptor& descriptor = reader->descriptor();
    if (descriptor.type != flight::FlightDescriptor::PATH ||
        descriptor.path.size() != 1) {
      return arrow::Status::Invalid(
          "descriptor: want a path of one part, the method");
    }
    RequestAges ages;
    ReplyWriter replies(writer.get(), &calls_);
    for (;;) {
      const auto chunk = reader->Next();
      if (!chunk.ok() ||
          (chunk->data == nullptr && chunk->app_metadata == nullptr) ||
          !calls_.Begin()) {
        return arrow::Status::OK();
      }
      ARROW_RETURN_NOT_OK(replies.Write(EncodeReply(Answer(
          descriptor.path[0], context.peer(), DecodeRequest(*chunk, &ages)))));
    }
  }

  RunningCalls& calls() { return calls_; }

 private:
  absl::StatusOr<Message> Answer(const std::string& method,
                                 const std::string& peer,
                                 const absl::StatusOr<Request>& request) {
    RILL_RETURN_IF_ERROR(request.status());
    return CallByDeadline(
        *service_,
        {.method = method, .peer = peer, .deadline = request->deadline},
        request->message);
  }

  const std::shared_ptr<Service> service_;
  RunningCalls calls_;
};

class FlightServer final : public Server {
 public:
  FlightServer(std::shared_ptr<Handler> handler, std::string address)
      : handler_(std::move(handler)), address_(std::move(address)) {}
  ~FlightServer() override {
    if (Shutdown(absl::InfinitePast()).ok()) return;
    // Streams end at once; the calls that still run keep the service.
    StopFlight();
  }

  const std::string& address() const override { return address_; }

  absl::Status Shutdown(absl::Time deadline) override {
    handler_->calls().Close();
    RILL_RETURN_IF_ERROR(handler_->calls().Await(address_, deadline));
    // No call is left to wait for, but perhaps a connection that takes no more.
    if (StopFlight()->WaitForNotificationWithTimeout(
            std::max(deadline - Clock::System().Now(), kStreamsEnd))) {
      return absl::OkStatus();
    }
    return absl::DeadlineExceededError(absl::StrCat(
        "Server::Shutdown: \"", address_, "\": connections still end"));
  }

 private:
  using Notification = std::shared_ptr<absl::Notification>;

  // Ends all streams; notified when that is done, behind the last call.
  Notification StopFlight() {
    absl::MutexLock lock(&mu_);
    if (stopped_ != nullptr) return stopped_;
    stopped_ = std::make_shared<absl::Notification>();
    std::thread([handler = handler_, stopped = stopped_] {
      const auto now = absl::ToChronoTime(Clock::System().Now());
      (void)handler->Shutdown(&now);
      (void)handler->Wait();
      stopped->Notify();
    }).detach();
    return stopped_;
  }

  const std::shared_ptr<Handler> handler_;
  const std::string address_;
  absl::Mutex mu_;
  Notification stopped_ ABSL_GUARDED_BY(mu_);  // Null: it serves.
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> MakeFlightServer(
    const FlightServerConfig& config, std::shared_ptr<Service> service) {
  const char* scheme = config.tls_certificate.empty() ? "grpc" : "grpc+tls";
  const std::string wanted =
      absl::StrCat(scheme, "://", config.host, ":", config.port);
  auto location = config.tls_certificate.empty()
                      ? flight::Location::ForGrpcTcp(config.host, config.port)
                      : flight::Location::ForGrpcTls(config.host, config.port);
  if (!location.ok()) {
    return InvalidArgument("FlightTransport::Listen: \"", wanted,
                           "\": ", location.status().message());
  }
  flight::FlightServerOptions options(*location);
  if (!config.tls_certificate.empty()) {
    options.tls_certificates.push_back(
        {config.tls_certificate, config.tls_key});
  }
  if (!config.token.empty()) {
    options.middleware.emplace_back("token",
                                    std::make_shared<TokenCheck>(config.token));
  }
  auto handler = std::make_shared<Handler>(std::move(service));
  const arrow::Status status = handler->Init(options);
  if (!status.ok()) {
    // Flight says no more than that the server did not start.
    RILL_RETURN_IF_ERROR(TryToListen(config.host, config.port))
        << "FlightTransport::Listen: \"" << wanted << "\"";
    if (!config.tls_certificate.empty()) {
      return InvalidArgument("FlightTransport::Listen: \"", wanted,
                             "\": tls_certificate, tls_key: got no PEM of a ",
                             "certificate and its key");
    }
    return absl::InternalError(absl::StrCat("FlightTransport::Listen: \"",
                                            wanted, "\": ", status.message()));
  }
  return std::make_unique<FlightServer>(
      handler, absl::StrCat(scheme, "://", config.host, ":", handler->port()));
}

}  // namespace rill::flight_internal

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_transport.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/call_threads.h"
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_way.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/reply_window.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/stream_server.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

using inproc_internal::InprocWay;
using inproc_internal::LateCalls;

// All servers, and the threads of their calls.
class InprocTransport::Core {
 public:
  struct Listener {
    Listener(std::string address, std::shared_ptr<Service> service,
             CallThreads* threads)
        : server(std::make_shared<StreamServer>(std::move(address),
                                                std::move(service), threads)) {}

    const std::shared_ptr<StreamServer> server;
    const std::shared_ptr<LateCalls> late = std::make_shared<LateCalls>();
  };

  explicit Core(const InprocFaults& faults) : faults_(faults) {}

  void SetFaults(const InprocFaults& faults) {
    absl::MutexLock lock(&mu_);
    faults_ = faults;
  }

  absl::StatusOr<std::shared_ptr<Listener>> Add(
      std::string address, std::shared_ptr<Service> service);
  absl::StatusOr<std::shared_ptr<Listener>> Find(const std::string& address);
  // It is found no more.
  void Remove(const StreamServer* server);
  std::string NewPeer() {
    absl::MutexLock lock(&mu_);
    return absl::StrCat("client ", ++peers_);
  }
  // The way of the next stream.
  std::unique_ptr<ReplyWay> MakeWay(std::shared_ptr<ReplyWindow> replies,
                                    const Listener& listener) {
    absl::MutexLock lock(&mu_);
    return std::make_unique<InprocWay>(
        InprocWay::Parts{.replies = std::move(replies),
                         .late = listener.late,
                         .server = listener.server->address(),
                         .faults = faults_,
                         .stream = streams_++});
  }

 private:
  absl::Mutex mu_;
  InprocFaults faults_ ABSL_GUARDED_BY(mu_);
  uint64_t streams_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t peers_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t addresses_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<Listener>> listeners_
      ABSL_GUARDED_BY(mu_);
  CallThreads threads_;
};

absl::StatusOr<std::shared_ptr<InprocTransport::Core::Listener>>
InprocTransport::Core::Add(std::string address,
                           std::shared_ptr<Service> service) {
  absl::MutexLock lock(&mu_);
  if (address.empty()) {
    do {
      address = absl::StrCat("inproc-", ++addresses_);
    } while (listeners_.contains(address));
  }
  std::shared_ptr<Listener>& listener = listeners_[address];
  if (listener != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("InprocTransport::Listen: \"", address, "\" is in use"));
  }
  listener = std::make_shared<Listener>(address, std::move(service), &threads_);
  return listener;
}

absl::StatusOr<std::shared_ptr<InprocTransport::Core::Listener>>
InprocTransport::Core::Find(const std::string& address) {
  absl::MutexLock lock(&mu_);
  const auto found = listeners_.find(address);
  if (found == listeners_.end()) {
    return Unavailable("InprocTransport::Connect: nobody listens at \"",
                       address, "\"");
  }
  return found->second;
}

void InprocTransport::Core::Remove(const StreamServer* server) {
  absl::MutexLock lock(&mu_);
  const auto found = listeners_.find(server->address());
  // Another one may have the address by now.
  if (found == listeners_.end() || found->second->server.get() != server) {
    return;
  }
  listeners_.erase(found);
}

class InprocTransport::CoreStream final : public CallStream {
 public:
  CoreStream(std::shared_ptr<Core> core, std::shared_ptr<ReplyWindow> replies,
             std::shared_ptr<ServedStream> served)
      : core_(std::move(core)),
        replies_(std::move(replies)),
        served_(std::move(served)) {}
  ~CoreStream() override {
    replies_->Cut(absl::CancelledError("the client has ended the stream"));
    served_->Close();
  }

  absl::Status Send(const Message& request, absl::Time deadline) override {
    RILL_RETURN_IF_ERROR(replies_->AwaitRoom(deadline));
    RILL_RETURN_IF_ERROR(replies_->Sent());
    return served_->Push({.message = request, .deadline = deadline});
  }
  absl::StatusOr<Reply> Receive(absl::Time deadline) override {
    return replies_->Receive(deadline);
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<ReplyWindow> replies_;
  const std::shared_ptr<ServedStream> served_;
};

class InprocTransport::CoreConnection final : public Connection {
 public:
  CoreConnection(std::shared_ptr<Core> core,
                 std::shared_ptr<Core::Listener> listener)
      : core_(std::move(core)),
        listener_(std::move(listener)),
        peer_(core_->NewPeer()) {}

  absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time /*deadline*/) override {
    RILL_RETURN_IF_ERROR(CheckWindow(options.window));
    auto replies = std::make_shared<ReplyWindow>(
        std::string(method), options.window, listener_->server->address());
    RILL_ASSIGN_OR_RETURN(
        auto served,
        listener_->server->Open(std::string(method), peer_, options.window,
                                core_->MakeWay(replies, *listener_)));
    return std::make_unique<CoreStream>(core_, std::move(replies),
                                        std::move(served));
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Core::Listener> listener_;
  const std::string peer_;
};

InprocTransport::InprocTransport(std::shared_ptr<Core> core)
    : core_(std::move(core)) {}
InprocTransport::~InprocTransport() = default;

absl::StatusOr<std::unique_ptr<InprocTransport>> InprocTransport::Create(
    const InprocFaults& faults) {
  RILL_RETURN_IF_ERROR(CheckInprocFaults(faults));
  return std::unique_ptr<InprocTransport>(
      new InprocTransport(std::make_shared<Core>(faults)));
}

absl::StatusOr<std::unique_ptr<Server>> InprocTransport::Listen(
    const std::string& address, std::shared_ptr<Service> service) {
  RILL_RETURN_IF_ERROR(CheckService("InprocTransport::Listen", service));
  RILL_ASSIGN_OR_RETURN(const auto listener,
                        core_->Add(address, std::move(service)));
  return MakeServer(listener->server, [core = core_, listener] {
    core->Remove(listener->server.get());
    listener->late->Close();
  });
}

absl::StatusOr<std::unique_ptr<Connection>> InprocTransport::Connect(
    const std::string& address, absl::Time /*deadline*/) {
  RILL_ASSIGN_OR_RETURN(auto listener, core_->Find(address));
  return std::make_unique<CoreConnection>(core_, std::move(listener));
}

absl::Status InprocTransport::SetFaults(const InprocFaults& faults) {
  RILL_RETURN_IF_ERROR(CheckInprocFaults(faults));
  core_->SetFaults(faults);
  return absl::OkStatus();
}

void InprocTransport::Cut(absl::string_view address) {
  const auto listener = core_->Find(std::string(address));
  if (!listener.ok()) return;
  (*listener)->server->Cut(Unavailable("InprocTransport: \"", address,
                                       "\": the connection was cut"));
}

void InprocTransport::Kill(absl::string_view address) {
  const auto listener = core_->Find(std::string(address));
  if (!listener.ok()) return;
  StreamServer& server = *(*listener)->server;
  core_->Remove(&server);
  server.Kill(
      Unavailable("InprocTransport: \"", address, "\": the server was killed"));
  (*listener)->late->Close();
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/inproc/inproc_transport.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
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
#include "rill/distributed/transport/inproc/inproc_faults.h"
#include "rill/distributed/transport/inproc/inproc_stream.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"

namespace rill {

using inproc_internal::InprocStream;
using inproc_internal::ServiceCalls;

// All servers and the threads of their streams.
class InprocTransport::Core {
 public:
  struct Worker {
    std::shared_ptr<InprocStream> stream;
    std::shared_ptr<std::atomic<bool>> is_done;
    std::thread thread;
  };
  struct ServerState {
    std::string address;
    std::shared_ptr<ServiceCalls> calls;
    bool is_down = false;       // Guarded by the core's mutex,
    std::list<Worker> workers;  // and so are these.
  };

  explicit Core(const InprocFaults& faults) : faults_(faults) {}
  ~Core() {
    absl::MutexLock lock(&mu_);
    Join(&orphans_);
  }

  void SetFaults(const InprocFaults& faults) {
    absl::MutexLock lock(&mu_);
    faults_ = faults;
  }

  absl::StatusOr<std::shared_ptr<ServerState>> Add(
      std::string address, std::shared_ptr<Service> service);
  absl::StatusOr<std::shared_ptr<ServerState>> Find(const std::string& address);
  std::string NewPeer() {
    absl::MutexLock lock(&mu_);
    return absl::StrCat("client ", ++peers_);
  }
  absl::StatusOr<std::shared_ptr<InprocStream>> Open(
      ServerState* state, InprocStream::Options options);
  // `ends` is InprocStream's End or Cut.
  void EndStreams(ServerState* state, const absl::Status& why,
                  void (InprocStream::*ends)(const absl::Status&));
  // The server is found no more.
  void TakeDown(ServerState* state);
  // Waits for the threads of a server that was taken down, whose calls have
  // ended / leaves them to the core.
  void JoinWorkers(ServerState* state);
  void Adopt(ServerState* state);

 private:
  static void Join(std::list<Worker>* workers) {
    for (Worker& worker : *workers) worker.thread.join();
    workers->clear();
  }

  absl::Mutex mu_;
  InprocFaults faults_ ABSL_GUARDED_BY(mu_);
  uint64_t streams_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t peers_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t addresses_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, std::shared_ptr<ServerState>, std::less<>> servers_
      ABSL_GUARDED_BY(mu_);
  // Those of servers that are gone, whose last calls still run.
  std::list<Worker> orphans_ ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::shared_ptr<InprocTransport::Core::ServerState>>
InprocTransport::Core::Add(std::string address,
                           std::shared_ptr<Service> service) {
  absl::MutexLock lock(&mu_);
  if (address.empty()) {
    do {
      address = absl::StrCat("inproc-", ++addresses_);
    } while (servers_.contains(address));
  }
  if (servers_.contains(address)) {
    return absl::AlreadyExistsError(
        absl::StrCat("InprocTransport::Listen: \"", address, "\" is in use"));
  }
  auto state = std::make_shared<ServerState>();
  state->address = address;
  state->calls = std::make_shared<ServiceCalls>(std::move(service));
  servers_[address] = state;
  return state;
}

absl::StatusOr<std::shared_ptr<InprocTransport::Core::ServerState>>
InprocTransport::Core::Find(const std::string& address) {
  absl::MutexLock lock(&mu_);
  const auto found = servers_.find(address);
  if (found == servers_.end()) {
    return Unavailable("InprocTransport::Connect: nobody listens at \"",
                       address, "\"");
  }
  return found->second;
}

absl::StatusOr<std::shared_ptr<InprocStream>> InprocTransport::Core::Open(
    ServerState* state, InprocStream::Options options) {
  std::list<Worker> done;  // Streams end outside of the lock.
  absl::MutexLock lock(&mu_);
  if (state->is_down) {
    return Unavailable("Connection::Open: the server at \"", state->address,
                       "\" is gone");
  }
  for (auto it = state->workers.begin(); it != state->workers.end();) {
    const auto worker = it++;
    if (!worker->is_done->load()) continue;
    worker->thread.join();
    done.splice(done.end(), state->workers, worker);
  }
  options.calls = state->calls;
  options.faults = faults_;
  options.number = streams_++;
  auto stream = std::make_shared<InprocStream>(std::move(options));
  auto is_done = std::make_shared<std::atomic<bool>>(false);
  std::thread thread([stream, is_done] {
    stream->Serve();
    is_done->store(true);
  });
  state->workers.push_back({stream, std::move(is_done), std::move(thread)});
  return stream;
}

void InprocTransport::Core::EndStreams(
    ServerState* state, const absl::Status& why,
    void (InprocStream::*ends)(const absl::Status&)) {
  absl::MutexLock lock(&mu_);
  for (Worker& worker : state->workers) (worker.stream.get()->*ends)(why);
}

void InprocTransport::Core::TakeDown(ServerState* state) {
  absl::MutexLock lock(&mu_);
  if (!state->is_down) servers_.erase(state->address);
  state->is_down = true;
}

void InprocTransport::Core::JoinWorkers(ServerState* state) {
  std::list<Worker> workers;
  {
    absl::MutexLock lock(&mu_);
    workers.swap(state->workers);
  }
  Join(&workers);
}

void InprocTransport::Core::Adopt(ServerState* state) {
  absl::MutexLock lock(&mu_);
  orphans_.splice(orphans_.end(), state->workers);
}

class InprocTransport::CoreStream final : public CallStream {
 public:
  explicit CoreStream(std::shared_ptr<InprocStream> stream)
      : stream_(std::move(stream)) {}
  ~CoreStream() override {
    stream_->Cut(absl::CancelledError("the client has ended the stream"));
  }

  absl::Status Send(const Message& request, absl::Time deadline) override {
    return stream_->Send(request, deadline);
  }
  absl::StatusOr<Reply> Receive(absl::Time deadline) override {
    return stream_->Receive(deadline);
  }

 private:
  const std::shared_ptr<InprocStream> stream_;
};

class InprocTransport::CoreConnection final : public Connection {
 public:
  CoreConnection(std::shared_ptr<Core> core,
                 std::shared_ptr<Core::ServerState> state)
      : core_(std::move(core)),
        state_(std::move(state)),
        peer_(core_->NewPeer()) {}

  absl::StatusOr<std::unique_ptr<CallStream>> Open(
      absl::string_view method, const StreamOptions& options,
      absl::Time /*deadline*/) override {
    if (options.window < 1) {
      return InvalidArgument("Connection::Open: window: got ", options.window,
                             ", want >= 1");
    }
    RILL_ASSIGN_OR_RETURN(
        auto stream, core_->Open(state_.get(), {.method = std::string(method),
                                                .peer = peer_,
                                                .window = options.window}));
    return std::make_unique<CoreStream>(std::move(stream));
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Core::ServerState> state_;
  const std::string peer_;
};

class InprocTransport::CoreServer final : public Server {
 public:
  CoreServer(std::shared_ptr<Core> core,
             std::shared_ptr<Core::ServerState> state)
      : core_(std::move(core)), state_(std::move(state)) {}
  ~CoreServer() override {
    Shutdown(absl::InfinitePast()).IgnoreError();
    core_->Adopt(state_.get());
  }

  const std::string& address() const override { return state_->address; }

  absl::Status Shutdown(absl::Time deadline) override {
    core_->TakeDown(state_.get());
    core_->EndStreams(
        state_.get(),
        Unavailable("the server at \"", state_->address, "\" was shut down"),
        &InprocStream::End);
    state_->calls->Close();
    RILL_RETURN_IF_ERROR(
        state_->calls->running().Await(state_->address, deadline));
    core_->JoinWorkers(state_.get());
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Core> core_;
  const std::shared_ptr<Core::ServerState> state_;
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
  if (service == nullptr) {
    return InvalidArgument("InprocTransport::Listen: service is null");
  }
  RILL_ASSIGN_OR_RETURN(auto state, core_->Add(address, std::move(service)));
  return std::make_unique<CoreServer>(core_, std::move(state));
}

absl::StatusOr<std::unique_ptr<Connection>> InprocTransport::Connect(
    const std::string& address, absl::Time /*deadline*/) {
  RILL_ASSIGN_OR_RETURN(auto state, core_->Find(address));
  return std::make_unique<CoreConnection>(core_, std::move(state));
}

absl::Status InprocTransport::SetFaults(const InprocFaults& faults) {
  RILL_RETURN_IF_ERROR(CheckInprocFaults(faults));
  core_->SetFaults(faults);
  return absl::OkStatus();
}

void InprocTransport::Cut(absl::string_view address) {
  const auto state = core_->Find(std::string(address));
  if (!state.ok()) return;
  core_->EndStreams(state->get(), Unavailable("the connection was cut"),
                    &InprocStream::Cut);
}

void InprocTransport::Kill(absl::string_view address) {
  const auto state = core_->Find(std::string(address));
  if (!state.ok()) return;
  core_->TakeDown(state->get());
  core_->EndStreams(state->get(), Unavailable("the server was killed"),
                    &InprocStream::Cut);
  (*state)->calls->Close();
}

}  // namespace rill

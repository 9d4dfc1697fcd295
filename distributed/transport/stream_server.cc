// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/stream_server.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/served_stream.h"
#include "rill/distributed/transport/transport.h"

namespace rill {
namespace {

class StreamServerHandle final : public Server {
 public:
  StreamServerHandle(std::shared_ptr<StreamServer> streams,
                     std::function<void()> leave)
      : leave_(std::move(leave)), streams_(std::move(streams)) {}
  ~StreamServerHandle() override {
    Shutdown(absl::InfinitePast()).IgnoreError();
  }

  const std::string& address() const override { return streams_->address(); }
  absl::Status Shutdown(absl::Time deadline) override {
    leave_();
    return streams_->Shutdown(deadline);
  }

 private:
  const std::function<void()> leave_;
  const std::shared_ptr<StreamServer> streams_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<ServedStream>> StreamServer::Open(
    std::string method, std::string peer, int64_t window,
    std::unique_ptr<ReplyWay> way) {
  absl::MutexLock lock(&mu_);
  if (service_ == nullptr) {
    return Unavailable("Connection::Open: the server at \"", address_,
                       "\" is gone");
  }
  std::erase_if(streams_, [](const auto& one) { return one.expired(); });
  auto stream = std::make_shared<ServedStream>(
      ServedStream::Options{.method = std::move(method),
                            .peer = std::move(peer),
                            .window = window,
                            .service = service_,
                            .threads = threads_,
                            .calls = calls_},
      std::move(way));
  streams_.push_back(stream);
  return stream;
}

std::vector<std::shared_ptr<ServedStream>> StreamServer::Streams() {
  std::vector<std::shared_ptr<ServedStream>> streams;
  for (const auto& one : streams_) {
    if (auto stream = one.lock()) streams.push_back(std::move(stream));
  }
  return streams;
}

absl::Status StreamServer::Shutdown(absl::Time deadline) {
  calls_->Close();
  std::shared_ptr<Service> service;
  std::vector<std::shared_ptr<ServedStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    service = std::move(service_);
    streams = Streams();
  }
  for (const auto& stream : streams) {
    stream->Finish(Unavailable("\"", address_, "\": the server was shut down"));
  }
  streams.clear();
  service = nullptr;
  return calls_->Await(address_, deadline);
}

void StreamServer::Cut(const absl::Status& why) {
  std::vector<std::shared_ptr<ServedStream>> streams;
  {
    absl::MutexLock lock(&mu_);
    streams = Streams();
  }
  for (const auto& stream : streams) stream->Cut(why);
}

void StreamServer::Kill(const absl::Status& why) {
  calls_->Close();
  std::shared_ptr<Service> service;
  {
    absl::MutexLock lock(&mu_);
    service = std::move(service_);
  }
  Cut(why);
}

std::unique_ptr<Server> MakeServer(std::shared_ptr<StreamServer> streams,
                                   std::function<void()> leave) {
  return std::make_unique<StreamServerHandle>(std::move(streams),
                                              std::move(leave));
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/served_stream.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/message.h"

namespace rill {

// Run comes with the mutex: behind Stop it was called before, or never is.
absl::Status ServedStream::Push(Request request) {
  absl::MutexLock lock(&mu_);
  if (service_ == nullptr) return absl::OkStatus();
  if (static_cast<int64_t>(requests_.size()) >= window_) {
    return FailedPrecondition(method_, ": got a request while ",
                              requests_.size(), " wait, want a window of ",
                              window_);
  }
  requests_.push_back(std::move(request));
  if (!std::exchange(has_thread_, true)) {
    threads_->Run([self = shared_from_this()] { self->Serve(); });
  }
  return absl::OkStatus();
}

std::shared_ptr<Service> ServedStream::Stop() {
  requests_.clear();
  return std::move(service_);
}

void ServedStream::Close() {
  std::shared_ptr<Service> service;
  absl::MutexLock lock(&mu_);
  is_closed_ = true;
  service = Stop();
}

void ServedStream::Cut(const absl::Status& why) {
  Close();
  way_->Cut(why);
}

void ServedStream::Finish(const absl::Status& why) {
  std::shared_ptr<Service> service;
  {
    absl::MutexLock lock(&mu_);
    service = Stop();
    if (is_closed_ || !finished_.ok()) return;
    finished_ = why;
    if (is_calling_) return;
  }
  way_->End(why);
}

bool ServedStream::HasRequest() {
  absl::MutexLock lock(&mu_);
  if (requests_.empty()) has_thread_ = false;
  return has_thread_;
}

bool ServedStream::Take(Work* work) {
  absl::MutexLock lock(&mu_);
  if (requests_.empty() || !calls_->Begin()) {
    has_thread_ = false;
    return false;
  }
  is_calling_ = true;
  *work = {std::move(requests_.front()), service_};
  requests_.pop_front();
  return true;
}

absl::Status ServedStream::EndCall(bool has_reply) {
  std::shared_ptr<Service> service;
  absl::MutexLock lock(&mu_);
  is_calling_ = false;
  if (!has_reply) service = Stop();
  return is_closed_ ? absl::OkStatus() : finished_;
}

void ServedStream::Serve() {
  Work work;
  while (HasRequest()) {
    way_->Await();
    if (!Take(&work)) return;
    std::optional<absl::StatusOr<Message>> reply = way_->Call(
        *work.service,
        {.method = method_, .peer = peer_, .deadline = work.request.deadline},
        work.request.message);
    const bool has_reply = reply.has_value();
    if (has_reply && !is_closed()) way_->Reply(*std::move(reply));
    const absl::Status finished = EndCall(has_reply);
    if (!finished.ok()) way_->End(finished);
    // Behind End nothing of the call is left. The last of the engine may go
    // with the service.
    work = {};
    calls_->End();
  }
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/served_stream.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "rill/distributed/transport/message.h"

namespace rill {

void ServedStream::Push(Request request) {
  {
    absl::MutexLock lock(&mu_);
    if (!takes_more_) return;
    requests_.push_back(std::move(request));
    if (std::exchange(has_thread_, true)) return;
  }
  options_.threads->Run([self = shared_from_this()] { self->Serve(); });
}

void ServedStream::Close() {
  absl::MutexLock lock(&mu_);
  takes_more_ = false;
  is_closed_ = true;
  requests_.clear();
}

void ServedStream::Cut(const absl::Status& why) {
  Close();
  way_->Cut(why);
}

void ServedStream::Finish(const absl::Status& why) {
  {
    absl::MutexLock lock(&mu_);
    takes_more_ = false;
    requests_.clear();
    if (is_closed_ || !finished_.ok()) return;
    finished_ = why;
    if (is_calling_) return;
  }
  way_->End(why);
}

bool ServedStream::Take(Request* request) {
  absl::MutexLock lock(&mu_);
  if (requests_.empty() || !options_.calls->Begin()) {
    has_thread_ = false;
    return false;
  }
  is_calling_ = true;
  *request = std::move(requests_.front());
  requests_.pop_front();
  return true;
}

void ServedStream::Serve() {
  Request request;
  while (Take(&request)) {
    std::optional<absl::StatusOr<Message>> reply =
        way_->Call(*options_.service,
                   {.method = options_.method,
                    .peer = options_.peer,
                    .deadline = request.deadline},
                   request.message);
    if (reply.has_value() && !is_closed()) way_->Reply(*std::move(reply));
    absl::Status finished;
    {
      absl::MutexLock lock(&mu_);
      is_calling_ = false;
      if (!reply.has_value()) {
        takes_more_ = false;
        requests_.clear();
      }
      if (!is_closed_) finished = finished_;
    }
    if (!finished.ok()) way_->End(finished);
    options_.calls->End();
  }
}

}  // namespace rill

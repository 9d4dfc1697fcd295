// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/weights/remote_weights.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "rill/base/clock.h"
#include "rill/base/state/saved_state.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/client/retrying_stream.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/final_error.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/distributed/weights/weight_service.h"
#include "rill/flow/weights/weight_store.h"

namespace rill {

using namespace weight_protocol;  // NOLINT: its names alone.

RemoteWeights::RemoteWeights(const Options& options)
    : options_(options),
      link_(options.server, std::string(kPull), /*window=*/1,
            [](Connection&, absl::Time) { return absl::OkStatus(); }) {}

absl::StatusOr<std::unique_ptr<RemoteWeights>> RemoteWeights::Create(
    const Options& options) {
  RILL_RETURN_IF_ERROR(
      CheckRemoteServer("RemoteWeights::Create", options.server));
  auto weights = std::unique_ptr<RemoteWeights>(new RemoteWeights(options));
  absl::MutexLock lock(&weights->mu_);
  RILL_ASSIGN_OR_RETURN(const Message first, weights->Fetch(/*have=*/-1));
  RILL_ASSIGN_OR_RETURN(const auto version,
                        first.values.Get<int64_t>(kVersionValue));
  RILL_ASSIGN_OR_RETURN(
      weights->store_,
      WeightStore::Create({.weights = first.batch,
                           .version = version,
                           .max_readers = options.max_readers}));
  return weights;
}

absl::StatusOr<int64_t> RemoteWeights::Pull() {
  absl::MutexLock lock(&mu_);
  const int64_t have = store_->version();
  RILL_ASSIGN_OR_RETURN(const Message reply, Fetch(have));
  RILL_ASSIGN_OR_RETURN(const auto version,
                        reply.values.Get<int64_t>(kVersionValue));
  if (version < have) {
    return FailedPrecondition("RemoteWeights::Pull: \"", options_.name,
                              "\" at \"", options_.server.address,
                              "\": got version ", version, ", want at least ",
                              have, ", which is here");
  }
  if (version > have) {
    RILL_RETURN_IF_ERROR(store_->PublishAs(version, reply.batch));
  }
  return version;
}

absl::StatusOr<Message> RemoteWeights::Fetch(int64_t have) {
  const absl::Time deadline = Clock::System().Now() + options_.server.timeout;
  return link_.Persist(absl::StrCat("RemoteWeights: \"", options_.name, "\""),
                       deadline, [&] {
                         mu_.AssertHeld();
                         return TryFetch(have);
                       });
}

absl::StatusOr<Message> RemoteWeights::TryFetch(int64_t have) {
  RILL_RETURN_IF_ERROR(link_.Open());
  Message request{.values = SavedState(kRequest, kVersion)};
  request.values.Set(kName, options_.name);
  request.values.Set(kHave, have);
  const absl::Time due = Clock::System().Now() + options_.server.reply_timeout;
  if (absl::Status sent = link_.stream()->Send(request, due); !sent.ok()) {
    return link_.Drop(std::move(sent));
  }
  absl::StatusOr<Reply> reply = link_.stream()->Receive(due);
  if (!reply.ok()) return link_.Drop(reply.status());
  if (!reply->status.ok() && !IsFinalError(reply->status)) {
    return link_.Drop(reply->status);
  }
  link_.Worked();
  RILL_RETURN_IF_ERROR(reply->status);
  RILL_RETURN_IF_ERROR(reply->message.values.CheckType(kReply, kVersion));
  return std::move(reply->message);
}

}  // namespace rill

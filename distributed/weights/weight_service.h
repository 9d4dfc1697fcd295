// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_WEIGHTS_WEIGHT_SERVICE_H_
#define RILL_DISTRIBUTED_WEIGHTS_WEIGHT_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/flow/weights/weight_store.h"

namespace rill {

namespace weight_protocol {

// Asks for the weights `name` where they are newer than the version `have`. The
// reply has the `version`, and the weights where they are.
inline constexpr absl::string_view kPull = "weights/pull";
inline constexpr absl::string_view kRequest = "WeightRequest";
inline constexpr absl::string_view kReply = "WeightReply";
inline constexpr int64_t kVersion = 1;
inline constexpr absl::string_view kName = "name";
inline constexpr absl::string_view kHave = "have";
inline constexpr absl::string_view kVersionValue = "version";

}  // namespace weight_protocol

// The snapshots of WeightStores for other programs, by name: RemoteWeights
// pulls them. A learner publishes into its store, and is never waited for. A
// program that pulls may serve its own store to others, so that thousands of
// actors form a tree.
//
// Thread-safety: thread-safe.
// Cost: a snapshot is copied once, when the first client asks for it; all share
//   that copy.
//
// Example (WeightServiceTest.Example runs it):
//   WeightService::Readers readers;
//   RILL_ASSIGN_OR_RETURN(readers["policy"], store->OpenReader());
//   RILL_ASSIGN_OR_RETURN(auto service,
//                         WeightService::Create(std::move(readers)));
class WeightService final : public Service {
 public:
  using Readers = std::map<std::string, std::unique_ptr<WeightStore::Reader>>;

  // INVALID_ARGUMENT where there is none, or one is null.
  static absl::StatusOr<std::shared_ptr<WeightService>> Create(Readers readers);

  // Methods: weight_protocol. NOT_FOUND lists the names.
  absl::StatusOr<Message> Call(const CallInfo& info,
                               const Message& request) override;

 private:
  struct Weights {
    std::unique_ptr<WeightStore::Reader> reader;
    Message latest;  // Empty before the first call.
    int64_t version = -1;
  };

  WeightService() = default;

  mutable absl::Mutex mu_;
  std::map<std::string, Weights> weights_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_WEIGHTS_WEIGHT_SERVICE_H_

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_
#define RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "rill/base/state/saved_state.h"

namespace rill {

// How far a client's operations came: up to `newest`, by which it wrote `rows`.
// `lost` of these are gone with a server that came back without them.
struct ClientPosition {
  int64_t newest = 0;
  int64_t rows = 0;
  int64_t lost = 0;
  friend bool operator==(const ClientPosition&,
                         const ClientPosition&) = default;
};

// Carries the operations of one client out once each, in the order of their
// numbers, however often and late they come.
// Thread-safety: thread-safe; operations of a client come one at a time.
class LoggedClient {
 public:
  // Calls `apply` where `number` is the next one. Where it is an older one: the
  // status it had then, that of the last kKeptErrors errors. ABORTED where
  // numbers before it are missing. With an error that is not final
  // (transport/final_error.h) it was not carried out. `rows` is what it writes.
  absl::Status Apply(int64_t number, int64_t rows,
                     absl::FunctionRef<absl::Status()> apply);
  // The client has replies up to `newest`, by which it wrote `rows`. Where that
  // is further than the position, the operations in between were lost, and it
  // goes on behind them. Returns where it goes on; the same if asked again.
  ClientPosition Resume(int64_t newest, int64_t rows);
  // A number of this process for what is `source` to the client
  // (WriteInfo::source); 0 for 0.
  uint64_t LocalSource(int64_t source);

  ClientPosition position() const;

 private:
  friend class ClientLog;
  static constexpr int64_t kKeptErrors = 64;

  SavedState Save() const;
  absl::Status Load(const SavedState& state);

  mutable absl::Mutex mu_;
  ClientPosition position_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, absl::Status> errors_ ABSL_GUARDED_BY(mu_);  // By number.
  std::map<int64_t, uint64_t> sources_ ABSL_GUARDED_BY(mu_);
};

// All clients of a server, by table and name. The log belongs to the rows in
// the tables: save and load both at once.
// Thread-safety: thread-safe.
// Memory: some 200 bytes a client that ever wrote.
class ClientLog {
 public:
  // Made where there is none yet; lives as long as this.
  LoggedClient& Of(absl::string_view table, absl::string_view client);
  // Those of a table.
  int64_t Count(absl::string_view table) const;

  SavedState Save() const;
  // FAILED_PRECONDITION or DATA_LOSS, unchanged, where it is another state.
  absl::Status Load(const SavedState& state);

 private:
  using Name = std::pair<std::string, std::string>;  // Table, client.

  mutable absl::Mutex mu_;
  std::map<Name, std::unique_ptr<LoggedClient>> clients_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_

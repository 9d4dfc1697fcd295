// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_
#define RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
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
  // (WriteInfo::source); 0 for 0. Beside more than 1,024 the lowest sources are
  // forgotten, and have new numbers again.
  uint64_t LocalSource(int64_t source);

  ClientPosition position() const;

 private:
  friend class ClientLog;
  static constexpr int64_t kKeptErrors = 64;
  static constexpr size_t kKeptSources = 1024;

  SavedState Save() const;
  absl::Status Load(const SavedState& state);

  mutable absl::Mutex mu_;
  ClientPosition position_ ABSL_GUARDED_BY(mu_);
  std::map<int64_t, absl::Status> errors_ ABSL_GUARDED_BY(mu_);  // By number.
  std::map<int64_t, uint64_t> sources_ ABSL_GUARDED_BY(mu_);
};

// All clients of a server, by table and name. The log belongs to the rows in
// the tables: save and load both at once.
//
// A client whose name is forgotten could have its operations carried out again.
// So none is, until there are kMostClients: then the one that was silent for
// longest makes room, if that is kSilence at least, and else a new name is
// refused. A flood of names so costs those who have one nothing.
//
// Thread-safety: thread-safe.
// Memory: about 1 KB a client that ever wrote, with what Save takes for it.
class ClientLog {
 public:
  static constexpr size_t kMostClients = 65536;
  static constexpr size_t kLongestName = 256;
  static constexpr absl::Duration kSilence = absl::Hours(1);

  // Made where there is none yet. `now` is Clock::Steady's. INVALID_ARGUMENT of
  // a name that is empty or longer than 256 bytes, RESOURCE_EXHAUSTED of a new
  // one where there is no room.
  absl::StatusOr<std::shared_ptr<LoggedClient>> Of(absl::string_view table,
                                                   absl::string_view client,
                                                   absl::Time now);
  // As LoggedClient::Resume of this one. FAILED_PRECONDITION where it may be a
  // client that was forgotten: has operations that nobody here knows of.
  absl::StatusOr<ClientPosition> Resume(absl::string_view table,
                                        absl::string_view client,
                                        int64_t newest, int64_t rows,
                                        absl::Time now);
  // Those of a table.
  int64_t Count(absl::string_view table) const;

  SavedState Save() const;
  // FAILED_PRECONDITION or DATA_LOSS, unchanged, where it is another state. All
  // were used `now`.
  absl::Status Load(const SavedState& state, absl::Time now);

 private:
  using Name = std::pair<std::string, std::string>;  // Table, client.
  struct Entry {
    std::shared_ptr<LoggedClient> client;
    absl::Time used;
    std::list<Name>::iterator place;  // In by_use_.
  };

  mutable absl::Mutex mu_;
  std::map<Name, Entry> clients_ ABSL_GUARDED_BY(mu_);
  std::list<Name> by_use_ ABSL_GUARDED_BY(mu_);  // The latest at the end.
  bool has_forgotten_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace rill

#endif  // RILL_DISTRIBUTED_REPLAY_CLIENT_LOG_H_

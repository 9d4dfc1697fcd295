// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_FLOW_WEIGHTS_WEIGHT_STORE_H_
#define RILL_FLOW_WEIGHTS_WEIGHT_STORE_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/flow/decision_log.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// Snapshots of a policy's weights, from one writer to readers in threads and in
// other processes, through anonymous shared memory. A learner publishes; actors
// ask for the latest before they act, and every frame carries the version that
// made it (Policy::Act returns it).
//
// - A snapshot is whole: its weights are those of one Publish, and its version
//   is theirs. It does not change while a reader has it.
// - Versions that a reader sees never go back.
// - Neither side waits. Publish goes on beside readers that were stopped or
//   killed while they read. When the writer has died the last snapshot is
//   readable still.
// - A reader that was killed leaves its place, of `max_readers`, and one
//   buffer; the next reader that is opened may take them. Processes must see
//   each other's numbers (one PID namespace).
// - Nothing has a name, so nothing is left behind.
// - Another process that writes over the memory may spoil weights and versions,
//   and never crashes a reader or the writer.
//
// Memory: a buffer for each snapshot that somebody reads, the latest and the
//   next: with readers that keep up two or three, at most max_readers + 2.
//   It is reserved when a buffer is first used, never given back before the
//   end, and there for as long as a store or reader lives.
// Thread-safety: one thread at a time publishes. The rest is thread-safe.
//   Readers are thread-compatible, apart from the store and from one another.
// Cost: Publish copies the bytes once, and looks at max_readers words. Latest
//   copies nothing: a load without news, else a store, a load and a
//   compare-exchange. Neither allocates, but for a buffer's first use.
//
// Example (WeightStoreTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto store,
//                         WeightStore::Create({.weights = weights}));
//   RILL_ASSIGN_OR_RETURN(auto reader, store->OpenReader());  // Of a thread.
//   RILL_ASSIGN_OR_RETURN(int64_t version, store->Publish(better));
//   const WeightStore::Snapshot latest = reader->Latest();
//   const float* bias = latest.weights.Find("bias")->data<float>();
class WeightStore {
 public:
  class Reader;
  struct Options {
    // The first snapshot: host or device tensors, and nothing else. Their keys,
    // dtypes and shapes are those of all.
    TensorDict weights = {};
    int64_t version = 0;       // Of the first snapshot, [0, 2^46].
    int64_t max_readers = 64;  // At a time, of all processes. [1, 4096].
    // Notes each snapshot. Not owned; null: none. It outlives the store.
    DecisionLog* recorder = nullptr;
  };
  // Read-only, in place, on the host; contiguous, each leaf at a multiple of 64
  // bytes. The bytes are the reader's until its next Latest or its end: Clone
  // what is needed for longer.
  struct Snapshot {
    int64_t version;
    const TensorDict& weights;
  };

  ~WeightStore();
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  // INVALID_ARGUMENT names the option; RESOURCE_EXHAUSTED where memory does not
  // suffice for a snapshot.
  static absl::StatusOr<std::unique_ptr<WeightStore>> Create(
      const Options& options);

  // Makes these weights the latest snapshot, under the next version, which is
  // returned. Keys, dtypes, shapes and batch shape must be those of the first:
  // INVALID_ARGUMENT names the leaf. RESOURCE_EXHAUSTED as Create, and
  // FAILED_PRECONDITION in a forked child. After errors the latest is as
  // before.
  absl::StatusOr<int64_t> Publish(const TensorDict& weights);
  // The same under a version of the caller's: of weights that come from another
  // store. INVALID_ARGUMENT also where it is not above version().
  absl::Status PublishAs(int64_t version, const TensorDict& weights);
  // The latest snapshot's. Thread-safe.
  int64_t version() const;
  // Its number among the parts of Options::recorder; -1: there is none.
  int64_t part() const { return part_; }

  // A reader in this process, or in a forked child that inherited the store.
  // RESOURCE_EXHAUSTED where living processes have `max_readers`. It may
  // outlive the store.
  absl::StatusOr<std::unique_ptr<Reader>> OpenReader() const;
  // The same in a program that inherited fd(), and now gives it away; it needs
  // nothing else. FAILED_PRECONDITION where it is something else, DATA_LOSS
  // where what describes the weights was written over.
  static absl::StatusOr<std::unique_ptr<Reader>> AttachReader(int fd);
  // Closed on exec: posix_spawn_file_actions_adddup2 keeps it open in a child.
  int fd() const;

 private:
  class Shared;

  WeightStore(std::shared_ptr<Shared> shared, DecisionLog* recorder);
  // Makes them the latest snapshot.
  absl::Status Store(const TensorDict& weights, int64_t version);

  const std::shared_ptr<Shared> shared_;
  const pid_t writer_;
  DecisionLog* const recorder_;
  int64_t part_ = -1;
  uint64_t current_;                  // What nobody else can write over.
  std::vector<uint8_t> is_used_;      // By buffer, of Store.
  std::vector<uint8_t> is_reserved_;  // By buffer.
};

// One place among a store's readers, given back at its end. It belongs to the
// process that opened it: a forked child opens its own.
class WeightStore::Reader {
 public:
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The latest snapshot; what this returned before is over where it is newer.
  // Wait-free.
  Snapshot Latest() {
    // Equal words are the same snapshot, which is pinned: nothing to acquire.
    if (current_->load(std::memory_order_relaxed) != word_) TakeNews();
    return {.version = version_, .weights = *weights_};
  }

  // Latest() is this snapshot until the next call, whatever is published: for
  // a run that is repeated (recorder/flight_recorder.h). `weights` has the
  // store's keys, dtypes and shapes, and outlives that time.
  void Show(int64_t version, const TensorDict& weights);

 private:
  friend class WeightStore;

  Reader(std::shared_ptr<Shared> shared, int64_t slot);
  void TakeNews();

  const std::shared_ptr<Shared> shared_;
  const int64_t slot_;
  const std::atomic<uint64_t>* current_;
  std::atomic<uint64_t> shown_;  // In place of current_, by Show.
  uint64_t word_;
  int64_t version_;
  const TensorDict* weights_;
};

}  // namespace rill

#endif  // RILL_FLOW_WEIGHTS_WEIGHT_STORE_H_

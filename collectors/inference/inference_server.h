// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_INFERENCE_INFERENCE_SERVER_H_
#define RILL_COLLECTORS_INFERENCE_INFERENCE_SERVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "rill/collectors/inference/inference_layout.h"
#include "rill/envs/policies/policy.h"
#include "rill/envs/steps/in_place_check.h"
#include "rill/flow/channel/shared_calls.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill {

// One thread that acts for many workers: a policy sees the roots of all workers
// that wait, side by side, [workers * lanes]. It pays where a call costs much
// however few rows it has, as on a GPU, or where its weights are large: there
// is one policy, not one a worker. TorchRL has it under this name; SEED RL
// (Espeholt et al., 2020) is built on it.
//
// A worker's policy is a client. Its Act hands over the leaves of the root that
// the server's policy reads, and comes back with action, outputs and the
// version of the weights. Workers are threads or processes: collectors make the
// clients of theirs (MultiCollectorOptions::inference), OpenClient makes one
// for any thread.
//
// - Rows of a policy that acts row by row are those that it gives without a
//   server, bit for bit. Clients stand in a batch in the order of their
//   numbers.
// - Recurrent state stays with the lanes of the worker, as without a server.
// - ActContext::step counts the server's calls, ::seed is another one in each,
//   also in a run that was loaded. ::frames are the most that a client of the
//   call knows of, or those that exploring clients have asked for, where these
//   are more. Exploration whose draws do not depend on the batch goes around
//   the client (envs/policies/exploration.h). Clients with and without
//   `explore` are in calls of their own.
// - An error of the policy goes to the clients of that call with its text; the
//   next call tries again.
// - A client that dies holds a call up for no longer than max_wait, nor than
//   20 ms.
//
// Thread-safety: thread-safe. Only the server's thread calls the policy.
// Device/Stream: leaves of clients are in host memory.
// Cost: two copies of the leaves each way and a futex or two, some 10 us where
//   threads sleep. Nothing allocates once every number of clients was seen.
//
// Example (InferenceServerTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(
//       auto server,
//       InferenceServer::Create({.policy = &policy,
//                                .root = env->spec().observation,
//                                .action = env->spec().action,
//                                .lanes = env->lanes(),
//                                .clients = 2}));
//   MultiCollectorOptions options;
//   options.workers = 2;
//   options.worker = MakeWorker;  // Its parts have no policy.
//   options.inference = server.get();
//   options.frames_per_batch = 1024;
//   RILL_ASSIGN_OR_RETURN(auto collector,
//                         MultiSyncCollector::Create(options));
class InferenceServer {
 public:
  struct Options {
    Policy* policy = nullptr;  // Required. Not owned.
    // Leaves of the root that the policy reads, beside its recurrent state, and
    // those of the action: EnvSpec::observation or less, EnvSpec::action.
    TensorDictSpec root = {};
    TensorDictSpec action = {};
    int64_t lanes = 1;    // Of every client.
    int64_t clients = 1;  // [1, 4096].
    // A call begins when so many clients wait, or all that are open; or when
    // the first has waited for max_wait.
    int64_t min_clients = 1;
    absl::Duration max_wait = absl::Milliseconds(1);
  };

  // Starts the thread. INVALID_ARGUMENT names the option, RESOURCE_EXHAUSTED:
  // too little shared memory.
  static absl::StatusOr<std::unique_ptr<InferenceServer>> Create(
      Options options);
  // Stops.
  ~InferenceServer();
  InferenceServer(const InferenceServer&) = delete;
  InferenceServer& operator=(const InferenceServer&) = delete;

  // For ever: clients that wait, and those that ask later, are CANCELLED. The
  // policy's call under way goes on to its end.
  void Stop();

  // The policy of one worker: thread-compatible, and of this process. It may
  // outlive the server. OUT_OF_RANGE, and FAILED_PRECONDITION where the client
  // is open: one at a time has each number.
  absl::StatusOr<std::unique_ptr<Policy>> OpenClient(int64_t client) const;

  int64_t clients() const { return calls_->callers(); }
  // A collector's worker opens its client by these, also in another process.
  int fd() const { return calls_->fd(); }
  const std::string& layout() const { return layout_bytes_; }

 private:
  // The rows of so many clients, side by side.
  struct Batch {
    TensorDict root;
    TensorDict step;
    InPlaceCheck in_place;
  };

  InferenceServer(Options options, inference_internal::InferenceLayout layout)
      : options_(std::move(options)), layout_(std::move(layout)) {}

  absl::Status Start();
  void Run();
  void Serve(const std::vector<int64_t>& clients, bool explore);
  const inference_internal::QuestionHead& QuestionOf(int64_t client) const;
  ActContext ContextOf(const std::vector<int64_t>& clients, bool explore) const;
  absl::StatusOr<int64_t> Act(const std::vector<int64_t>& clients,
                              bool explore);
  absl::StatusOr<Batch> MakeBatch(int64_t clients) const;

  const Options options_;
  const inference_internal::InferenceLayout layout_;
  std::string layout_bytes_;
  std::shared_ptr<channel_internal::SharedCalls> calls_;
  // The rows of all clients. Batches are the first of them.
  TensorDict root_;
  TensorDict step_;
  std::vector<std::optional<Batch>> batches_;  // By number of clients.
  int64_t frames_ = 0;  // That exploring clients have asked for.
  int64_t calls_made_ = 0;
  std::thread thread_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_INFERENCE_INFERENCE_SERVER_H_

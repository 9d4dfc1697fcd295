// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/envs/worker_source.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/multi_async_collector.h"
#include "rill/collectors/workers/multi_collector_options.h"
#include "rill/collectors/workers/worker.h"
#include "rill/envs/env.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/trajectory_id.h"
#include "rill/python/bindings/envs/env_part.h"
#include "rill/python/bindings/envs/python_policy.h"
#include "rill/python/bindings/interpreter_lock.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/layout_difference.h"
#include "rill/tensordict/tensor_dict.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

MultiCollectorOptions OptionsOf(bool is_sync, const nb::dict& given) {
  MultiCollectorOptions options;
  OptionReader reader(NameOfWorkers(is_sync), given);
  reader.Read("frames_per_batch", &options.frames_per_batch)
      .Read("frames_per_worker", &options.frames_per_worker)
      .Read("total_frames", &options.total_frames)
      .Read("init_random_frames", &options.init_random_frames)
      .Read("max_frames_per_traj", &options.max_frames_per_traj)
      .Read("reset_at_each_batch", &options.reset_at_each_batch)
      .Read("set_truncated", &options.set_truncated)
      .Read("seed", &options.seed)
      .Read("preemptive_threshold", &options.preemptive_threshold)
      .ReadEnum("cat_results", &options.cat_results, {"0", "stack", "-1"},
                {CatResults::kLanes, CatResults::kStack, CatResults::kTime});
  reader.CheckAllRead();
  return options;
}

// Another policy, which fails once the collector is closed.
class WorkerPolicy final : public Policy {
 public:
  WorkerPolicy(const std::atomic<bool>* is_closed,
               std::unique_ptr<Policy> policy)
      : is_closed_(is_closed), policy_(std::move(policy)) {}
  const TensorDictSpec& output_spec() const override {
    return policy_->output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    if (*is_closed_) return absl::CancelledError("the collector is closed");
    return policy_->Act(root, context, step);
  }

 private:
  const std::atomic<bool>* const is_closed_;
  const std::unique_ptr<Policy> policy_;
};

// Workers of one collector have the same leaves and as many lanes.
absl::Status CheckSame(size_t worker, const EnvSpec& spec,
                       const EnvSpec& first) {
  std::string difference;
  if (spec.lanes != first.lanes) {
    difference = absl::StrCat("lanes: got ", spec.lanes,
                              ", want the first worker's, ", first.lanes);
  } else {
    RILL_ASSIGN_OR_RETURN(const TensorDictSpec step, StepSpec(spec));
    RILL_ASSIGN_OR_RETURN(const TensorDictSpec wanted, StepSpec(first));
    if (step == wanted) return absl::OkStatus();
    difference = absl::StrCat("rows differ from the first worker's: ",
                              LayoutDifference(step, wanted));
  }
  return InvalidArgument("collector: worker ", worker, ": ", difference);
}

// The parts of all workers. All checks come first: after an error environments
// are their owner's.
std::vector<WorkerParts> PartsOf(const nb::list& envs, const nb::list& acts,
                                 const TensorDictSpec& outputs,
                                 const std::atomic<bool>* is_closed) {
  std::vector<Env*> shown;
  for (const nb::handle env : envs) {
    shown.push_back(nb::cast<EnvPart*>(env)->Get());
    if (std::count(shown.begin(), shown.end(), shown.back()) > 1) {
      throw StatusError{
          InvalidArgument("collector: create_env_fn[", shown.size() - 1,
                          "]: got one environment twice, want another one")};
    }
    Check(CheckSame(shown.size() - 1, shown.back()->spec(), shown[0]->spec()));
  }
  std::vector<WorkerParts> parts(shown.size());
  for (size_t i = 0; i < shown.size(); ++i) {
    WorkerParts& part = parts[i];
    part.env = nb::cast<EnvPart*>(envs[i])->Take();
    if (nb::len(acts) == 0) continue;
    part.policy = std::make_unique<WorkerPolicy>(
        is_closed, std::make_unique<PythonPolicy>(
                       nb::object(acts[i]), part.env->spec().action, outputs));
  }
  return parts;
}

template <typename Collector>
WorkerSource Start(MultiCollectorOptions options) {
  absl::StatusOr<std::unique_ptr<Collector>> made;
  {
    const Unlocked unlocked;
    made = Collector::Create(std::move(options));
  }
  if (!made.ok()) return {.source = made.status()};
  WorkerSource started;
  started.frames_per_batch = (*made)->frames_per_batch();
  if constexpr (std::is_same_v<Collector, MultiSyncCollector>) {
    started.rounds = made->get();
  }
  started.source = *std::move(made);
  return started;
}

}  // namespace

int64_t NewProducers(int64_t count) {
  static int64_t next = 0;
  if (next + count > kMaxTrajectoryProducer + 1) next = 0;
  return std::exchange(next, next + count);
}

const char* NameOfWorkers(bool is_sync) {
  return is_sync ? "MultiSyncDataCollector" : "MultiaSyncDataCollector";
}

WorkerSource MakeWorkerSource(const WorkerArguments& given) {
  MultiCollectorOptions options = OptionsOf(given.is_sync, given.options);
  options.workers = static_cast<int64_t>(nb::len(given.envs));
  auto parts = std::make_shared<std::vector<WorkerParts>>();
  options.worker =
      [parts, begin_thread = given.begin_thread](
          const WorkerContext& context) -> absl::StatusOr<WorkerParts> {
    begin_thread();
    return std::move((*parts)[static_cast<size_t>(context.worker)]);
  };
  options.is_interrupted = given.is_interrupted;
  Check(workers_internal::CheckOptions(NameOfWorkers(given.is_sync), options));
  options.producer = NewProducers(options.workers);
  *parts = PartsOf(given.envs, given.acts, given.outputs, given.is_closed);
  parts = nullptr;  // The function has them.
  return given.is_sync ? Start<MultiSyncCollector>(std::move(options))
                       : Start<MultiAsyncCollector>(std::move(options));
}

}  // namespace rill::python

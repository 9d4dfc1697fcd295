// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/wrappers/vector_env.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/catch_exceptions.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/device.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/lane_rows.h"
#include "rill/envs/lanes/lane_errors.h"
#include "rill/envs/lanes/lane_pool.h"
#include "rill/envs/wrappers/lane_leaves.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/state/state_dict.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"

// Parts own their leaves, and this Env owns the whole ones, so rows are copied
// both ways around each call. Without threads the steps of all parts begin
// before one ends, so parts that work beside the caller (child processes,
// pools) work at the same time. With threads a part's step is begun and ended
// by one thread, which has its rows to itself.

namespace rill {
namespace {

using envs_internal::CopyLanes;
using envs_internal::FailureLike;
using envs_internal::IsRefusal;
using envs_internal::LaneLeaves;
using envs_internal::LanePool;

constexpr absl::string_view kMake = "MakeVectorEnv";
constexpr absl::string_view kStep = "VectorEnv::Step";
constexpr absl::string_view kLoad = "VectorEnv::LoadState";
constexpr absl::string_view kType = "VectorEnv";
constexpr int64_t kStateVersion = 1;

class VectorEnv final : public Env {
 public:
  static absl::StatusOr<std::unique_ptr<Env>> Create(
      std::vector<std::unique_ptr<Env>> envs, const VectorEnvOptions& options);

  absl::Status Seed(uint64_t seed) override;
  absl::Status Reset(const ResetMask& mask) override;
  absl::Status BeginStep() override;
  absl::Status EndStep() override;
  absl::StatusOr<TensorDict> SaveState() const override;
  absl::Status LoadState(const TensorDict& state) override;

 protected:
  void OnSetLearning() override {
    for (const Part& part : parts_) part.env->SetLearning(learns());
  }

 private:
  struct Part {
    std::unique_ptr<Env> env;
    int64_t first;  // The number that its lane 0 has here.
    LaneLeaves leaves;
    std::vector<uint8_t> mask, group_mask;  // Of its reset.
    absl::Status status;                    // Of its last call.
    bool has_thrown = false;  // Its leaves say nothing of its last step.

    int64_t lanes() const { return env->lanes(); }
  };

  VectorEnv(EnvSpec spec, TensorDict step, int threads)
      : Env(std::move(spec), std::move(step)),
        threads_(threads),
        replaces_actions_(std::any_of(
            this->spec().legal_actions.begin(),
            this->spec().legal_actions.end(),
            [](const LegalActions& legal) { return legal.replaces_others; })),
        running_(static_cast<size_t>(lanes()), 0) {}

  absl::Status Bind(std::vector<std::unique_ptr<Env>> envs);
  bool TakeMask(const ResetMask& mask, Part& part) const;
  void Call(int64_t i);
  template <typename Fn>
  static void CallPart(Part& part, absl::string_view function, const Fn& call);
  void ResetPart(Part& part) const;
  void BeginPart(Part& part) const;
  void EndPart(Part& part) const;
  absl::Status TakeErrors(absl::string_view caller);
  absl::Status LoadParts(const StateReader& state);

  const int threads_;
  const bool replaces_actions_;  // A part may do another action than it got.
  LaneLeaves leaves_;
  std::vector<Part> parts_;
  std::vector<uint8_t> running_;
  bool is_stepping_ = false;  // Between BeginStep and EndStep.
  // Parts to reset; empty: all parts step.
  std::vector<size_t> to_reset_;

  // The last member, so that its threads end first.
  std::unique_ptr<LanePool> pool_;
};

absl::StatusOr<std::unique_ptr<Env>> VectorEnv::Create(
    std::vector<std::unique_ptr<Env>> envs, const VectorEnvOptions& options) {
  EnvSpec spec = envs[0]->spec();
  spec.lanes = 0;
  for (const auto& env : envs) spec.lanes += env->lanes();
  RILL_ASSIGN_OR_RETURN(TensorDict step, MakeStep(spec));
  auto result = absl::WrapUnique(
      new VectorEnv(std::move(spec), std::move(step), options.threads));
  // A thread for each part, beside the caller.
  const auto threads = static_cast<int>(
      std::min<size_t>(static_cast<size_t>(options.threads), envs.size() + 1));
  RILL_RETURN_IF_ERROR(result->Bind(std::move(envs)));
  RILL_ASSIGN_OR_RETURN(
      result->pool_, LanePool::Create(threads, [env = result.get()](int64_t i) {
        env->Call(i);
      }));
  return result;
}

absl::Status VectorEnv::Bind(std::vector<std::unique_ptr<Env>> envs) {
  RILL_ASSIGN_OR_RETURN(leaves_, LaneLeaves::Of(kMake, spec(), step()));
  int64_t first = 0;
  for (std::unique_ptr<Env>& env : envs) {
    // In the order of this Env's spec.
    RILL_ASSIGN_OR_RETURN(LaneLeaves leaves,
                          LaneLeaves::Of(kMake, spec(), env->step()));
    const int64_t lanes = env->lanes();
    parts_.push_back(
        {.env = std::move(env),
         .first = first,
         .leaves = std::move(leaves),
         .mask = std::vector<uint8_t>(lanes),
         .group_mask = std::vector<uint8_t>(lanes * spec().own_episodes.size()),
         .status = absl::OkStatus()});
    first += lanes;
  }
  return absl::OkStatus();
}

absl::Status VectorEnv::Seed(uint64_t seed) {
  RILL_RETURN_IF_ERROR(CheckIdle("VectorEnv", "Seed", is_stepping_));
  const Rng seeds(seed, RngStream::kEnv, kVectorEnvSeeds);
  for (size_t p = 0; p < parts_.size(); ++p) {
    RILL_RETURN_IF_ERROR(parts_[p].env->Seed(seeds.Bits64(p, 0)));
  }
  return absl::OkStatus();
}

// The part's share of the mask; false: nothing of it begins.
bool VectorEnv::TakeMask(const ResetMask& mask, Part& part) const {
  const auto take = [&part](const uint8_t* from, uint8_t* to) {
    std::copy_n(from + part.first, part.lanes(), to);
  };
  take(mask.lanes.data(), part.mask.data());
  std::fill(part.group_mask.begin(), part.group_mask.end(), 0);
  // [groups, lanes]: the part's lanes are a piece of each row.
  const size_t groups = mask.groups.size() / running_.size();
  for (size_t g = 0; g < groups; ++g) {
    take(mask.groups.data() + g * running_.size(),
         part.group_mask.data() + g * part.mask.size());
  }
  const auto has_some = [](const std::vector<uint8_t>& some) {
    return std::any_of(some.begin(), some.end(),
                       [](uint8_t begins) { return begins != 0; });
  };
  return has_some(part.mask) || has_some(part.group_mask);
}

absl::Status VectorEnv::Reset(const ResetMask& mask) {
  RILL_RETURN_IF_ERROR(CheckIdle("VectorEnv", "Reset", is_stepping_));
  RILL_RETURN_IF_ERROR(CheckMask("VectorEnv::Reset", spec(), mask));
  for (size_t p = 0; p < parts_.size(); ++p) {
    if (TakeMask(mask, parts_[p])) to_reset_.push_back(p);
  }
  if (to_reset_.empty()) return absl::OkStatus();
  pool_->Run(static_cast<int64_t>(to_reset_.size()));
  for (const size_t p : to_reset_) {
    const Part& part = parts_[p];
    for (size_t lane = 0; lane < part.mask.size(); ++lane) {
      // A part that could not reset some lanes says so with one error, and all
      // that were to begin wait for another reset.
      if (part.mask[lane] != 0) running_[part.first + lane] = part.status.ok();
    }
  }
  to_reset_.clear();
  return TakeErrors("VectorEnv::Reset");
}

void VectorEnv::Call(int64_t i) {
  if (!to_reset_.empty()) return ResetPart(parts_[to_reset_[i]]);
  BeginPart(parts_[i]);
  EndPart(parts_[i]);
}

template <typename Fn>
void VectorEnv::CallPart(Part& part, absl::string_view function,
                         const Fn& call) {
  part.has_thrown = true;
  part.status = CatchExceptions(
      [&] {
        absl::Status status = call();
        part.has_thrown = false;
        return status;
      },
      part.env->name(), function);
}

void VectorEnv::ResetPart(Part& part) const {
  // So that rows which do not begin are this Env's afterwards, too.
  CopyLanes(leaves_.root, part.first, part.leaves.root, 0, part.lanes());
  CallPart(part, "::Reset", [&] {
    return part.env->Reset(ResetMask(part.mask, part.group_mask));
  });
  CopyLanes(part.leaves.root, 0, leaves_.root, part.first, part.lanes());
}

absl::Status VectorEnv::BeginStep() {
  RILL_RETURN_IF_ERROR(CheckIdle("VectorEnv", "BeginStep", is_stepping_));
  RILL_RETURN_IF_ERROR(CheckActions(kStep, spec(), step()));
  RILL_RETURN_IF_ERROR(CheckRunning(kStep, running_));
  is_stepping_ = true;
  if (threads_ > 1) {
    pool_->Begin(static_cast<int64_t>(parts_.size()));
  } else {
    for (Part& part : parts_) BeginPart(part);
  }
  return absl::OkStatus();
}

void VectorEnv::BeginPart(Part& part) const {
  // The caller may have carried `next` to the root since the last call.
  CopyLanes(leaves_.root, part.first, part.leaves.root, 0, part.lanes());
  CopyLanes(leaves_.actions, part.first, part.leaves.actions, 0, part.lanes());
  CallPart(part, "::BeginStep", [&] { return part.env->BeginStep(); });
  if (!replaces_actions_) return;
  CopyLanes(part.leaves.actions, 0, leaves_.actions, part.first, part.lanes());
}

void VectorEnv::EndPart(Part& part) const {
  // Rows are copied after an error as well: a part whose simulator failed has
  // written which lanes are cut off.
  if (part.status.ok()) {
    CallPart(part, "::EndStep", [&] { return part.env->EndStep(); });
  }
  CopyLanes(part.leaves.next, 0, leaves_.next, part.first, part.lanes());
  CopyLanes(part.leaves.rewards, 0, leaves_.rewards, part.first, part.lanes());
}

absl::Status VectorEnv::EndStep() {
  if (!is_stepping_) return absl::OkStatus();
  if (threads_ > 1) {
    pool_->Finish();
  } else {
    for (Part& part : parts_) EndPart(part);
  }
  is_stepping_ = false;
  for (const Part& part : parts_) {
    // The check above has passed, so the other parts have stepped: a refusal
    // here must become a failure of all lanes of the part, which did not step.
    // So must an exception, whatever the part has done before it.
    if (!IsRefusal(part.status) && !part.has_thrown) continue;
    for (int64_t lane = 0; lane < part.lanes(); ++lane) {
      RILL_RETURN_IF_ERROR(CutOffLane(spec(), step(), part.first + lane));
    }
  }
  const absl::Span<const bool> done = leaves_.done.As<bool>();
  for (size_t lane = 0; lane < done.size(); ++lane) {
    running_[lane] = !done[lane];
  }
  return TakeErrors(kStep);
}

// All of them in one.
absl::Status VectorEnv::TakeErrors(absl::string_view caller) {
  absl::Status first;
  std::vector<std::string> errors;
  for (size_t p = 0; p < parts_.size(); ++p) {
    const absl::Status status =
        std::exchange(parts_[p].status, absl::OkStatus());
    if (status.ok()) continue;
    // The first error gives the code, all of them the text.
    first.Update(status);
    errors.push_back(absl::StrCat("parts[", p, "] (its lane 0 is lane ",
                                  parts_[p].first, "): ", status.message()));
  }
  if (first.ok()) return first;
  return FailureLike(first,
                     absl::StrCat(caller, ": ", absl::StrJoin(errors, "; ")));
}

absl::StatusOr<TensorDict> VectorEnv::SaveState() const {
  RILL_RETURN_IF_ERROR(CheckIdle("VectorEnv", "SaveState", is_stepping_));
  StateWriter state(kType, kStateVersion);
  state.List<bool>("running", running_, {lanes(), 1});
  for (size_t p = 0; p < parts_.size(); ++p) {
    state.Entry(absl::StrCat("parts/", p), parts_[p].env->SaveState());
  }
  return std::move(state).Finish();
}

absl::Status VectorEnv::LoadParts(const StateReader& state) {
  std::vector<TensorDict> before;  // Of the parts that have loaded.
  const auto load = [&](size_t p) -> absl::Status {
    RILL_ASSIGN_OR_RETURN(const TensorDict* const part,
                          state.Dict(absl::StrCat("parts/", p)));
    RILL_ASSIGN_OR_RETURN(TensorDict old, parts_[p].env->SaveState());
    RILL_RETURN_IF_ERROR(parts_[p].env->LoadState(*part))
        << "in " << kLoad << " of parts[" << p << "]";
    before.push_back(std::move(old));
    return absl::OkStatus();
  };
  for (size_t p = 0; p < parts_.size(); ++p) {
    const absl::Status loaded = load(p);
    if (loaded.ok()) continue;
    for (size_t i = 0; i < before.size(); ++i) {
      RILL_RETURN_IF_ERROR(parts_[i].env->LoadState(before[i]))
          << "while " << kLoad << " took parts[" << i << "] back";
    }
    return loaded;
  }
  return absl::OkStatus();
}

absl::Status VectorEnv::LoadState(const TensorDict& dict) {
  RILL_RETURN_IF_ERROR(CheckIdle("VectorEnv", "LoadState", is_stepping_));
  RILL_ASSIGN_OR_RETURN(const StateReader state,
                        StateReader::Open(kType, kStateVersion, dict));
  RILL_ASSIGN_OR_RETURN(auto running,
                        state.List<bool>("running", Shape({lanes(), 1})));
  if (dict.Contains(absl::StrCat("parts/", parts_.size()))) {
    return state.DoesNotFit(
        absl::StrCat("parts: got more than ", parts_.size(),
                     ", want as many as this environment has"));
  }
  RILL_RETURN_IF_ERROR(LoadParts(state));
  running_ = std::move(running);
  return absl::OkStatus();
}

// INVALID_ARGUMENT names the first leaf in which the specs differ.
absl::Status CheckLeaves(absl::string_view what, const TensorDictSpec& got,
                         const TensorDictSpec& want) {
  if (got == want) return absl::OkStatus();
  const auto check = [&](absl::string_view key) -> absl::Status {
    const LeafSpec* const a = got.Find(key);
    const LeafSpec* const b = want.Find(key);
    if (a != nullptr && b != nullptr && *a == *b) return absl::OkStatus();
    const auto text = [](const LeafSpec* leaf) {
      return leaf == nullptr ? std::string("none") : leaf->ToString();
    };
    return InvalidArgument(
        what, ": \"", key, "\": got ", text(a), ", want ", text(b),
        text(a) == text(b) ? " with its bounds and masks" : "");
  };
  // Both: either may have a leaf that the other lacks.
  for (const TensorDictSpec* spec : {&want, &got}) {
    for (const TensorDictSpec::Leaf& leaf : spec->leaves()) {
      RILL_RETURN_IF_ERROR(check(leaf.key));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEqualSpecs(const EnvSpec& got, const EnvSpec& want) {
  RILL_RETURN_IF_ERROR(
      CheckLeaves("observation", got.observation, want.observation));
  RILL_RETURN_IF_ERROR(CheckLeaves("action", got.action, want.action));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec got_reward, RewardSpec(got));
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec want_reward, RewardSpec(want));
  RILL_RETURN_IF_ERROR(CheckLeaves("reward", got_reward, want_reward));
  RILL_RETURN_IF_ERROR(
      CheckLeaves("group_flags", got.group_flags, want.group_flags));
  if (got.own_episodes != want.own_episodes) {
    return InvalidArgument("own_episodes: got [",
                           absl::StrJoin(got.own_episodes, ", "), "], want [",
                           absl::StrJoin(want.own_episodes, ", "), "]");
  }
  if (got.legal_actions == want.legal_actions) return absl::OkStatus();
  const auto text = [](std::string* out, const LegalActions& legal) {
    absl::StrAppend(out, "\"", legal.action, "\" by \"", legal.mask, "\"",
                    legal.replaces_others ? ", replaced" : "");
  };
  return InvalidArgument(
      "legal_actions: got [", absl::StrJoin(got.legal_actions, "; ", text),
      "], want [", absl::StrJoin(want.legal_actions, "; ", text), "]");
}

}  // namespace

absl::Status CheckVectorEnvParts(absl::Span<Env* const> parts) {
  if (parts.empty()) {
    return InvalidArgument(kMake, ": parts: got none, want one or more");
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto refuse = [p](absl::string_view why) {
      return InvalidArgument(kMake, ": parts[", p, "]: ", why);
    };
    if (parts[p] == nullptr) return refuse("got null, want an environment");
    const EnvSpec& spec = parts[p]->spec();
    if (!spec.device.is_cpu()) {
      return refuse(
          absl::StrCat("device: got ", spec.device.ToString(), ", want cpu"));
    }
    const absl::Status same = CheckEqualSpecs(spec, parts[0]->spec());
    if (!same.ok()) {
      return refuse(absl::StrCat(same.message(), " as in parts[0]"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Env>> MakeVectorEnv(
    std::vector<std::unique_ptr<Env>> parts, const VectorEnvOptions& options) {
  if (parts.empty() || options.threads < 1) {
    return InvalidArgument(kMake, ": parts, threads: got ", parts.size(), ", ",
                           options.threads, ", want >= 1, >= 1");
  }
  std::vector<Env*> shown;
  for (const auto& part : parts) shown.push_back(part.get());
  RILL_RETURN_IF_ERROR(CheckVectorEnvParts(shown));
  return VectorEnv::Create(std::move(parts), options);
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/envs/transformed/transformed_env_plan.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/envs/env_spec.h"
#include "rill/envs/transformed/transformed_env_spec.h"
#include "rill/specs/legal_choices.h"
#include "rill/tensors/dtype.h"

// How it works. A leaf between two transforms is a buffer of rows; `current_`
// has the newest buffer of each key. Stage 0 has the environment's own leaves,
// stage i + 1 those that transform i made. A transform changes a leaf in place
// unless somebody needs the values before it. Then it gets a buffer of its own,
// and a copy where it updates.
//
// Legal actions. The environment's declaration (EnvSpec::legal_actions) holds
// behind the last transform as long as action and mask stay as they are. A
// transform that knows the legal options (StepPlan::mask_key) keeps others from
// the environment and declares its own. Without one, nothing would keep an
// action of another form from being a forbidden one, so such plans are refused.
//
// Leaves of the root outlive a step: what a transform saw at the root is next's
// value of the last step at the same stage. So a leaf of the root that a
// transform uses is kept, with the buffer below next that becomes it.
//
// Devices. Where the environment is on a device, a leaf of stage 0 is never
// changed in place, as the environment keeps its own values. If all transforms
// work on the device (transforms/steps/device_steps.h), all buffers lie there.
// Else a leaf of stage 0 that a transform uses is copied to the host, and
// leaves that transforms made are copied to others on the device, for the
// caller. All else stays on the device.

namespace rill::envs_internal {
namespace {

using Buffer = TransformedSteps::Buffer;
using RowCopy = TransformedSteps::RowCopy;

// Buffers of which one is copied to the other.
struct Link {
  size_t from = 0;
  size_t to = 0;
};

class Planner {
 public:
  Planner(absl::string_view caller, const Env& env,
          absl::Span<const std::unique_ptr<StepTransform>> transforms)
      : caller_(caller), env_(env), transforms_(transforms) {}

  absl::StatusOr<TransformedSteps> Plan();

 private:
  // The buffers of the leaves so far, by their keys.
  using Current = std::map<std::string, size_t, std::less<>>;

  absl::StatusOr<TensorDictSpec> AddTransform(size_t i,
                                              const TensorDictSpec& before);
  void ForkRoots(size_t stage, const StepPlan& plan, std::vector<Link>* copies);
  absl::Status AddAction(size_t stage, const StepPlan& plan,
                         std::vector<size_t>* used);
  absl::Status AddLegal(const StepPlan& plan);
  absl::StatusOr<size_t> FindBuffer(const BoundRows::Leaf& leaf) const;
  bool IsAction(absl::string_view key) const {
    return env_.spec().action.Find(key) != nullptr;
  }
  bool IsRoot(absl::string_view key) const {
    return !IsNext(key) && !IsAction(key);
  }
  absl::Status CheckGroups(const StepPlan& plan) const;
  bool IsUsedRoot(absl::string_view key) const;
  bool IsOnDevice() const { return !env_.spec().device.is_cpu(); }
  // The environment's own, which it reads again.
  bool IsLent(size_t buffer) const {
    return IsOnDevice() && steps_.buffers[buffer].stage == 0;
  }
  size_t WriteBuffer(const BoundRows::Leaf& leaf, const LeafSpec& spec,
                     size_t stage, bool is_needed);
  size_t AddBuffer(absl::string_view key, const LeafSpec& spec, size_t stage);
  absl::Status MakeTensors();
  std::vector<bool> FindTouched() const;
  absl::Status MakeBuffer(Buffer* buffer) const;
  absl::Status MakeDeviceBuffer(size_t i, bool is_touched);
  RowCopy CopyOf(const Link& link) const;
  void LinkKept();
  void Resolve();

  absl::Status Misfit(absl::string_view key, absl::string_view got,
                      absl::string_view want) const {
    return StepMisfit(caller_, key, got, want);
  }
  absl::Status Annotate(size_t i, const absl::Status& status) const {
    return AnnotateTransform(status, env_, i, *transforms_[i]);
  }

  const absl::string_view caller_;
  const Env& env_;
  const absl::Span<const std::unique_ptr<StepTransform>> transforms_;
  TransformedSteps steps_;
  Current current_;
  std::vector<std::vector<Link>> copies_;  // Of each transform.
  // By the key of an action.
  struct Legal {
    LegalActions actions;
    bool is_kept = false;  // By a transform, and not by who steps.
  };
  std::map<std::string, Legal, std::less<>> legal_;
  // The actions that a transform has changed to what is done.
  std::set<std::string, std::less<>> changed_;
  std::set<size_t> written_actions_;  // Buffers.
};

absl::StatusOr<TransformedSteps> Planner::Plan() {
  const bool works_there = std::all_of(
      transforms_.begin(), transforms_.end(),
      [](const auto& each) { return AsDeviceSteps(*each) != nullptr; });
  if (IsOnDevice() && !works_there) {
    RILL_ASSIGN_OR_RETURN(
        steps_.copies_to_host,
        DeviceStepCopies::Create(env_.spec().device, env_.lanes()));
  }
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec, StepSpec(env_.spec()));
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    current_[leaf.key] = AddBuffer(leaf.key, leaf.spec, 0);
  }
  for (const LegalActions& legal : env_.spec().legal_actions) {
    legal_[legal.action] = {.actions = legal, .is_kept = legal.replaces_others};
    if (legal.replaces_others) changed_.insert(legal.action);
  }
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(spec, AddTransform(i, spec));
  }
  std::vector<LegalActions> legal;
  for (const auto& [action, each] : legal_) legal.push_back(each.actions);
  RILL_ASSIGN_OR_RETURN(
      steps_.spec, SpecBehindTransforms(caller_, env_.spec(), spec, legal));
  RILL_RETURN_IF_ERROR(MakeTensors());
  LinkKept();
  Resolve();
  return std::move(steps_);
}

size_t Planner::AddBuffer(absl::string_view key, const LeafSpec& spec,
                          size_t stage) {
  steps_.buffers.push_back(
      {.key = std::string(key),
       .spec = spec,
       .stage = stage,
       .saved_stage = stage,
       .width = spec.shape.num_elements() * DTypeSize(spec.dtype)});
  return steps_.buffers.size() - 1;
}

// Transforms are reset with their lane. A leaf that one makes of the root of a
// group whose episodes begin on their own would be of the episode before.
absl::Status Planner::CheckGroups(const StepPlan& plan) const {
  for (const BoundRows::Leaf& leaf : plan.leaves) {
    const absl::string_view root = RootOf(leaf.key);
    if (leaf.use == LeafUse::kRead || IsAction(leaf.key) ||
        plan.spec.Find(root) == nullptr) {
      continue;
    }
    for (const std::string& group : env_.spec().own_episodes) {
      if (!absl::StartsWith(root, absl::StrCat(group, "/"))) continue;
      return Misfit(leaf.key,
                    absl::StrCat("one of \"", group,
                                 "\", whose episodes begin on their own"),
                    "other leaves, as transforms are reset with their lane; "
                    "transform batches of it");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorDictSpec> Planner::AddTransform(
    size_t i, const TensorDictSpec& before) {
  absl::StatusOr<StepPlan> plan = transforms_[i]->PlanSteps(before);
  RILL_RETURN_IF_ERROR(plan.status())
      << caller_ << ": transforms[" << i << "] (" << transforms_[i]->name()
      << ") does not fit what comes before it";
  RILL_RETURN_IF_ERROR(Annotate(i, CheckGroups(*plan)));
  if (!plan->statistics.empty() && plan->frozen == nullptr) {
    return Annotate(i,
                    InvalidArgument(caller_,
                                    ": StepPlan::frozen: got null, want a "
                                    "transform that leaves the statistics as "
                                    "they are, for evaluations"));
  }
  if (IsOnDevice() && steps_.copies_to_host == nullptr &&
      plan->frozen != nullptr && AsDeviceSteps(*plan->frozen) == nullptr) {
    return Annotate(
        i, InvalidArgument(caller_,
                           ": StepPlan::frozen: got one that does not work on "
                           "a device, want one that does, as this transform"));
  }
  steps_.statistics.push_back(plan->statistics);
  steps_.frozen.push_back(plan->frozen);
  std::set<absl::string_view> read;
  for (const BoundRows::Leaf& leaf : plan->leaves) {
    if (leaf.use == LeafUse::kRead) read.insert(leaf.key);
  }
  std::vector<size_t> used(plan->leaves.size());
  std::vector<Link> copies;
  // Leaves are read as they were before this transform.
  for (const LeafUse use :
       {LeafUse::kRead, LeafUse::kUpdate, LeafUse::kWrite}) {
    for (size_t k = 0; k < used.size(); ++k) {
      const BoundRows::Leaf& leaf = plan->leaves[k];
      if (leaf.use != use || IsAction(leaf.key)) continue;
      const LeafSpec* spec = plan->spec.Find(leaf.key);
      // In place is right only where nobody reads the value before: neither
      // this transform, nor an earlier one by way of its root.
      const bool is_needed = read.contains(leaf.key) ||
                             read.contains(RootOf(leaf.key)) ||
                             IsUsedRoot(leaf.key);
      if (use == LeafUse::kWrite) {
        if (spec == nullptr || !HasLayout(*spec, leaf.dtype, leaf.shape)) {
          return Annotate(i, Misfit(leaf.key, "one that PlanSteps writes",
                                    "it in its spec, with this layout"));
        }
        used[k] = WriteBuffer(leaf, *spec, i + 1, is_needed);
        continue;
      }
      absl::StatusOr<size_t> found = FindBuffer(leaf);
      if (!found.ok()) return Annotate(i, found.status());
      used[k] = *found;
      if (use == LeafUse::kRead || !(is_needed || IsLent(*found))) continue;
      used[k] = AddBuffer(leaf.key, steps_.buffers[*found].spec, i + 1);
      if (!is_needed) {
        steps_.buffers[used[k]].saved_stage =
            steps_.buffers[*found].saved_stage;
      }
      current_[leaf.key] = used[k];
      copies.push_back({*found, used[k]});
    }
  }
  ForkRoots(i + 1, *plan, &copies);
  RILL_RETURN_IF_ERROR(Annotate(i, AddAction(i + 1, *plan, &used)));
  RILL_RETURN_IF_ERROR(Annotate(i, AddLegal(*plan)));
  // Leaves that the transform takes away; those behind it cannot use them.
  for (auto at = current_.begin(); at != current_.end();) {
    at = plan->spec.Find(at->first) == nullptr ? current_.erase(at)
                                               : std::next(at);
  }
  // The reverse: a leaf that its spec has must have come from somewhere.
  for (const TensorDictSpec::Leaf& leaf : plan->spec.leaves()) {
    const auto found = current_.find(leaf.key);
    if (found != current_.end() &&
        HasLayout(steps_.buffers[found->second].spec, leaf.spec.dtype,
                  leaf.spec.shape)) {
      continue;
    }
    return Annotate(i, Misfit(leaf.key, "a spec that nothing writes",
                              "it among the leaves of PlanSteps, kWrite"));
  }
  steps_.used.push_back(std::move(used));
  copies_.push_back(std::move(copies));
  return std::move(plan->spec);
}

// Where only next/x changes, x of the root is another from here on too: an
// earlier transform, and this one, keeps the one that it reads.
void Planner::ForkRoots(size_t stage, const StepPlan& plan,
                        std::vector<Link>* copies) {
  for (const BoundRows::Leaf& leaf : plan.leaves) {
    if (leaf.use == LeafUse::kRead || !IsNext(leaf.key)) continue;
    const auto root = current_.find(RootOf(leaf.key));
    if (root == current_.end() || steps_.buffers[root->second].stage == stage) {
      continue;
    }
    bool is_used = IsUsedRoot(leaf.key);
    bool is_changed = false;
    for (const BoundRows::Leaf& other : plan.leaves) {
      if (other.key != root->first) continue;
      is_used = true;
      is_changed = is_changed || other.use != LeafUse::kRead;
    }
    if (!is_used || is_changed) continue;
    const size_t from = root->second;
    root->second = AddBuffer(root->first, steps_.buffers[from].spec, stage);
    steps_.buffers[root->second].is_kept = true;
    copies->push_back({from, root->second});
  }
}

// An action goes the other way: what a transform writes is the one that there
// was before it, what it reads the one behind it.
absl::Status Planner::AddAction(size_t stage, const StepPlan& plan,
                                std::vector<size_t>* used) {
  // The two sides of the transform: `before` is nearer to the environment.
  const Current before = current_;
  for (const BoundRows::Leaf& leaf : plan.leaves) {
    const LeafSpec* const spec = plan.spec.Find(leaf.key);
    if (!IsAction(leaf.key) || leaf.use != LeafUse::kWrite || spec == nullptr) {
      continue;
    }
    if (changed_.contains(leaf.key)) {
      return Misfit(leaf.key, "a transform that makes it from another action",
                    "it nearer to the environment than the one that changes "
                    "the action to what is done: steps would hold the action "
                    "before that change");
    }
    current_[leaf.key] = AddBuffer(leaf.key, *spec, stage);
  }
  for (size_t k = 0; k < used->size(); ++k) {
    const BoundRows::Leaf& leaf = plan.leaves[k];
    if (!IsAction(leaf.key)) continue;
    if (leaf.use == LeafUse::kUpdate) changed_.emplace(leaf.key);
    const Current& side = leaf.use == LeafUse::kWrite ? before : current_;
    const auto found = side.find(leaf.key);
    if (found == side.end() || !HasLayout(steps_.buffers[found->second].spec,
                                          leaf.dtype, leaf.shape)) {
      return Misfit(leaf.key,
                    found == side.end()
                        ? "none"
                        : steps_.buffers[found->second].spec.ToString(),
                    "the layout that PlanSteps names");
    }
    (*used)[k] = found->second;
    if (leaf.use != LeafUse::kRead) written_actions_.insert(found->second);
  }
  return absl::OkStatus();
}

// current_ has the leaves of the action behind this transform.
absl::Status Planner::AddLegal(const StepPlan& plan) {
  for (auto at = legal_.begin(); at != legal_.end();) {
    const std::string& action = at->first;
    const auto& legal = at->second;
    const bool is_made =
        std::any_of(plan.leaves.begin(), plan.leaves.end(),
                    [&](const BoundRows::Leaf& leaf) {
                      return leaf.key == action && leaf.use == LeafUse::kWrite;
                    });
    if (!is_made) {
      const LeafSpec* const mask = plan.spec.Find(legal.actions.mask);
      RILL_ASSIGN_OR_RETURN(
          const Shape shape,
          LegalMaskShape(steps_.buffers[current_.find(action)->second].spec));
      if (mask != nullptr && HasLayout(*mask, DType::kBool, shape)) {
        ++at;
        continue;
      }
    }
    if (!legal.is_kept) {
      return Misfit(is_made ? action : legal.actions.mask,
                    is_made ? "a transform that makes it from another action"
                            : "a transform that takes the mask away",
                    absl::StrCat("an ActionMask of \"", legal.actions.mask,
                                 "\" between it and the environment, which "
                                 "keeps forbidden actions from it"));
    }
    at = legal_.erase(at);
  }
  if (plan.mask_key.empty()) return absl::OkStatus();
  legal_["action"] = {
      .actions = {.action = "action",
                  .mask = plan.mask_key,
                  .replaces_others = changed_.contains("action")},
      .is_kept = true};
  return absl::OkStatus();
}

absl::StatusOr<size_t> Planner::FindBuffer(const BoundRows::Leaf& leaf) const {
  const auto found = current_.find(leaf.key);
  if (found != current_.end() &&
      HasLayout(steps_.buffers[found->second].spec, leaf.dtype, leaf.shape)) {
    return found->second;
  }
  return Misfit(leaf.key,
                found == current_.end()
                    ? "none"
                    : steps_.buffers[found->second].spec.ToString(),
                absl::StrCat(DTypeName(leaf.dtype), leaf.shape.ToString()));
}

// An earlier transform has that leaf of the root: what later ones make of it
// must not come back to it.
bool Planner::IsUsedRoot(absl::string_view key) const {
  const absl::string_view root = RootOf(key);
  for (const std::vector<size_t>& used : steps_.used) {
    for (const size_t buffer : used) {
      if (steps_.buffers[buffer].key == root) return true;
    }
  }
  return false;
}

// The place of a leaf that is written without being read: the old buffer, where
// it fits and nobody needs its values.
size_t Planner::WriteBuffer(const BoundRows::Leaf& leaf, const LeafSpec& spec,
                            size_t stage, bool is_needed) {
  const auto found = current_.find(leaf.key);
  const bool fits =
      found != current_.end() && !is_needed &&
      HasLayout(steps_.buffers[found->second].spec, leaf.dtype, leaf.shape);
  if (fits && !IsLent(found->second)) return found->second;
  const size_t made = AddBuffer(leaf.key, spec, stage);
  if (fits) {
    steps_.buffers[made].saved_stage =
        steps_.buffers[found->second].saved_stage;
  }
  return current_[leaf.key] = made;
}

absl::Status Planner::MakeTensors() {
  for (const auto& [key, buffer] : current_) {
    steps_.buffers[buffer].is_last = true;
  }
  for (const std::vector<size_t>& used : steps_.used) {
    for (const size_t buffer : used) {
      steps_.buffers[buffer].is_kept = IsRoot(steps_.buffers[buffer].key);
    }
  }
  // The environment needs its own root, which nobody else keeps then.
  for (const std::vector<Link>& links : copies_) {
    for (const Link& link : links) {
      Buffer& from = steps_.buffers[link.from];
      from.is_own = from.is_own ||
                    (!from.is_kept && IsLent(link.from) && IsRoot(from.key));
      from.is_kept = from.is_kept || from.is_own;
    }
  }
  if (steps_.copies_to_host == nullptr) {
    for (Buffer& buffer : steps_.buffers) {
      RILL_RETURN_IF_ERROR(MakeBuffer(&buffer));
    }
  } else {
    const std::vector<bool> touched = FindTouched();
    for (size_t i = 0; i < touched.size(); ++i) {
      RILL_RETURN_IF_ERROR(MakeDeviceBuffer(i, touched[i]));
    }
    RILL_RETURN_IF_ERROR(steps_.copies_to_host->Bind());
  }
  // In the order of StepSpec, whatever the transforms made first.
  steps_.step = TensorDict({env_.lanes()});
  RILL_ASSIGN_OR_RETURN(const TensorDictSpec spec, StepSpec(steps_.spec));
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    const Buffer& buffer = steps_.buffers[current_.find(leaf.key)->second];
    RILL_RETURN_IF_ERROR(steps_.step.Set(
        leaf.key, steps_.copies_to_host != nullptr || buffer.is_kept
                      ? buffer.outer
                      : buffer.tensor));
  }
  const Buffer& done = steps_.buffers[current_.find("next/done")->second];
  steps_.done = done.tensor.raw_data();
  if (IsOnDevice() && steps_.copies_to_host == nullptr &&
      !transforms_.empty()) {
    const bool has_faults = std::any_of(
        transforms_.begin(), transforms_.end(),
        [](const auto& each) { return AsDeviceSteps(*each)->has_faults(); });
    RILL_ASSIGN_OR_RETURN(
        steps_.on_device,
        StepsOnDevice::Create(done.tensor, done.stage > 0 || has_faults,
                              transforms_.size()));
  }
  for (const TensorDictSpec::Leaf& action : env_.spec().action.leaves()) {
    steps_.replaces_action |=
        steps_.buffers[current_.find(action.key)->second].stage > 0;
  }
  return absl::OkStatus();
}

// Stage 0 has the environment's own tensors. A kept leaf that the caller sees
// is two tensors: the transforms' own, and a copy that the caller may overwrite
// without harm to the next step.
absl::Status Planner::MakeBuffer(Buffer* buffer) const {
  const auto make = [&]() -> absl::StatusOr<Tensor> {
    RILL_ASSIGN_OR_RETURN(
        const Tensor zeros,
        Tensor::Zeros(buffer->spec.dtype,
                      Shape({env_.lanes()}).Concat(buffer->spec.shape)));
    return zeros.To(env_.spec().device);
  };
  if (buffer->stage == 0) {
    RILL_ASSIGN_OR_RETURN(buffer->tensor, env_.step().Get(buffer->key));
  } else {
    RILL_ASSIGN_OR_RETURN(buffer->tensor, make());
  }
  if (buffer->is_last && buffer->is_kept) {
    RILL_ASSIGN_OR_RETURN(buffer->outer, make());
  }
  return absl::OkStatus();
}

// The buffers whose values the host needs.
std::vector<bool> Planner::FindTouched() const {
  const std::vector<Buffer>& buffers = steps_.buffers;
  std::vector<bool> touched(buffers.size(), false);
  for (const std::vector<size_t>& used : steps_.used) {
    for (const size_t buffer : used) touched[buffer] = true;
  }
  for (const std::vector<Link>& links : copies_) {
    for (const Link& link : links) touched[link.from] = true;
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    // All above stage 0 is made on the host. A kept leaf of the root needs the
    // one that becomes it.
    touched[i] = touched[i] || buffers[i].stage > 0;
    if (!IsNext(buffers[i].key)) continue;
    for (const Buffer& root : buffers) {
      touched[i] =
          touched[i] || (root.is_kept && root.key == RootOf(buffers[i].key));
    }
  }
  touched[current_.find("next/done")->second] = true;
  return touched;
}

absl::Status Planner::MakeDeviceBuffer(size_t i, bool is_touched) {
  Buffer& buffer = steps_.buffers[i];
  DeviceStepCopies& device = *steps_.copies_to_host;
  const Shape shape = Shape({env_.lanes()}).Concat(buffer.spec.shape);
  if (buffer.stage == 0) {
    RILL_ASSIGN_OR_RETURN(buffer.outer, env_.step().Get(buffer.key));
  } else if (buffer.is_last) {
    RILL_ASSIGN_OR_RETURN(buffer.outer,
                          device.DeviceZeros(buffer.spec.dtype, shape));
  }
  if (!is_touched) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(buffer.tensor,
                        device.HostZeros(buffer.spec.dtype, shape));
  const bool is_env = buffer.stage == 0;
  if (IsAction(buffer.key)) {
    if (buffer.is_last) device.TakeAction(buffer.outer, buffer.tensor);
    if (written_actions_.contains(i) && (is_env || buffer.is_last)) {
      device.GiveAction(buffer.outer, buffer.tensor);
    }
    return absl::OkStatus();
  }
  if (IsNext(buffer.key)) {
    if (is_env) {
      device.TakeNext(buffer.outer, buffer.tensor);
    } else if (buffer.is_last) {
      device.GiveNext(buffer.outer, buffer.tensor);
    }
    return absl::OkStatus();
  }
  if (!is_env) {
    return buffer.is_last ? device.GiveRoot(buffer.outer, buffer.tensor)
                          : absl::OkStatus();
  }
  if (!buffer.is_last) {
    RILL_ASSIGN_OR_RETURN(const Tensor next,
                          env_.step().Get(absl::StrCat("next/", buffer.key)));
    device.Carry(next, buffer.outer, buffer.tensor);
  }
  return device.TakeRoot(buffer.outer, buffer.tensor);
}

RowCopy Planner::CopyOf(const Link& link) const {
  const Buffer& to = steps_.buffers[link.to];
  return {.from = steps_.buffers[link.from].tensor.raw_data(),
          .to = to.tensor.raw_data(),
          .width = to.width};
}

// The buffer below next that becomes a kept one of the root: the last of both,
// else the newest that is no newer.
void Planner::LinkKept() {
  const std::vector<Buffer>& buffers = steps_.buffers;
  for (size_t to = 0; to < buffers.size(); ++to) {
    const Buffer& root = buffers[to];
    if (!root.is_kept) continue;
    const std::string key = absl::StrCat("next/", root.key);
    if (root.is_last) {
      steps_.carried.push_back(CopyOf({current_.find(key)->second, to}));
      if (steps_.copies_to_host != nullptr) continue;
      steps_.shown.push_back({.from = root.tensor.raw_data(),
                              .to = root.outer.raw_data(),
                              .width = root.width});
      continue;
    }
    size_t from = buffers.size();
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].key == key && buffers[i].stage <= root.stage &&
          HasLayout(buffers[i].spec, root.spec.dtype, root.spec.shape)) {
        from = i;
      }
    }
    if (from < buffers.size()) steps_.carried.push_back(CopyOf({from, to}));
  }
}

void Planner::Resolve() {
  for (const std::vector<Link>& links : copies_) {
    TransformedSteps::Copies& copies = steps_.copies.emplace_back();
    for (const Link& link : links) {
      (steps_.buffers[link.to].is_kept ? copies.before_reset
                                       : copies.before_step)
          .push_back(CopyOf(link));
    }
  }
  for (const std::vector<size_t>& used : steps_.used) {
    std::vector<BoundLeaf>& leaves = steps_.leaves.emplace_back();
    std::vector<Tensor>& tensors = steps_.tensors.emplace_back();
    for (const size_t at : used) {
      const Buffer& buffer = steps_.buffers[at];
      tensors.push_back(buffer.tensor);
      leaves.push_back({.data = buffer.tensor.raw_data(),
                        .strides = {buffer.width, buffer.width},
                        .width = buffer.width,
                        .is_flat = true,
                        .dtype = buffer.spec.dtype,
                        .device = steps_.on_device != nullptr
                                      ? env_.spec().device
                                      : Device::Cpu(),
                        .is_writable = true,
                        .rows = env_.lanes(),
                        .shape = buffer.spec.shape});
    }
  }
}

}  // namespace

absl::StatusOr<TensorDict> OwnState(const TensorDict& state) {
  return state.Apply(
      [](absl::string_view, const Tensor& leaf) { return leaf.Clone(); });
}

// A dictionary without a device of its own: OnSeed may set tensors of the host.
absl::StatusOr<TensorDict> StateOn(Device device, const TensorDict& state) {
  return state.Apply([device](absl::string_view, const Tensor& leaf) {
    return leaf.To(device);
  });
}

absl::Status AnnotateTransform(const absl::Status& status, const Env& env,
                               size_t i, const StepTransform& transform) {
  if (status.ok()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; in transforms[", i, "] (",
                   transform.name(), ") of ", env.name()));
}

const DeviceSteps* AsDeviceSteps(const StepTransform& transform) {
  const auto* const steps = dynamic_cast<const DeviceSteps*>(&transform);
  return steps != nullptr && steps->works_on_device() ? steps : nullptr;
}

absl::StatusOr<TransformedSteps> PlanTransformedSteps(
    absl::string_view caller, const Env& env,
    absl::Span<const std::unique_ptr<StepTransform>> transforms) {
  return Planner(caller, env, transforms).Plan();
}

}  // namespace rill::envs_internal

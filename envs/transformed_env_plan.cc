// SPDX-License-Identifier: Apache-2.0
// How a TransformedEnv is made: which buffers there are, and who uses them.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/envs/step_spec.h"
#include "rill/envs/transformed_env.h"
#include "rill/tensordict/dtype.h"

namespace rill {
namespace {

constexpr absl::string_view kCaller = "TransformedEnv::Create";

bool IsNext(absl::string_view key) { return absl::StartsWith(key, "next/"); }

bool IsRoot(absl::string_view key) { return !IsNext(key) && key != "action"; }

// The leaf of the root that `key` is or becomes.
absl::string_view RootOf(absl::string_view key) {
  return IsNext(key) ? key.substr(5) : key;
}

bool IsFlag(absl::string_view key) {
  return key == "done" || key == "terminated" || key == "truncated";
}

bool HasLayout(const LeafSpec& spec, DType dtype, const Shape& shape) {
  return spec.dtype == dtype && spec.shape == shape;
}

absl::Status Misfit(absl::string_view key, absl::string_view got,
                    absl::string_view want) {
  return absl::InvalidArgumentError(absl::StrCat(
      kCaller, ": leaf \"", key, "\": got ", got, ", want ", want));
}

absl::Status CheckIs(const TensorDictSpec& spec, absl::string_view key,
                     DType dtype) {
  const LeafSpec* leaf = spec.Find(key);
  if (leaf != nullptr && HasLayout(*leaf, dtype, {1})) return absl::OkStatus();
  return Misfit(key, leaf == nullptr ? "none" : leaf->ToString(),
                absl::StrCat(DTypeName(dtype), "[1] after the transforms"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransformedEnv>> TransformedEnv::Create(
    std::unique_ptr<Env> env, Transforms transforms) {
  if (env == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(kCaller, ": env: got null, want an environment"));
  }
  for (size_t i = 0; i < transforms.size(); ++i) {
    if (transforms[i] != nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        kCaller, ": transforms[", i, "]: got null, want a transform"));
  }
  auto result = absl::WrapUnique(
      new TransformedEnv(std::move(env), std::move(transforms)));
  RILL_RETURN_IF_ERROR(result->Plan());
  return result;
}

TransformedEnv::TransformedEnv(std::unique_ptr<Env> env, Transforms transforms)
    : env_(std::move(env)), transforms_(std::move(transforms)) {}

absl::Status TransformedEnv::Plan() {
  RILL_ASSIGN_OR_RETURN(TensorDictSpec spec, StepSpec(*env_));
  Current current;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    current[leaf.key] = AddBuffer(leaf.key, leaf.spec, 0);
  }
  for (size_t i = 0; i < transforms_.size(); ++i) {
    RILL_ASSIGN_OR_RETURN(TensorDict state,
                          transforms_[i]->InitialState(env_->lanes()));
    states_.push_back(std::move(state));
    RILL_ASSIGN_OR_RETURN(spec, AddTransform(i, spec, &current));
  }
  next_states_ = states_;
  RILL_RETURN_IF_ERROR(SetSpecs(spec));
  RILL_RETURN_IF_ERROR(MakeBuffers(current));
  LinkKept(current);
  return Resolve();
}

size_t TransformedEnv::AddBuffer(absl::string_view key, const LeafSpec& spec,
                                 size_t stage) {
  buffers_.push_back(
      {.key = std::string(key),
       .spec = spec,
       .stage = stage,
       .width = spec.shape.num_elements() * DTypeSize(spec.dtype)});
  return buffers_.size() - 1;
}

absl::StatusOr<TensorDictSpec> TransformedEnv::AddTransform(
    size_t i, const TensorDictSpec& before, Current* current) {
  absl::StatusOr<StepPlan> plan = transforms_[i]->PlanSteps(before);
  RILL_RETURN_IF_ERROR(plan.status())
      << kCaller << ": transforms[" << i << "] (" << transforms_[i]->name()
      << ") does not fit what comes before it";
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
      if (leaf.use != use || leaf.key == "action") continue;
      const LeafSpec* spec = plan->spec.Find(leaf.key);
      const bool is_needed = read.contains(leaf.key) ||
                             read.contains(RootOf(leaf.key)) ||
                             IsUsedRoot(leaf.key);
      if (use == LeafUse::kWrite) {
        if (spec == nullptr || !HasLayout(*spec, leaf.dtype, leaf.shape)) {
          return Annotate(i, Misfit(leaf.key, "one that PlanSteps writes",
                                    "it in its spec, with this layout"));
        }
        used[k] = WriteBuffer(leaf, *spec, i + 1, is_needed, current);
        continue;
      }
      absl::StatusOr<size_t> found = FindBuffer(leaf, *current);
      if (!found.ok()) return Annotate(i, found.status());
      used[k] = *found;
      if (use == LeafUse::kRead || !is_needed) continue;
      used[k] = AddBuffer(leaf.key, buffers_[*found].spec, i + 1);
      (*current)[leaf.key] = used[k];
      copies.push_back({*found, used[k]});
    }
  }
  ForkRoots(i + 1, *plan, current, &copies);
  RILL_RETURN_IF_ERROR(Annotate(i, AddAction(i + 1, *plan, current, &used)));
  for (auto at = current->begin(); at != current->end();) {
    at = plan->spec.Find(at->first) == nullptr ? current->erase(at)
                                               : std::next(at);
  }
  for (const TensorDictSpec::Leaf& leaf : plan->spec.leaves()) {
    const auto found = current->find(leaf.key);
    if (found != current->end() &&
        HasLayout(buffers_[found->second].spec, leaf.spec.dtype,
                  leaf.spec.shape)) {
      continue;
    }
    return Annotate(i, Misfit(leaf.key, "a spec that nothing writes",
                              "it among the leaves of PlanSteps, kWrite"));
  }
  used_.push_back(std::move(used));
  copies_.push_back(std::move(copies));
  return std::move(plan->spec);
}

// Where only next/x changes, x of the root is another from here on too: an
// earlier transform, and this one, keeps the one that it reads.
void TransformedEnv::ForkRoots(size_t stage, const StepPlan& plan,
                               Current* current, std::vector<Link>* copies) {
  for (const BoundRows::Leaf& leaf : plan.leaves) {
    if (leaf.use == LeafUse::kRead || !IsNext(leaf.key)) continue;
    const auto root = current->find(RootOf(leaf.key));
    if (root == current->end() || buffers_[root->second].stage == stage) {
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
    root->second = AddBuffer(root->first, buffers_[from].spec, stage);
    buffers_[root->second].is_kept = true;
    copies->push_back({from, root->second});
  }
}

// The action goes the other way: what a transform writes is the one that there
// was before it, what it reads the one behind it.
absl::Status TransformedEnv::AddAction(size_t stage, const StepPlan& plan,
                                       Current* current,
                                       std::vector<size_t>* used) {
  const size_t inner = current->find("action")->second;
  const LeafSpec* const spec = plan.spec.Find("action");
  const auto is_written = [](const BoundRows::Leaf& leaf) {
    return leaf.key == "action" && leaf.use == LeafUse::kWrite;
  };
  if (spec != nullptr &&
      std::any_of(plan.leaves.begin(), plan.leaves.end(), is_written)) {
    (*current)["action"] = AddBuffer("action", *spec, stage);
  }
  for (size_t k = 0; k < used->size(); ++k) {
    const BoundRows::Leaf& leaf = plan.leaves[k];
    if (leaf.key != "action") continue;
    if (leaf.use == LeafUse::kUpdate) {
      return Misfit("action", "kUpdate",
                    "kRead and kWrite: the action that was chosen stays");
    }
    const size_t buffer =
        is_written(leaf) ? inner : current->find("action")->second;
    if (!HasLayout(buffers_[buffer].spec, leaf.dtype, leaf.shape)) {
      return Misfit("action", buffers_[buffer].spec.ToString(),
                    "the layout that PlanSteps names");
    }
    (*used)[k] = buffer;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> TransformedEnv::FindBuffer(
    const BoundRows::Leaf& leaf, const Current& current) const {
  const auto found = current.find(leaf.key);
  if (found != current.end() &&
      HasLayout(buffers_[found->second].spec, leaf.dtype, leaf.shape)) {
    return found->second;
  }
  return Misfit(
      leaf.key,
      found == current.end() ? "none" : buffers_[found->second].spec.ToString(),
      absl::StrCat(DTypeName(leaf.dtype), leaf.shape.ToString()));
}

// An earlier transform has that leaf of the root: what later ones make of it
// must not come back to it.
bool TransformedEnv::IsUsedRoot(absl::string_view key) const {
  const absl::string_view root = RootOf(key);
  for (const std::vector<size_t>& used : used_) {
    for (const size_t buffer : used) {
      if (buffers_[buffer].key == root) return true;
    }
  }
  return false;
}

size_t TransformedEnv::WriteBuffer(const BoundRows::Leaf& leaf,
                                   const LeafSpec& spec, size_t stage,
                                   bool is_needed, Current* current) {
  const auto found = current->find(leaf.key);
  if (found != current->end() && !is_needed &&
      HasLayout(buffers_[found->second].spec, leaf.dtype, leaf.shape)) {
    return found->second;
  }
  return (*current)[leaf.key] = AddBuffer(leaf.key, spec, stage);
}

// What an Env promises of its steps still holds.
absl::Status TransformedEnv::SetSpecs(const TensorDictSpec& last) {
  for (const absl::string_view prefix : {"", "next/"}) {
    for (const absl::string_view flag : {"done", "terminated", "truncated"}) {
      RILL_RETURN_IF_ERROR(
          CheckIs(last, absl::StrCat(prefix, flag), DType::kBool));
    }
  }
  RILL_RETURN_IF_ERROR(CheckIs(last, "next/reward", DType::kFloat32));
  const LeafSpec* action = last.Find("action");
  if (action == nullptr) {
    return Misfit("action", "none", "it after the transforms");
  }
  action_spec_ = *action;
  for (const TensorDictSpec::Leaf& leaf : last.leaves()) {
    if (leaf.key == "action" || leaf.key == "next/reward") continue;
    const std::string twin =
        IsNext(leaf.key) ? leaf.key.substr(5) : absl::StrCat("next/", leaf.key);
    const LeafSpec* other = last.Find(twin);
    if (other == nullptr ||
        !HasLayout(*other, leaf.spec.dtype, leaf.spec.shape)) {
      return Misfit(
          twin, other == nullptr ? "none" : other->ToString(),
          absl::StrCat("that of \"", leaf.key,
                       "\" after the transforms: ", leaf.spec.ToString()));
    }
    if (IsNext(leaf.key) || IsFlag(leaf.key)) continue;
    RILL_RETURN_IF_ERROR(observation_spec_.Set(leaf.key, leaf.spec));
  }
  return absl::OkStatus();
}

absl::Status TransformedEnv::MakeBuffers(const Current& current) {
  for (const auto& [key, buffer] : current) buffers_[buffer].is_last = true;
  for (const std::vector<size_t>& used : used_) {
    for (const size_t buffer : used) {
      buffers_[buffer].is_kept = IsRoot(buffers_[buffer].key);
    }
  }
  const Shape lanes = {env_->lanes()};
  for (Buffer& buffer : buffers_) {
    RILL_ASSIGN_OR_RETURN(
        buffer.tensor,
        Tensor::Zeros(buffer.spec.dtype, lanes.Concat(buffer.spec.shape)));
  }
  std::vector<BoundRows::Leaf> root, step;
  for (const auto& [key, buffer] : current) {
    const LeafSpec& spec = buffers_[buffer].spec;
    const bool is_root = IsRoot(key);
    (is_root ? root : step)
        .push_back({.key = key, .dtype = spec.dtype, .shape = spec.shape});
    (is_root ? root_ : step_).buffers.push_back(buffer);
  }
  const ReuseRules rules = {.allow_strides = true};
  RILL_ASSIGN_OR_RETURN(root_.rows, BoundRows::Create("TransformedEnv::Reset",
                                                      std::move(root), rules));
  RILL_ASSIGN_OR_RETURN(step_.rows, BoundRows::Create("TransformedEnv::Step",
                                                      std::move(step), rules));
  done_buffer_ = current.find("next/done")->second;
  replaces_action_ = buffers_[current.find("action")->second].stage > 0;
  done_.assign(static_cast<size_t>(env_->lanes()), 0);
  leaves_.resize(used_.size());
  env_step_ = TensorDict(lanes);
  return absl::OkStatus();
}

// The buffer below next that becomes a kept one of the root: the last of both,
// else the newest that is no newer.
void TransformedEnv::LinkKept(const Current& current) {
  for (size_t to = 0; to < buffers_.size(); ++to) {
    const Buffer& root = buffers_[to];
    if (!root.is_kept) continue;
    const std::string key = absl::StrCat("next/", root.key);
    if (root.is_last) {
      carried_.push_back({current.find(key)->second, to});
      continue;
    }
    size_t from = buffers_.size();
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].key == key && buffers_[i].stage <= root.stage &&
          HasLayout(buffers_[i].spec, root.spec.dtype, root.spec.shape)) {
        from = i;
      }
    }
    if (from < buffers_.size()) carried_.push_back({from, to});
  }
}

}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/collectors/conformance/policy_conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "rill/collectors/testing/memory_policy.h"
#include "rill/collectors/testing/parity_policy.h"
#include "rill/envs/policies/policy.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

PolicySubject With(std::shared_ptr<Policy> policy) {
  PolicySubject subject = {
      .policy = std::move(policy),
      .root = TensorDict({4}),
      .action = LeafSpec::Categorical(2),
  };
  Tensor observation = *Tensor::Zeros(DType::kFloat32, {4, 2});
  for (int64_t i = 0; i < 8; ++i) {
    observation.data<float>()[i] = 0.01f * static_cast<float>(i * i);
  }
  RILL_EXPECT_OK(subject.root.Set("observation", observation));
  return subject;
}

PolicySubject Parity() { return With(std::make_shared<ParityPolicy>()); }
PolicySubject Function() {
  return With(std::make_shared<FunctionPolicy>(
      [](const TensorDict&, const ActContext& context, Tensor* action) {
        std::fill_n(action->data<int64_t>(), action->num_elements(),
                    context.step % 2);
        return absl::OkStatus();
      }));
}

// With the root's leaf of its recurrent state.
PolicySubject Recurrent(std::shared_ptr<Policy> policy) {
  PolicySubject subject = With(std::move(policy));
  RILL_EXPECT_OK(subject.root.Set(
      "memory", *Tensor::From<float>({0.5f, -1, 0, 2}, {4, 1})));
  return subject;
}
PolicySubject Memory() { return Recurrent(std::make_shared<MemoryPolicy>()); }

// Lane l has one legal option, l % 2. `wrong` says when another is taken.
PolicySubject Masked(bool (*wrong)(const ActContext& context)) {
  PolicySubject subject = With(std::make_shared<FunctionPolicy>(
      [wrong](const TensorDict& root, const ActContext& context,
              Tensor* action) {
        const bool* const legal = root.Find("legal")->data<bool>();
        for (int64_t lane = 0; lane < action->num_elements(); ++lane) {
          action->data<int64_t>()[lane] =
              legal[2 * lane + 1] != (lane == 2 && wrong(context)) ? 1 : 0;
        }
        return absl::OkStatus();
      }));
  RILL_EXPECT_OK(subject.root.Set(
      "legal",
      *Tensor::From<bool>({true, false, false, true, true, false, false, true},
                          {4, 2})));
  subject.mask_key = "legal";
  return subject;
}
PolicySubject KeepsToTheMask() {
  return Masked([](const ActContext&) { return false; });
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyConformanceTest,
                         ::testing::Values(Parity, Function, Memory,
                                           KeepsToTheMask));

// --- Policies that break a promise -------------------------------------------

// MemoryPolicy, and what `act` does before and after it.
class WrongPolicy final : public Policy {
 public:
  using Function = std::function<absl::StatusOr<int64_t>(
      MemoryPolicy& right, const TensorDict& root, const ActContext& context,
      TensorDict* step)>;

  explicit WrongPolicy(Function act) : act_(std::move(act)) {}

  const TensorDictSpec& output_spec() const override {
    return right_.output_spec();
  }
  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext& context,
                              TensorDict* step) override {
    return act_(right_, root, context, step);
  }

 private:
  MemoryPolicy right_;
  Function act_;
};

using Wrong = WrongPart<PolicyConformanceTest>;

Wrong Of(std::string name, std::string test, std::string says,
         const WrongPolicy::Function& act) {
  return {std::move(name), std::move(test), std::move(says),
          [act] { return Recurrent(std::make_shared<WrongPolicy>(act)); }};
}

// After the right policy's Act.
Wrong After(
    std::string name, std::string test, std::string says,
    const std::function<void(const TensorDict& root, const ActContext& context,
                             TensorDict* step)>& change) {
  return Of(std::move(name), std::move(test), std::move(says),
            [change](MemoryPolicy& right, const TensorDict& root,
                     const ActContext& context, TensorDict* step) {
              auto version = right.Act(root, context, step);
              change(root, context, step);
              return version;
            });
}

float* Floats(const TensorDict& dict, const char* key) {
  return dict.Find(key)->data<float>();
}

std::vector<Wrong> WrongOutputs() {
  const std::string fills = "FillsEveryOutputInPlaceWithinItsSpec";
  return {
      Of("NeverWritesAnOutput", fills, "\"score\"",
         [](MemoryPolicy& right, const TensorDict& root,
            const ActContext& context, TensorDict* step) {
           TensorDict other = *step;
           RILL_EXPECT_OK(other.Set("score", *step->Find("score")->Clone()));
           return right.Act(root, context, &other);
         }),
      Of("LeavesTheLastLane", fills, "differs first at [3, 0]",
         [](MemoryPolicy& right, const TensorDict& root,
            const ActContext& context, TensorDict* step) {
           const TensorDict before = *step->Clone();
           auto version = right.Act(root, context, step);
           Floats(*step, "next/memory")[3] = Floats(before, "next/memory")[3];
           return version;
         }),
      // Where one caller's step begins as zero, as it does in Rollout, this
      // looks like the root's value of a first step.
      Of("ReadsItsStateBelowNext", fills, "what was there before the call",
         [](MemoryPolicy& right, const TensorDict& root,
            const ActContext& context, TensorDict* step) {
           TensorDict other = root;
           RILL_EXPECT_OK(
               other.Set("memory", *step->Find("next/memory")->Clone()));
           return right.Act(other, context, step);
         }),
      After("PutsATensorOfItsOwnInTheStep", fills,
            "\"score\": another tensor took its place",
            [](const TensorDict&, const ActContext&, TensorDict* step) {
              RILL_EXPECT_OK(step->Set("score", *step->Find("score")->Clone()));
            }),
      After("WritesNan", fills, "[0]: got nan",
            [](const TensorDict&, const ActContext&, TensorDict* step) {
              Floats(*step, "score")[2] = std::nanf("");
            }),
      After("LeavesTheActionsSpec", fills, "\"action\"",
            [](const TensorDict&, const ActContext&, TensorDict* step) {
              step->Find("action")->data<int64_t>()[2] = 2;
            }),
      After("WritesTheRoot", "LeavesTheRootAlone", "\"memory\"",
            [](const TensorDict& root, const ActContext&, TensorDict*) {
              Floats(root, "memory")[1] += 1;
            }),
      After("WritesLeavesOfTheEnvironment", "LeavesTheRootAlone",
            "\"next/of the environment\" was written",
            [](const TensorDict&, const ActContext&, TensorDict* step) {
              Floats(*step, "next/of the environment")[0] = 1;
            }),
  };
}

std::vector<Wrong> WrongMemories() {
  const auto add_to_score = [](TensorDict* step, float value) {
    for (int64_t i = 0; i < step->Find("score")->num_elements(); ++i) {
      Floats(*step, "score")[i] += value;
    }
  };
  return {
      // What it remembers is in none of its leaves, and moves no action.
      {.name = "KeepsItsStateInAMember",
       .test = "RemembersInTheRootAlone",
       .says = "\"score\"",
       .part =
           [add_to_score] {
             return Recurrent(std::make_shared<WrongPolicy>(
                 [add_to_score, last = 0.0f](
                     MemoryPolicy& right, const TensorDict& root,
                     const ActContext& context, TensorDict* step) mutable {
                   auto version = right.Act(root, context, step);
                   add_to_score(step, last);
                   last = Floats(root, "observation")[0];
                   return version;
                 }));
           }},
      {.name = "CountsItsOwnCalls",
       .test = "ActsAgainAsItDidInThisContext",
       .says = "resumed at step 3",
       .part =
           [add_to_score] {
             return Recurrent(std::make_shared<WrongPolicy>(
                 [add_to_score, calls = 0](
                     MemoryPolicy& right, const TensorDict& root,
                     const ActContext& context, TensorDict* step) mutable {
                   auto version = right.Act(root, context, step);
                   add_to_score(step, static_cast<float>(++calls));
                   return version;
                 }));
           }},
      {.name = "CountsVersionsWhereNothingLearns",
       .test = "ActingChangesNoVersion",
       .says = "is OK and has a value that is equal to 1",
       .part =
           [] {
             return Recurrent(std::make_shared<WrongPolicy>(
                 [calls = 0](
                     MemoryPolicy& right, const TensorDict& root,
                     const ActContext& context,
                     TensorDict* step) mutable -> absl::StatusOr<int64_t> {
                   RILL_EXPECT_OK(right.Act(root, context, step));
                   return ++calls;
                 }));
           }},
  };
}

std::vector<Wrong> WrongLanes() {
  const std::string lanes = "ALaneDependsOnItsOwnRowAlone";
  return {
      After("ReadsTheStateOfLaneZero", lanes, "lanes in another order",
            [](const TensorDict& root, const ActContext&, TensorDict* step) {
              const int64_t lanes = root.batch_shape()[0];
              for (int64_t lane = 0; lane < lanes; ++lane) {
                Floats(*step, "next/memory")[lane] = Floats(root, "memory")[0];
              }
            }),
      After("SubtractsTheMeanOfTheBatch", lanes, "lanes [0, 1) alone",
            [](const TensorDict& root, const ActContext&, TensorDict* step) {
              const int64_t lanes = root.batch_shape()[0];
              float sum = 0;
              for (int64_t lane = 0; lane < lanes; ++lane) {
                sum += Floats(root, "observation")[2 * lane];
              }
              for (int64_t i = 0; i < 2 * lanes; ++i) {
                Floats(*step, "score")[i] -= sum / static_cast<float>(lanes);
              }
            }),
      After("GivesLanesTheirNumber", lanes, "lanes in another order",
            [](const TensorDict& root, const ActContext&, TensorDict* step) {
              for (int64_t lane = 0; lane < root.batch_shape()[0]; ++lane) {
                Floats(*step, "score")[2 * lane] += static_cast<float>(lane);
              }
            }),
  };
}

std::vector<Wrong> WrongChoices() {
  const std::string legal = "ChoosesLegalActionsAlone";
  const std::string says =
      "lane 2: \"action\": got option 1, want one that "
      "\"legal\" allows";
  return {
      {.name = "ExploresBeyondTheMask",
       .test = legal,
       .says = says,
       .part =
           [] {
             return Masked([](const ActContext& c) { return c.explore; });
           }},
      {.name = "TakesTheBestOfAllOptions",
       .test = legal,
       .says = says,
       .part =
           [] {
             return Masked([](const ActContext& c) { return !c.explore; });
           }},
      {.name = "LeavesTheMaskSometimes",
       .test = legal,
       .says = says,
       .part =
           [] {
             return Masked([](const ActContext& c) { return c.step == 40; });
           }},
  };
}

std::vector<Wrong> WrongPolicies() {
  std::vector<Wrong> all;
  for (const auto& part :
       {WrongOutputs(), WrongMemories(), WrongLanes(), WrongChoices()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}
RILL_REFUSES_WRONG_PARTS(PolicyConformanceTest, WrongPolicies);

}  // namespace
}  // namespace rill

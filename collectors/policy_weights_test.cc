// SPDX-License-Identifier: Apache-2.0
// Policies that read their weights from a WeightStore while a thread publishes
// without pause: the version that a frame carries is that of the weights that
// made it.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/policies/policy.h"
#include "rill/flow/weights/weight_store.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

constexpr int64_t kObservation = 4;

// A linear layer whose every element is `version`.
void Fill(TensorDict* weights, int64_t version) {
  std::fill_n(weights->Find("weight")->data<double>(), kObservation, version);
  *weights->Find("bias")->data<double>() = static_cast<double>(version);
}

TensorDict Weights() {
  TensorDict weights;
  RILL_EXPECT_OK(
      weights.Set("weight", *Tensor::Zeros(DType::kFloat64, {kObservation})));
  RILL_EXPECT_OK(weights.Set("bias", *Tensor::Zeros(DType::kFloat64, {1})));
  return weights;
}

// Action: the parity of the bias, whatever weights and observation say. Counts
// weights that are not of the version that it returns.
class LinearPolicy final : public Policy {
 public:
  explicit LinearPolicy(std::unique_ptr<WeightStore::Reader> reader)
      : reader_(std::move(reader)) {}

  absl::StatusOr<int64_t> Act(const TensorDict& root, const ActContext&,
                              TensorDict* step) override {
    const WeightStore::Snapshot latest = reader_->Latest();
    const double* const weight = latest.weights.Find("weight")->data<double>();
    const double bias = *latest.weights.Find("bias")->data<double>();
    const float* observation = root.Find("observation")->data<float>();
    const Tensor& action = *step->Find("action");
    for (int64_t lane = 0; lane < action.num_elements(); ++lane) {
      double score = bias;
      for (int64_t i = 0; i < kObservation; ++i) {
        score += weight[i] * *observation++;
      }
      is_finite_ &= score - score == 0;
      action.data<int64_t>()[lane] = static_cast<int64_t>(bias) % 2;
    }
    const auto version = static_cast<double>(latest.version);
    wrong_ += bias != version ||
              !std::all_of(weight, weight + kObservation,
                           [&](double element) { return element == version; });
    return latest.version;
  }

  int64_t wrong() const { return wrong_; }
  bool is_finite() const { return is_finite_; }

 private:
  const std::unique_ptr<WeightStore::Reader> reader_;
  int64_t wrong_ = 0;
  bool is_finite_ = true;
};

// Publishes without pause while it lives.
class Publisher {
 public:
  explicit Publisher(WeightStore* store)
      : thread_([this, store] {
          TensorDict weights = Weights();
          while (!is_over_.load()) {
            Fill(&weights, store->version() + 1);
            failed_ += !store->Publish(weights).ok();
          }
        }) {}
  ~Publisher() {
    is_over_.store(true);
    thread_.join();
    EXPECT_EQ(failed_, 0);
  }

 private:
  std::atomic<bool> is_over_ = false;
  int64_t failed_ = 0;
  std::thread thread_;
};

TEST(PolicyWeightsTest, AMillionActsUseWeightsOfTheVersionThatTheyReturn) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = Weights()}));
  RILL_ASSERT_OK_AND_ASSIGN(auto reader, store->OpenReader());
  LinearPolicy policy(std::move(reader));
  TensorDict root({1}), step({1});
  RILL_ASSERT_OK(root.Set("observation",
                          *Tensor::Zeros(DType::kFloat32, {1, kObservation})));
  RILL_ASSERT_OK(step.Set("action", *Tensor::Zeros(DType::kInt64, {1})));
  const Publisher publisher(store.get());
  int64_t before = 0, news = 0;
  // As many as it takes to meet a thousand versions.
  for (int64_t acts = 0; acts < 1000000 || news < 1000; ++acts) {
    const auto version = policy.Act(root, {}, &step);
    ASSERT_TRUE(version.ok() && *version >= before);
    ASSERT_EQ(policy.wrong(), 0) << "version " << *version;
    news += *version > before;
    before = *version;
  }
  EXPECT_TRUE(policy.is_finite());
}

TEST(PolicyWeightsTest, EveryFrameCarriesTheVersionThatMadeIt) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto store,
                            WeightStore::Create({.weights = Weights()}));
  RILL_ASSERT_OK_AND_ASSIGN(auto reader, store->OpenReader());
  LinearPolicy policy(std::move(reader));
  SyncCollector::Options options;
  options.producer = 0;
  RILL_ASSERT_OK_AND_ASSIGN(options.env, MakeCartPole({.lanes = 2}));
  options.policy = &policy;
  options.frames_per_batch = 200;
  RILL_ASSERT_OK_AND_ASSIGN(const auto collector,
                            SyncCollector::Create(std::move(options)));
  const Publisher publisher(store.get());
  int64_t before = 0, news = 0;
  while (news < 1000) {
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict batch, collector->Next());
    ASSERT_EQ(policy.wrong(), 0);
    RILL_ASSERT_OK_AND_ASSIGN(const auto versions,
                              batch.Flat<int64_t>("policy_version"));
    RILL_ASSERT_OK_AND_ASSIGN(const auto actions,
                              batch.Flat<int64_t>("action"));
    for (int64_t t = 0; t < 100; ++t) {
      ASSERT_GE(versions[t], before);
      ASSERT_EQ(versions[100 + t], versions[t]);  // The other lane.
      ASSERT_EQ(actions[t], versions[t] % 2);
      news += versions[t] > before;
      before = versions[t];
    }
  }
}

}  // namespace
}  // namespace rill

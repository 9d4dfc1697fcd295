// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo/learner/ppo_learner.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill::ppo {
namespace {

// Rows order[0], order[1], ... of an array of `width` a row. Copied, as the
// networks take the samples of a batch side by side.
absl::Span<const float> GatherRows(absl::Span<const float> rows, int64_t width,
                                   absl::Span<const int32_t> order,
                                   std::vector<float>* to) {
  to->resize(order.size() * width);
  float* next = to->data();
  for (int32_t row : order) {
    next = std::copy_n(rows.data() + row * width, width, next);
  }
  return *to;
}

}  // namespace

PpoLearner::PpoLearner(const Options& options)
    : options_(options),
      rng_(options.seed, RngStream::kSampler),
      networks_(options.inputs, options.kind, options.max_batch),
      // CleanRL's epsilon.
      adam_(static_cast<int64_t>(networks_.parameters().size()),
            {.epsilon = 1e-5, .max_gradient_norm = options.max_gradient_norm}) {
  CHECK_GT(options.epochs, 0);
  CHECK_GT(options.minibatches, 0);
  gradient_.resize(networks_.parameters().size());
  networks_.Initialize(Rng(options.seed, RngStream::kInit));
}

void PpoLearner::Shuffle(int64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  // Each pass has a number of its own, over all rounds.
  const uint64_t batch =
      static_cast<uint64_t>(updates_ * options_.epochs + epoch);
  // Fisher and Yates.
  for (size_t i = order_.size(); i > 1; --i) {
    const uint32_t draw = static_cast<uint32_t>(i);
    std::swap(order_[i - 1],
              order_[rng_.UniformInt(batch, draw, static_cast<int64_t>(i))]);
  }
}

PpoBatch<float> PpoLearner::Gather(const PpoBatch<float>& batch, int64_t begin,
                                   int64_t size) {
  const auto order = absl::MakeConstSpan(order_).subspan(begin, size);
  return {
      .observation =
          GatherRows(batch.observation, options_.inputs, order, &observation_),
      .action = GatherRows(batch.action, options_.kind.action_size(), order,
                           &action_),
      .log_prob = GatherRows(batch.log_prob, 1, order, &log_prob_),
      .value = GatherRows(batch.value, 1, order, &value_),
      .advantage = GatherRows(batch.advantage, 1, order, &advantage_),
      .value_target = GatherRows(batch.value_target, 1, order, &value_target_)};
}

PpoLearner::UpdateStats PpoLearner::Update(const PpoBatch<float>& batch,
                                           double learning_rate) {
  CHECK_EQ(batch.size() % options_.minibatches, 0);
  // Minibatches are equal, so means over them are means over all steps.
  const int64_t size = batch.size() / options_.minibatches;
  const double share =
      1.0 / static_cast<double>(options_.epochs * options_.minibatches);
  order_.resize(batch.size());
  UpdateStats mean;
  for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
    Shuffle(epoch);
    for (int64_t begin = 0; begin < batch.size(); begin += size) {
      const PpoStats stats = networks_.Loss(
          Gather(batch, begin, size), options_.loss, absl::MakeSpan(gradient_));
      mean.gradient_norm +=
          share * adam_.Step(learning_rate, gradient_, networks_.parameters());
      mean.loss.loss += share * stats.loss;
      mean.loss.policy_loss += share * stats.policy_loss;
      mean.loss.value_loss += share * stats.value_loss;
      mean.loss.entropy += share * stats.entropy;
      mean.loss.approx_kl += share * stats.approx_kl;
      mean.loss.clip_fraction += share * stats.clip_fraction;
    }
  }
  ++updates_;
  return mean;
}

}  // namespace rill::ppo

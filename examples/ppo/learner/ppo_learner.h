// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_EXAMPLES_PPO_LEARNER_PPO_LEARNER_H_
#define RILL_EXAMPLES_PPO_LEARNER_PPO_LEARNER_H_

#include <cstdint>
#include <vector>

#include "rill/base/rng.h"
#include "rill/examples/learning/adam.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/ppo/learner/actor_critic.h"

namespace rill::ppo {

// Networks and optimizer; learns from the steps of one round of collecting.
//
// Thread-safety: thread-compatible.
// Numerics: equal seeds, batches and builds give equal parameters, bit for bit.
class PpoLearner {
 public:
  struct Options {
    int64_t inputs = 0;  // Of an observation.
    ActionKind kind = {};
    int64_t max_batch = 0;    // Of Update, Act and Values.
    int64_t epochs = 1;       // Passes over the steps of a round.
    int64_t minibatches = 1;  // A pass; each is one step of Adam.
    double max_gradient_norm = 0.5;
    PpoLossOptions loss = {};
    uint64_t seed = 0;  // Of initial parameters and orders.
  };

  // CHECKs that the numbers are > 0. The networks are initialised.
  explicit PpoLearner(const Options& options);

  ActorCritic<float>& networks() { return networks_; }
  // Rounds that were learned from: the version of the weights.
  int64_t updates() const { return updates_; }

  // Learns from all steps of a round, in a new order each pass. Its size is a
  // multiple of minibatches, with at least two steps in each. Returns means
  // over the steps of Adam.
  struct UpdateStats {
    PpoStats loss = {};
    double gradient_norm = 0;
  };
  UpdateStats Update(const PpoBatch<float>& batch, double learning_rate);

 private:
  void Shuffle(int64_t epoch);
  // The steps order_[begin, begin + size) as a batch of their own.
  PpoBatch<float> Gather(const PpoBatch<float>& batch, int64_t begin,
                         int64_t size);

  Options options_;
  Rng rng_;
  ActorCritic<float> networks_;
  learning::Adam adam_;
  learning::AlignedVector<float> gradient_;
  int64_t updates_ = 0;

  std::vector<int32_t> order_;
  std::vector<float> observation_, action_;
  std::vector<float> log_prob_, value_, advantage_, value_target_;
};

}  // namespace rill::ppo

#endif  // RILL_EXAMPLES_PPO_LEARNER_PPO_LEARNER_H_

// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"
#include "rill/examples/learning/aligned_vector.h"
#include "rill/examples/learning/kernels.h"

namespace rill::ppo_recurrent {
namespace {

// A logit that no action is drawn with. Finite, so that 0 times it is 0.
constexpr double kNever = -1e9;

// x = sigmoid(x)
template <typename Scalar>
void Sigmoid(absl::Span<Scalar> x) {
  constexpr Scalar kHalf = 0.5;
  for (Scalar& element : x) element *= kHalf;
  learning::Tanh(x);
  for (Scalar& element : x) element = element * kHalf + kHalf;
}

// Each column of a matrix is `bias`, to which products are added.
template <typename Scalar>
void FillColumns(absl::Span<const Scalar> bias, int64_t columns,
                 learning::AlignedVector<Scalar>* matrix) {
  matrix->resize(bias.size() * columns);
  for (int64_t j = 0; j < columns; ++j) {
    std::copy(bias.begin(), bias.end(), matrix->begin() + j * bias.size());
  }
}

}  // namespace

template <typename Scalar>
GruActorCritic<Scalar>::GruActorCritic(int64_t inputs, int64_t units,
                                       int64_t actions)
    : inputs_(inputs),
      units_(units),
      kind_({.is_discrete = true, .size = actions}) {
  CHECK_GT(inputs, 0);
  CHECK_GT(units, 0);
  CHECK_GT(actions, 0);
  parameters_.resize(head_bias() + outputs());
  logits_.resize(actions);
  logit_slope_.resize(actions);
}

template <typename Scalar>
void GruActorCritic<Scalar>::Initialize(const Rng& rng) {
  const double bound = 1 / std::sqrt(static_cast<double>(units_));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const double draw = 2 * rng.UniformDouble(0, static_cast<uint32_t>(i)) - 1;
    parameters_[i] = static_cast<Scalar>(bound * draw);
  }
  // At first no action is preferred. The last row of the heads is the critic's.
  for (int64_t i = 0; i < outputs() * units_; ++i) {
    const bool is_actors = i % outputs() < kind_.size;
    if (is_actors) parameters_[heads() + i] *= static_cast<Scalar>(0.01);
  }
  std::fill_n(parameters_.begin() + head_bias(), outputs(), Scalar{0});
}

template <typename Scalar>
void GruActorCritic<Scalar>::Forward(int64_t lanes, StepMemory* memory) {
  const int64_t h = units_;
  auto& [x, before, z, r, n, q, after] = *memory;
  for (Array* array : {&z, &r, &n, &q, &after}) array->resize(h * lanes);
  const absl::Span<const Scalar> flat = parameters_;
  FillColumns(flat.subspan(b(), 3 * h), lanes, &of_x_);
  AddProduct(ConstMatrix{flat.data(), 3 * h, inputs_},
             ConstMatrix{x.data(), inputs_, lanes}, of_x_.data());
  of_h_.assign(3 * h * lanes, Scalar{0});
  AddProduct(ConstMatrix{&flat[u()], 3 * h, h},
             ConstMatrix{before.data(), h, lanes}, of_h_.data());
  const Scalar* const c = &flat[this->c()];
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const Scalar* const of_x = &of_x_[3 * h * lane];
    const Scalar* const of_h = &of_h_[3 * h * lane];
    const int64_t at = h * lane;
    for (int64_t i = 0; i < h; ++i) {
      z[at + i] = of_x[i] + of_h[i];
      r[at + i] = of_x[h + i] + of_h[h + i];
      q[at + i] = of_h[2 * h + i] + c[i];
    }
  }
  Sigmoid(absl::MakeSpan(z));
  Sigmoid(absl::MakeSpan(r));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const Scalar* const of_x = &of_x_[3 * h * lane + 2 * h];
    for (int64_t i = h * lane, k = 0; k < h; ++i, ++k) {
      n[i] = of_x[k] + r[i] * q[i];
    }
  }
  learning::Tanh(absl::MakeSpan(n));
  for (int64_t i = 0; i < h * lanes; ++i) {
    after[i] = n[i] + z[i] * (before[i] - n[i]);
  }
  FillColumns(flat.subspan(head_bias(), outputs()), lanes, &output_);
  AddProduct(ConstMatrix{&flat[heads()], outputs(), h},
             ConstMatrix{after.data(), h, lanes}, output_.data());
}

template <typename Scalar>
void GruActorCritic<Scalar>::MaskLogits(int64_t lane,
                                        absl::Span<const bool> is_legal,
                                        absl::Span<Scalar> logits) const {
  const Scalar* const from = output_.data() + lane * outputs();
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = is_legal[i] ? from[i] : static_cast<Scalar>(kNever);
  }
}

template <typename Scalar>
void GruActorCritic<Scalar>::Step(absl::Span<const Scalar> observation,
                                  absl::Span<const Scalar> hidden,
                                  absl::Span<const bool> is_legal,
                                  absl::Span<Scalar> logits,
                                  absl::Span<Scalar> value,
                                  absl::Span<Scalar> next_hidden) {
  const int64_t lanes = static_cast<int64_t>(value.size());
  CHECK_EQ(static_cast<int64_t>(observation.size()), lanes * inputs_);
  CHECK_EQ(static_cast<int64_t>(hidden.size()), lanes * units_);
  CHECK_EQ(static_cast<int64_t>(is_legal.size()), lanes * kind_.size);
  if (steps_.empty()) steps_.resize(1);
  StepMemory& memory = steps_[0];
  memory.x.assign(observation.begin(), observation.end());
  memory.before.assign(hidden.begin(), hidden.end());
  Forward(lanes, &memory);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    MaskLogits(lane, is_legal.subspan(lane * kind_.size, kind_.size),
               logits.subspan(lane * kind_.size, kind_.size));
    value[lane] = output_[lane * outputs() + kind_.size];
  }
  std::copy(memory.after.begin(), memory.after.end(), next_hidden.begin());
}

template <typename Scalar>
void GruActorCritic<Scalar>::NormaliseAdvantages(
    const SequenceBatch<Scalar>& batch) {
  valid_ = 0;
  double sum = 0, squares = 0;
  advantage_.assign(batch.advantage.begin(), batch.advantage.end());
  for (size_t i = 0; i < advantage_.size(); ++i) {
    if (!batch.is_valid[i]) continue;
    ++valid_;
    sum += advantage_[i];
  }
  CHECK_GE(valid_, 2);
  const double mean = sum / static_cast<double>(valid_);
  for (size_t i = 0; i < advantage_.size(); ++i) {
    advantage_[i] -= mean;
    if (batch.is_valid[i]) squares += advantage_[i] * advantage_[i];
  }
  const double deviation =
      std::sqrt(squares / static_cast<double>(valid_ - 1)) + 1e-8;
  for (double& advantage : advantage_) advantage /= deviation;
}

// The observations of step t, and the states before it.
template <typename Scalar>
void GruActorCritic<Scalar>::LoadStep(const SequenceBatch<Scalar>& batch,
                                      int64_t t) {
  StepMemory& memory = steps_[t];
  memory.x.resize(inputs_ * batch.sequences);
  if (t == 0) {
    memory.before.assign(batch.hidden.begin(), batch.hidden.end());
  } else {
    memory.before = steps_[t - 1].after;
  }
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t row = s * batch.length + t;
    std::copy_n(batch.observation.begin() + row * inputs_, inputs_,
                memory.x.begin() + s * inputs_);
    if (batch.is_init[row]) {
      std::fill_n(memory.before.begin() + s * units_, units_, Scalar{0});
    }
  }
}

template <typename Scalar>
void GruActorCritic<Scalar>::AddStepLoss(const SequenceBatch<Scalar>& batch,
                                         int64_t t,
                                         const ppo::PpoLossOptions& options,
                                         ppo::PpoStats* stats) {
  const double share = 1.0 / static_cast<double>(valid_);
  Array& slopes = slopes_[t];
  slopes.assign(outputs() * batch.sequences, Scalar{0});
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t row = s * batch.length + t;
    if (!batch.is_valid[row]) continue;
    MaskLogits(s, batch.is_legal.subspan(row * kind_.size, kind_.size),
               absl::MakeSpan(logits_));
    const Scalar action[] = {static_cast<Scalar>(batch.action[row])};
    const ppo::ActionTerms terms =
        ppo::EvaluateAction<Scalar>(kind_, logits_, {}, action);
    const ppo::ActionTerms slope = ppo::AddPolicyStep(
        terms, batch.log_prob[row], advantage_[row], share, options, stats);
    ppo::ActionGradient<Scalar>(kind_, logits_, {}, action, slope,
                                absl::MakeSpan(logit_slope_), {});
    Scalar* const to = slopes.data() + s * outputs();
    std::copy(logit_slope_.begin(), logit_slope_.end(), to);
    to[kind_.size] = static_cast<Scalar>(
        ppo::AddValueStep(output_[s * outputs() + kind_.size], batch.value[row],
                          batch.value_target[row], share, options, stats));
  }
}

template <typename Scalar>
void GruActorCritic<Scalar>::Backward(const SequenceBatch<Scalar>& batch,
                                      int64_t t, absl::Span<Scalar> gradient) {
  const int64_t h = units_, lanes = batch.sequences;
  const auto& [x, before, z, r, n, q, after] = steps_[t];
  const ConstMatrix slopes = {slopes_[t].data(), outputs(), lanes};
  const ConstMatrix gates = {gates_.data(), 3 * h, lanes};
  Scalar* const to = gradient.data();

  AddProduct(slopes, Transposed(ConstMatrix{after.data(), h, lanes}),
             to + heads());
  learning::AddRowSums(slopes.data, outputs(), lanes, outputs(),
                       to + head_bias());
  AddProduct(Transposed(ConstMatrix{&parameters_[heads()], outputs(), h}),
             slopes, state_slope_.data());
  // Slopes of what the gates' functions are of; for the third gate once by its
  // part of x, once by its part of h, which r scales.
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Scalar* const gate = &gates_[3 * h * lane];
    for (int64_t i = h * lane, k = 0; k < h; ++i, ++k) {
      const Scalar slope = state_slope_[i], rest = 1 - z[i];
      const Scalar of_n = slope * rest * (1 - n[i] * n[i]);
      gate[k] = slope * (before[i] - n[i]) * z[i] * rest;
      gate[h + k] = of_n * q[i] * r[i] * (1 - r[i]);
      gate[2 * h + k] = of_n;
      state_slope_[i] = slope * z[i];
    }
  }
  AddProduct(gates, Transposed(ConstMatrix{x.data(), inputs_, lanes}), to);
  learning::AddRowSums(gates.data, 3 * h, lanes, 3 * h, to + b());
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Scalar* const gate = &gates_[3 * h * lane + 2 * h];
    for (int64_t k = 0; k < h; ++k) gate[k] *= r[h * lane + k];
  }
  AddProduct(gates, Transposed(ConstMatrix{before.data(), h, lanes}), to + u());
  learning::AddRowSums(gates.data + 2 * h, h, lanes, 3 * h, to + c());
  AddProduct(Transposed(ConstMatrix{&parameters_[u()], 3 * h, h}), gates,
             state_slope_.data());
  for (int64_t s = 0; s < lanes; ++s) {
    // The state before was set to 0: nothing before it had a part in it.
    if (batch.is_init[s * batch.length + t]) {
      std::fill_n(state_slope_.begin() + s * h, h, Scalar{0});
    }
  }
}

template <typename Scalar>
ppo::PpoStats GruActorCritic<Scalar>::Loss(const SequenceBatch<Scalar>& batch,
                                           const ppo::PpoLossOptions& options,
                                           absl::Span<Scalar> gradient) {
  CHECK_EQ(gradient.size(), parameters_.size());
  CHECK_EQ(static_cast<int64_t>(batch.hidden.size()), batch.sequences * units_);
  ppo::PpoStats stats;
  steps_.resize(std::max<size_t>(steps_.size(), batch.length));
  slopes_.resize(steps_.size());
  NormaliseAdvantages(batch);
  for (int64_t t = 0; t < batch.length; ++t) {
    LoadStep(batch, t);
    Forward(batch.sequences, &steps_[t]);
    AddStepLoss(batch, t, options, &stats);
  }
  std::fill(gradient.begin(), gradient.end(), Scalar{0});
  state_slope_.assign(units_ * batch.sequences, Scalar{0});
  gates_.resize(3 * units_ * batch.sequences);
  for (int64_t t = batch.length - 1; t >= 0; --t) Backward(batch, t, gradient);
  ppo::FinishLoss(options, &stats);
  return stats;
}

template class GruActorCritic<float>;
template class GruActorCritic<double>;

}  // namespace rill::ppo_recurrent

// SPDX-License-Identifier: Apache-2.0
#include "rill/examples/ppo_recurrent/learner/gru_actor_critic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "Eigen/Core"
#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/base/rng.h"

namespace rill::ppo_recurrent {
namespace {

// A logit that no action is drawn with. Finite, so that 0 times it is 0.
constexpr double kNever = -1e9;

// A row-major [B, F] array is a column-major F x B matrix: one column a lane.
template <typename Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
template <typename Scalar>
using ConstMap = Eigen::Map<const Matrix<Scalar>>;
template <typename Scalar>
using MutableMap = Eigen::Map<Matrix<Scalar>>;

template <typename Derived>
auto Sigmoid(const Eigen::ArrayBase<Derived>& x) {
  return (x * 0.5).tanh() * 0.5 + 0.5;
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
  MutableMap<Scalar> heads(parameters_.data() + this->heads(), outputs(),
                           units_);
  heads.topRows(kind_.size) *= static_cast<Scalar>(0.01);
  std::fill_n(parameters_.begin() + head_bias(), outputs(), Scalar{0});
}

template <typename Scalar>
void GruActorCritic<Scalar>::Forward(int64_t lanes, StepMemory* memory) {
  const int64_t h = units_;
  for (Array* array :
       {&memory->z, &memory->r, &memory->n, &memory->q, &memory->after}) {
    array->resize(h * lanes);
  }
  output_.resize(outputs() * lanes);
  const Scalar* flat = parameters_.data();
  const ConstMap<Scalar> w(flat, 3 * h, inputs_), u(flat + this->u(), 3 * h, h);
  const ConstMap<Scalar> bias(flat + b(), 3 * h, 1), c(flat + this->c(), h, 1);
  const ConstMap<Scalar> heads(flat + this->heads(), outputs(), h);
  const ConstMap<Scalar> head_bias(flat + this->head_bias(), outputs(), 1);
  const ConstMap<Scalar> x(memory->x.data(), inputs_, lanes);
  const ConstMap<Scalar> before(memory->before.data(), h, lanes);
  MutableMap<Scalar> z(memory->z.data(), h, lanes);
  MutableMap<Scalar> r(memory->r.data(), h, lanes);
  MutableMap<Scalar> n(memory->n.data(), h, lanes);
  MutableMap<Scalar> q(memory->q.data(), h, lanes);
  MutableMap<Scalar> after(memory->after.data(), h, lanes);
  MutableMap<Scalar> output(output_.data(), outputs(), lanes);

  Matrix<Scalar> of_x = w * x;
  of_x.colwise() += bias.col(0);
  const Matrix<Scalar> of_h = u * before;
  z = Sigmoid((of_x.topRows(h) + of_h.topRows(h)).array());
  r = Sigmoid((of_x.middleRows(h, h) + of_h.middleRows(h, h)).array());
  q = of_h.bottomRows(h).colwise() + c.col(0);
  n = (of_x.bottomRows(h).array() + r.array() * q.array()).tanh();
  after = n.array() + z.array() * (before.array() - n.array());
  output.noalias() = heads * after;
  output.colwise() += head_bias.col(0);
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
  const StepMemory& memory = steps_[t];
  const Scalar* flat = parameters_.data();
  const ConstMap<Scalar> u(flat + this->u(), 3 * h, h);
  const ConstMap<Scalar> heads(flat + this->heads(), outputs(), h);
  const ConstMap<Scalar> x(memory.x.data(), inputs_, lanes);
  const ConstMap<Scalar> before(memory.before.data(), h, lanes);
  const ConstMap<Scalar> z(memory.z.data(), h, lanes);
  const ConstMap<Scalar> r(memory.r.data(), h, lanes);
  const ConstMap<Scalar> n(memory.n.data(), h, lanes);
  const ConstMap<Scalar> q(memory.q.data(), h, lanes);
  const ConstMap<Scalar> after(memory.after.data(), h, lanes);
  const ConstMap<Scalar> outputs_slope(slopes_[t].data(), outputs(), lanes);
  MutableMap<Scalar> state_slope(state_slope_.data(), h, lanes);
  MutableMap<Scalar> dw(gradient.data(), 3 * h, inputs_);
  MutableMap<Scalar> du(gradient.data() + this->u(), 3 * h, h);
  MutableMap<Scalar> db(gradient.data() + b(), 3 * h, 1);
  MutableMap<Scalar> dc(gradient.data() + c(), h, 1);
  MutableMap<Scalar> dheads(gradient.data() + this->heads(), outputs(), h);
  MutableMap<Scalar> dhead_bias(gradient.data() + head_bias(), outputs(), 1);

  dheads.noalias() += outputs_slope * after.transpose();
  dhead_bias.col(0) += outputs_slope.rowwise().sum();
  const Matrix<Scalar> slope = state_slope + heads.transpose() * outputs_slope;
  // Slopes of what the gates' functions are of; for the third gate once by its
  // part of x, once by its part of h, which r scales.
  Matrix<Scalar> gates(3 * h, lanes);
  gates.topRows(h) = slope.array() * (before - n).array() * z.array() *
                     (Scalar{1} - z.array());
  gates.bottomRows(h) = slope.array() * (Scalar{1} - z.array()) *
                        (Scalar{1} - n.array().square());
  gates.middleRows(h, h) = gates.bottomRows(h).array() * q.array() * r.array() *
                           (Scalar{1} - r.array());
  dw.noalias() += gates * x.transpose();
  db.col(0) += gates.rowwise().sum();
  gates.bottomRows(h).array() *= r.array();
  du.noalias() += gates * before.transpose();
  dc.col(0) += gates.bottomRows(h).rowwise().sum();
  state_slope = slope.array() * z.array();
  state_slope.noalias() += u.transpose() * gates;
  for (int64_t s = 0; s < lanes; ++s) {
    // The state before was set to 0: nothing before it had a part in it.
    if (batch.is_init[s * batch.length + t]) state_slope.col(s).setZero();
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
  for (int64_t t = batch.length - 1; t >= 0; --t) Backward(batch, t, gradient);
  ppo::FinishLoss(options, &stats);
  return stats;
}

template class GruActorCritic<float>;
template class GruActorCritic<double>;

}  // namespace rill::ppo_recurrent

// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_STATISTICS_RETURN_SCALING_KERNEL_H_
#define RILL_TRANSFORMS_STATISTICS_RETURN_SCALING_KERNEL_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "rill/device/kernels/kernel.h"
#include "rill/transforms/statistics/norm_columns.h"
#include "rill/transforms/statistics/vec_norm_digits.h"

// ReturnScaling for host and devices (device/kernels/kernel.h).

namespace rill::transforms_internal {

// A step of ReturnScaling, in one block: the lanes' discounted returns, their
// sums where it learns, and the rewards by what these say.
struct ReturnScalingKernel {
  static constexpr const char* kName = "return_scaling";
  struct Shared {
    NormColumn column;
    int64_t fault;
    double deviation;
  };
  using Local = NoState;

  NormRows rewards;
  void* out = nullptr;  // The rewards.
  double gamma = 1;
  double eps = 0;
  bool learns = true;
  const double* returns = nullptr;
  double* new_returns = nullptr;
  const int64_t* sums = nullptr;  // A state of one element.
  int64_t* new_sums = nullptr;
  int64_t* fault = nullptr;

  constexpr int64_t num_phases() const { return 5; }
  template <typename Thread>
  constexpr void Run(int64_t phase, const Thread& thread, Shared& shared,
                     Local& /*local*/) const {
    if (phase == 0) {
      if (thread.thread == 0) Start(shared);
    } else if (phase == 3) {
      if (thread.thread == 0) Finish(shared);
    } else {
      for (int64_t lane = thread.thread; lane < rewards.lanes;
           lane += thread.num_threads) {
        if (phase == 1) Discount<Thread>(lane, shared);
        if (phase == 4) Scale(lane, shared);
      }
      if (phase == 2) Learn(thread, shared);
    }
  }
  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    visit(rewards.data, rewards.bytes());
    visit(out, rewards.bytes());
    visit(returns, rewards.lanes * int64_t{sizeof(double)});
    visit(new_returns, rewards.lanes * int64_t{sizeof(double)});
    visit(sums, BytesOfState(1));
    visit(new_sums, BytesOfState(1));
    visit(fault, int64_t{sizeof(int64_t)});
  }

 private:
  constexpr bool Learns(const Shared& shared) const {
    return learns && shared.fault == 0;
  }

  constexpr void Start(Shared& shared) const {
    shared.column = NormColumn{};
    shared.fault = *fault;
    if (shared.fault != 0) return;
    const NormFault found = FaultOfRows(sums[0], learns ? rewards.lanes : 0);
    shared.fault =
        static_cast<int64_t>(IsWindow(sums[1]) ? found : NormFault::kUnsound);
  }

  template <typename Thread>
  constexpr void Discount(int64_t lane, Shared& shared) const {
    const double number = returns[lane] * gamma + rewards.At(lane);
    new_returns[lane] = number;
    if (!learns) return;
    // Also false for NaN.
    if (SizeOf(number) <= kMostVecNormValue) {
      Thread::AtomicMax(&shared.column.largest,
                        std::bit_cast<int64_t>(SizeOf(number)));
    } else {
      Thread::AtomicMax(&shared.fault, static_cast<int64_t>(NormFault::kValue));
    }
  }

  template <typename Thread>
  constexpr void Learn(const Thread& thread, Shared& shared) const {
    if (!Learns(shared)) return;
    VecNormSums own;
    own.window = shared.column.WindowFrom(sums[1]);
    for (int64_t lane = thread.thread; lane < rewards.lanes;
         lane += thread.num_threads) {
      AddNumber<true>(new_returns[lane], &own);
    }
    shared.column.template Add<Thread>(own);
  }

  constexpr void Finish(Shared& shared) const {
    VecNormSums all = SumsAt(sums, 0);
    int64_t rows = sums[0];
    if (Learns(shared)) {
      shared.column.AddTo(&all);
      rows += rewards.lanes;
    }
    SetSumsAt(all, 0, new_sums);
    new_sums[0] = rows;
    if (shared.fault != 0) {
      *fault = shared.fault;
      return;
    }
    const VecNormElement element = Merge(
        kReturnPrior, rows == 0 ? VecNormElement() : ElementOf(all, rows));
    shared.deviation = std::sqrt(element.squares / element.weight + eps);
  }

  constexpr void Scale(int64_t lane, const Shared& shared) const {
    // The returns stay as the sums do.
    if (shared.fault != 0) {
      new_returns[lane] = returns[lane];
      return;
    }
    const double value = rewards.At(lane) / shared.deviation;
    if (rewards.is_double) {
      static_cast<double*>(out)[lane] = value;
    } else {
      static_cast<float*>(out)[lane] = static_cast<float>(value);
    }
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_STATISTICS_RETURN_SCALING_KERNEL_H_

// SPDX-License-Identifier: Apache-2.0
#include "rill/estimators/recursion_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Highway includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rill/estimators/recursion_kernels.cc"
#include "hwy/foreach_target.h"  // Must come before highway.h.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
// How it works. The recursion x_t = a_t + b_t x_(t+1) is one multiplication and
// one addition a step, each of which waits for the step before. Vectors over
// time cannot help there. Everything else is free of it, so a_t and b_t of a
// block of steps are made by vectors over time. Then x is followed through the
// block in several lines at once, whose chains overlap in the processor.
//
// An associative scan over time would use vectors throughout. It multiplies the
// b_t with each other, and rounds otherwise than the recursion does.

namespace rill::estimators_internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32Of64 = hn::Rebind<float, F64>;
using VF64 = hn::Vec<F64>;
using MF64 = hn::Mask<F64>;

// Lines that are followed at once, and steps of each that are prepared for it.
// Eight chains hide the latency of a multiplication and an addition; the two
// blocks fit the first cache.
constexpr int kLines = 8;
constexpr int64_t kSteps = 128;
// Lines are not a power of two apart, which would fill few sets of the cache.
constexpr int64_t kPitch = kSteps + 8;

// Loads and stores of a whole vector, or of its first `n` elements.
template <bool kIsWhole>
struct Access {
  size_t n = 0;

  VF64 Load(const double* p) const {
    if constexpr (kIsWhole) {
      return hn::LoadU(F64(), p);
    } else {
      return hn::LoadN(F64(), p, n);
    }
  }
  VF64 Load(const float* p) const {
    if constexpr (kIsWhole) {
      return hn::PromoteTo(F64(), hn::LoadU(F32Of64(), p));
    } else {
      return hn::PromoteTo(F64(), hn::LoadN(F32Of64(), p, n));
    }
  }
  MF64 IsSet(const uint8_t* p) const {
    const hn::Rebind<int32_t, F64> ints;
    const hn::Rebind<uint8_t, F64> bytes;
    auto flags = hn::Zero(bytes);
    if constexpr (kIsWhole) {
      flags = hn::LoadU(bytes, p);
    } else {
      flags = hn::LoadN(bytes, p, n);
    }
    return hn::Ne(hn::PromoteTo(F64(), hn::PromoteTo(ints, flags)),
                  hn::Zero(F64()));
  }
  void Store(VF64 x, double* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(x, F64(), p);
    } else {
      hn::StoreN(x, F64(), p, n);
    }
  }
  void Store(VF64 x, float* p) const {
    if constexpr (kIsWhole) {
      hn::StoreU(hn::DemoteTo(F32Of64(), x), F32Of64(), p);
    } else {
      hn::StoreN(hn::DemoteTo(F32Of64(), x), F32Of64(), p, n);
    }
  }
};

// Calls `body` with the access and place of each vector of [0, n).
template <typename Body>
HWY_ATTR void ForVectors(int64_t n, const Body& body) {
  const auto width = static_cast<int64_t>(hn::Lanes(F64()));
  int64_t i = 0;
  for (; i + width <= n; i += width) body(Access<true>(), i);
  if (i < n) body(Access<false>{static_cast<size_t>(n - i)}, i);
}

struct Numbers {
  double gamma = 1;
  double lmbda = 1;
};

// A kind of recursion: its a_t and b_t, and where it starts.
// Schulman et al., 2016: a_t is the TD error, b_t is gamma lambda.
struct Gae {
  template <typename T>
  static double Start(const StepArrays<T>& /*arrays*/, int64_t /*last*/) {
    return 0;
  }
  template <typename A, typename T>
  static void Make(const A& access, const StepArrays<T>& arrays,
                   const Numbers& numbers, int64_t i, VF64* add, VF64* carry) {
    const VF64 next = hn::IfThenZeroElse(access.IsSet(arrays.terminated + i),
                                         access.Load(arrays.next_value + i));
    const VF64 gamma = hn::Set(F64(), numbers.gamma);
    *add =
        hn::Sub(hn::Add(access.Load(arrays.reward + i), hn::Mul(gamma, next)),
                access.Load(arrays.value + i));
    // Done cuts the recursion, terminated the bootstrap: after a truncation the
    // value behind it still counts.
    *carry = hn::IfThenZeroElse(access.IsSet(arrays.done + i),
                                hn::Set(F64(), numbers.gamma * numbers.lmbda));
  }
};

// Sutton, 1988: a_t has the bootstrap's share, b_t that of the return.
struct TdLambda {
  // So that the last step of a line is as one that is done.
  template <typename T>
  static double Start(const StepArrays<T>& arrays, int64_t last) {
    return arrays.terminated[last] != 0
               ? 0
               : static_cast<double>(arrays.next_value[last]);
  }
  template <typename A, typename T>
  static void Make(const A& access, const StepArrays<T>& arrays,
                   const Numbers& numbers, int64_t i, VF64* add, VF64* carry) {
    const VF64 next = hn::IfThenZeroElse(access.IsSet(arrays.terminated + i),
                                         access.Load(arrays.next_value + i));
    const VF64 gamma = hn::Set(F64(), numbers.gamma);
    const MF64 done = access.IsSet(arrays.done + i);
    // Where lambda is 1 the value is not looked at: it may be NaN.
    const VF64 part = numbers.lmbda == 1
                          ? hn::Zero(F64())
                          : hn::Mul(hn::Set(F64(), 1 - numbers.lmbda), next);
    *add = hn::Add(access.Load(arrays.reward + i),
                   hn::Mul(gamma, hn::IfThenElse(done, next, part)));
    *carry =
        hn::IfThenZeroElse(done, hn::Set(F64(), numbers.gamma * numbers.lmbda));
  }
};

struct RewardToGo {
  template <typename T>
  static double Start(const StepArrays<T>& /*arrays*/, int64_t /*last*/) {
    return 0;
  }
  template <typename A, typename T>
  static void Make(const A& access, const StepArrays<T>& arrays,
                   const Numbers& numbers, int64_t i, VF64* add, VF64* carry) {
    *add = access.Load(arrays.reward + i);
    *carry = hn::IfThenZeroElse(access.IsSet(arrays.done + i),
                                hn::Set(F64(), numbers.gamma));
  }
};

// From the last of `n` steps to the first; x_t ends up in add[t]. Without
// branches: where a trajectory ends is not to be foreseen.
template <int kCount>
void Follow(int64_t n, const double* carry, double* add, double* carried) {
  const hn::CappedTag<double, 1> one;
  double x[kCount];
  for (int k = 0; k < kCount; ++k) x[k] = carried[k];
  for (int64_t t = n; t-- > 0;) {
#pragma GCC unroll 8
    for (int k = 0; k < kCount; ++k) {
      const auto weight = hn::LoadU(one, carry + k * kPitch + t);
      // Selected, not only multiplied: 0 times a NaN from behind an end is NaN.
      const auto rest = hn::IfThenElseZero(hn::Ne(weight, hn::Zero(one)),
                                           hn::Mul(weight, hn::Set(one, x[k])));
      x[k] = hn::GetLane(hn::Add(hn::LoadU(one, add + k * kPitch + t), rest));
      add[k * kPitch + t] = x[k];
    }
  }
  for (int k = 0; k < kCount; ++k) carried[k] = x[k];
}

template <typename Kind, typename T>
void Run(const StepArrays<T>& arrays, const Numbers& numbers, T* out,
         T* target) {
  HWY_ALIGN double add[kLines * kPitch];
  HWY_ALIGN double carry[kLines * kPitch];
  if (arrays.steps == 0) return;
  for (int64_t line = 0; line < arrays.lines; line += kLines) {
    const auto count =
        static_cast<int>(std::min<int64_t>(kLines, arrays.lines - line));
    double carried[kLines];
    for (int k = 0; k < count; ++k) {
      carried[k] = Kind::Start(arrays, (line + k + 1) * arrays.steps - 1);
    }
    // Blocks from the last to the first; `carried` takes each line's x across.
    for (int64_t end = arrays.steps; end > 0;) {
      const int64_t begin = std::max<int64_t>(0, end - kSteps);
      const int64_t n = end - begin;
      for (int k = 0; k < count; ++k) {
        const int64_t first = (line + k) * arrays.steps + begin;
        ForVectors(n, [&](const auto& access, int64_t i) HWY_ATTR {
          VF64 a = hn::Zero(F64());
          VF64 b = hn::Zero(F64());
          Kind::Make(access, arrays, numbers, first + i, &a, &b);
          access.Store(a, add + k * kPitch + i);
          access.Store(b, carry + k * kPitch + i);
        });
      }
      // A constant number of chains, which the compiler unrolls. The few lines
      // that are left go one by one.
      if (count == kLines) {
        Follow<kLines>(n, carry, add, carried);
      } else {
        for (int k = 0; k < count; ++k) {
          Follow<1>(n, carry + k * kPitch, add + k * kPitch, carried + k);
        }
      }
      for (int k = 0; k < count; ++k) {
        const int64_t first = (line + k) * arrays.steps + begin;
        ForVectors(n, [&](const auto& access, int64_t i) HWY_ATTR {
          // The target is made of x in double, not of the rounded advantage.
          const VF64 x = access.Load(add + k * kPitch + i);
          access.Store(x, out + first + i);
          if (target == nullptr) return;
          access.Store(hn::Add(x, access.Load(arrays.value + first + i)),
                       target + first + i);
        });
      }
      end = begin;
    }
  }
}

#define RILL_RECURSIONS(Name, T)                                               \
  void Gae##Name(const StepArrays<T>& arrays, double gamma, double lmbda,      \
                 T* advantage, T* value_target) {                              \
    Run<Gae>(arrays, {gamma, lmbda}, advantage, value_target);                 \
  }                                                                            \
  void TdLambda##Name(const StepArrays<T>& arrays, double gamma, double lmbda, \
                      T* returns) {                                            \
    Run<TdLambda, T>(arrays, {gamma, lmbda}, returns, nullptr);                \
  }                                                                            \
  void RewardToGo##Name(const StepArrays<T>& arrays, double gamma,             \
                        T* returns) {                                          \
    Run<RewardToGo, T>(arrays, {gamma, 1}, returns, nullptr);                  \
  }

RILL_RECURSIONS(Float, float)
RILL_RECURSIONS(Double, double)
#undef RILL_RECURSIONS

}  // namespace HWY_NAMESPACE
}  // namespace rill::estimators_internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rill::estimators_internal {

#define RILL_RECURSIONS(Name, T)                                              \
  HWY_EXPORT(Gae##Name);                                                      \
  HWY_EXPORT(TdLambda##Name);                                                 \
  HWY_EXPORT(RewardToGo##Name);                                               \
  void GaeLines(const StepArrays<T>& arrays, double gamma, double lmbda,      \
                T* advantage, T* value_target) {                              \
    HWY_DYNAMIC_DISPATCH(Gae##Name)                                           \
    (arrays, gamma, lmbda, advantage, value_target);                          \
  }                                                                           \
  void TdLambdaLines(const StepArrays<T>& arrays, double gamma, double lmbda, \
                     T* returns) {                                            \
    HWY_DYNAMIC_DISPATCH(TdLambda##Name)(arrays, gamma, lmbda, returns);      \
  }                                                                           \
  void RewardToGoLines(const StepArrays<T>& arrays, double gamma,             \
                       T* returns) {                                          \
    HWY_DYNAMIC_DISPATCH(RewardToGo##Name)(arrays, gamma, returns);           \
  }

RILL_RECURSIONS(Float, float)
RILL_RECURSIONS(Double, double)
#undef RILL_RECURSIONS

}  // namespace rill::estimators_internal
#endif  // HWY_ONCE

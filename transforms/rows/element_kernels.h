// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_ROWS_ELEMENT_KERNELS_H_
#define RILL_TRANSFORMS_ROWS_ELEMENT_KERNELS_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rill/device/kernels/kernel.h"
#include "rill/tensors/half_codec.h"

// Copies of leaves with steps of arithmetic on the way, for host and devices
// (device/kernels/kernel.h). Steps are those of row_steps.h bit for bit; a NaN
// that a step makes may have other bits on a device.

namespace rill::transforms_internal {

// The dtypes with arithmetic, by DType's numbers.
enum class ElementType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

// What becomes of one element. `type` is its type before the step.
struct ElementStep {
  enum class Kind : uint8_t {
    kCast,             // To `to`, as CastElements does.
    kScaleThenShift,   // x * a + b; float32 rounds once.
    kShiftThenDivide,  // (x - b) / a; float32 in double, then rounded.
    kScaleInDouble,    // x * a + b in double, then rounded.
    kDivide255,        // x / 255
    kClip,             // To [a, b], integers to [least, most]; NaN stays.
    kSign,             // -1, 0 or 1; NaN and zeros stay.
    kIsPositive,       // 1 or 0
  };
  Kind kind = Kind::kCast;
  ElementType type = ElementType::kFloat32;
  ElementType to = ElementType::kFloat32;
  // Numbers that differ from element to element of a row, instead of `a` or
  // `b`: element i of the copy has number i % many_a.
  const double* each_a = nullptr;
  const double* each_b = nullptr;
  int64_t many_a = 1;
  int64_t many_b = 1;
  double a = 1;
  double b = 0;
  int64_t least = 0;
  int64_t most = 0;
  friend bool operator==(const ElementStep&, const ElementStep&) = default;
};

// An element of one of the types in turn: float32, float64, and all others in
// `bits`; 16-bit floats as their bits.
struct ElementValue {
  float f32 = 0;
  double f64 = 0;
  int64_t bits = 0;
};

constexpr bool IsWhole(ElementType type) {
  return type < ElementType::kFloat16;
}

constexpr ElementValue LoadElement(ElementType type, const void* from,
                                   int64_t i) {
  ElementValue value;
  switch (type) {
    case ElementType::kBool:
      value.bits = static_cast<const uint8_t*>(from)[i] != 0;
      break;
    case ElementType::kUInt8:
      value.bits = static_cast<const uint8_t*>(from)[i];
      break;
    case ElementType::kInt8:
      value.bits = static_cast<const int8_t*>(from)[i];
      break;
    case ElementType::kInt16:
      value.bits = static_cast<const int16_t*>(from)[i];
      break;
    case ElementType::kInt32:
      value.bits = static_cast<const int32_t*>(from)[i];
      break;
    case ElementType::kInt64:
      value.bits = static_cast<const int64_t*>(from)[i];
      break;
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      value.bits = static_cast<const uint16_t*>(from)[i];
      break;
    case ElementType::kFloat32:
      value.f32 = static_cast<const float*>(from)[i];
      break;
    case ElementType::kFloat64:
      value.f64 = static_cast<const double*>(from)[i];
      break;
  }
  return value;
}

// Of `bits` only those that the type has are stored.
constexpr void StoreElement(ElementType type, const ElementValue& value,
                            int64_t i, void* to) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUInt8:
    case ElementType::kInt8:
      static_cast<uint8_t*>(to)[i] = static_cast<uint8_t>(value.bits);
      break;
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      static_cast<uint16_t*>(to)[i] = static_cast<uint16_t>(value.bits);
      break;
    case ElementType::kInt32:
      static_cast<uint32_t*>(to)[i] = static_cast<uint32_t>(value.bits);
      break;
    case ElementType::kInt64:
      static_cast<int64_t*>(to)[i] = value.bits;
      break;
    case ElementType::kFloat32:
      static_cast<float*>(to)[i] = value.f32;
      break;
    case ElementType::kFloat64:
      static_cast<double*>(to)[i] = value.f64;
      break;
  }
}

constexpr double ElementAsDouble(ElementType type, const ElementValue& value) {
  switch (type) {
    case ElementType::kFloat16:
      return tensor_internal::Float16Codec::Decode(
          static_cast<uint16_t>(value.bits));
    case ElementType::kBFloat16:
      return tensor_internal::BFloat16Codec::Decode(
          static_cast<uint16_t>(value.bits));
    case ElementType::kFloat32:
      return value.f32;
    case ElementType::kFloat64:
      return value.f64;
    default:
      return static_cast<double>(value.bits);
  }
}

// A float outside int64 and NaN become the lowest value, as on x86.
constexpr int64_t TruncateElement(double value) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(value >= -kTwoTo63 && value < kTwoTo63)) return INT64_MIN;
  return static_cast<int64_t>(value);
}

// The lowest bits of `bits` as a number of that type.
constexpr int64_t WrapElement(ElementType type, int64_t bits) {
  switch (type) {
    case ElementType::kUInt8:
      return static_cast<uint8_t>(bits);
    case ElementType::kInt8:
      return static_cast<int8_t>(bits);
    case ElementType::kInt16:
      return static_cast<int16_t>(bits);
    case ElementType::kInt32:
      return static_cast<int32_t>(bits);
    default:
      return bits;
  }
}

constexpr ElementValue CastElement(ElementType from, ElementType to,
                                   const ElementValue& value) {
  ElementValue made;
  if (from == to) return value;
  switch (to) {
    case ElementType::kBool:
      made.bits =
          IsWhole(from) ? value.bits != 0 : ElementAsDouble(from, value) != 0;
      break;
    case ElementType::kFloat16:
      made.bits =
          tensor_internal::Float16Codec::Encode(ElementAsDouble(from, value));
      break;
    case ElementType::kBFloat16:
      made.bits =
          tensor_internal::BFloat16Codec::Encode(ElementAsDouble(from, value));
      break;
    case ElementType::kFloat32:
      // Whole numbers are rounded once, not by way of double.
      made.f32 = IsWhole(from)
                     ? static_cast<float>(value.bits)
                     : static_cast<float>(ElementAsDouble(from, value));
      break;
    case ElementType::kFloat64:
      made.f64 = ElementAsDouble(from, value);
      break;
    default:
      made.bits = WrapElement(
          to, IsWhole(from) ? value.bits
                            : TruncateElement(ElementAsDouble(from, value)));
  }
  return made;
}

template <typename T>
constexpr T ClipElement(T x, T low, T high) {
  const T raised = x < low ? low : x;
  return raised > high ? high : raised;
}

template <typename T>
constexpr T SignElement(T x) {
  return x > 0 ? T{1} : x < 0 ? T{-1} : x;
}

// float32 or float64.
template <typename T>
constexpr T StepOfFloat(const ElementStep& step, T x, int64_t i) {
  const double a =
      step.each_a == nullptr ? step.a : step.each_a[i % step.many_a];
  const double b =
      step.each_b == nullptr ? step.b : step.each_b[i % step.many_b];
  // Numbers are rounded to the element's type.
  const auto first = static_cast<T>(a);
  const auto second = static_cast<T>(b);
  switch (step.kind) {
    case ElementStep::Kind::kScaleThenShift:
      if constexpr (std::is_same_v<T, float>) {
        return std::fma(x, first, second);
      } else {
        return x * first + second;
      }
    case ElementStep::Kind::kShiftThenDivide:
      return static_cast<T>(
          (static_cast<double>(x) - static_cast<double>(second)) /
          static_cast<double>(first));
    case ElementStep::Kind::kScaleInDouble:
      return static_cast<T>(static_cast<double>(x) * a + b);
    case ElementStep::Kind::kDivide255:
      return x / 255;
    case ElementStep::Kind::kClip:
      return ClipElement(x, first, second);
    case ElementStep::Kind::kSign:
      return SignElement(x);
    default:
      return static_cast<T>(x > 0);
  }
}

// Element i of a copy after the step.
constexpr ElementValue StepOfElement(const ElementStep& step,
                                     const ElementValue& value, int64_t i) {
  if (step.kind == ElementStep::Kind::kCast) {
    return CastElement(step.type, step.to, value);
  }
  ElementValue made;
  if (step.type == ElementType::kFloat32) {
    made.f32 = StepOfFloat(step, value.f32, i);
  } else if (step.type == ElementType::kFloat64) {
    made.f64 = StepOfFloat(step, value.f64, i);
  } else if (step.kind == ElementStep::Kind::kClip) {
    made.bits = ClipElement(value.bits, step.least, step.most);
  } else {
    made.bits = SignElement(value.bits);
  }
  return made;
}

struct SixteenBytes {
  uint64_t half[2];
};

// One copy: as many elements on both sides, in an order of their own each.
struct ElementCopy {
  static constexpr int kMostDims = 8;

  // The lowest addresses, and how many bytes lie from there on.
  const void* from = nullptr;
  void* to = nullptr;
  int64_t from_bytes = 0;
  int64_t to_bytes = 0;
  const int64_t* rows = nullptr;  // Of a gather: sizes[0] rows of a table.
  int64_t end = 0;                // Elements of this copy and those before it.
  // From the lowest address to the first element, in elements.
  int64_t from_first = 0;
  int64_t to_first = 0;
  // In elements; the last dimension is the fastest.
  int64_t sizes[kMostDims] = {};
  int64_t from_strides[kMostDims] = {};
  int64_t to_strides[kMostDims] = {};
  uint8_t rank = 1;
  uint8_t element_bytes = 1;  // Without steps: 1, 2, 4, 8 or 16.
  uint8_t first_step = 0;
  uint8_t num_steps = 0;
};

// Several copies in one launch, an element a thread. Copies share no byte, but
// one may go to where it comes from, in the same order.
struct ElementCopyKernel {
  static constexpr const char* kName = "element_copy";
  static constexpr int kMostCopies = 8;
  static constexpr int kMostSteps = 20;
  using Shared = NoState;
  using Local = NoState;

  ElementCopy copies[kMostCopies] = {};
  ElementStep steps[kMostSteps] = {};
  int64_t elements = 0;  // Of all copies.
  int num_copies = 0;
  int num_steps = 0;

  constexpr int64_t num_phases() const { return 1; }
  template <typename Thread>
  constexpr void Run(int64_t /*phase*/, const Thread& thread,
                     Shared& /*shared*/, Local& /*local*/) const {
    int at = 0;
    for (int64_t i = thread.index(); i < elements; i += thread.grid_size()) {
      while (i >= copies[at].end) ++at;
      CopyOne(copies[at], at == 0 ? i : i - copies[at - 1].end);
    }
  }

  template <typename Visit>
  void VisitMemory(const Visit& visit) {
    const auto visit_numbers = [&](auto*& numbers, int64_t count) {
      if (numbers != nullptr) visit(numbers, count * int64_t{sizeof(double)});
    };
    for (int i = 0; i < num_copies; ++i) {
      visit(copies[i].from, copies[i].from_bytes);
      visit(copies[i].to, copies[i].to_bytes);
      visit_numbers(copies[i].rows, copies[i].sizes[0]);
    }
    for (int i = 0; i < num_steps; ++i) {
      visit_numbers(steps[i].each_a, steps[i].many_a);
      visit_numbers(steps[i].each_b, steps[i].many_b);
    }
  }

 private:
  template <typename T>
  static constexpr void Move(const ElementCopy& copy, int64_t from,
                             int64_t to) {
    static_cast<T*>(copy.to)[to] = static_cast<const T*>(copy.from)[from];
  }

  constexpr void CopyOne(const ElementCopy& copy, int64_t i) const {
    int64_t from = copy.from_first;
    int64_t to = copy.to_first;
    int64_t rest = i;
    for (int d = copy.rank; d-- > 1;) {
      const int64_t size = copy.sizes[d];
      // Divisions of 64 bits are slow on devices.
      const int64_t outer = rest <= UINT32_MAX ? static_cast<uint32_t>(rest) /
                                                     static_cast<uint32_t>(size)
                                               : rest / size;
      const int64_t digit = rest - outer * size;
      from += digit * copy.from_strides[d];
      to += digit * copy.to_strides[d];
      rest = outer;
    }
    from +=
        (copy.rows == nullptr ? rest : copy.rows[rest]) * copy.from_strides[0];
    to += rest * copy.to_strides[0];
    if (copy.num_steps > 0) return Step(copy, i, from, to);
    switch (copy.element_bytes) {
      case 1:
        return Move<uint8_t>(copy, from, to);
      case 2:
        return Move<uint16_t>(copy, from, to);
      case 4:
        return Move<uint32_t>(copy, from, to);
      case 8:
        return Move<uint64_t>(copy, from, to);
      default:
        return Move<SixteenBytes>(copy, from, to);
    }
  }

  constexpr void Step(const ElementCopy& copy, int64_t i, int64_t from,
                      int64_t to) const {
    const ElementStep* const first = steps + copy.first_step;
    ElementValue value = LoadElement(first->type, copy.from, from);
    ElementType type = first->type;
    for (int s = 0; s < copy.num_steps; ++s) {
      value = StepOfElement(first[s], value, i);
      if (first[s].kind == ElementStep::Kind::kCast) type = first[s].to;
    }
    StoreElement(type, value, to, copy.to);
  }
};

}  // namespace rill::transforms_internal

#endif  // RILL_TRANSFORMS_ROWS_ELEMENT_KERNELS_H_

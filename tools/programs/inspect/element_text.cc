// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/element_text.h"

#include <charconv>
#include <cmath>
#include <complex>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/half.h"

namespace rill::inspect {
namespace {

constexpr size_t kShownFirst = 4;

// A bool from a file may be any byte.
struct BoolByte {
  uint8_t byte;
};

template <typename Fn>
// Calls fn(Span<const T>) with the C++ type of the dtype. `tensor` is
// contiguous.
auto VisitElements(const Tensor& tensor, Fn fn) {
  const auto visit = [&]<typename T>(const T* data) {
    return fn(absl::MakeConstSpan(data, tensor.num_elements()));
  };
  switch (tensor.dtype()) {
    case DType::kBool:
      return visit(tensor.data<BoolByte>());
    case DType::kUInt8:
      return visit(tensor.data<uint8_t>());
    case DType::kInt8:
      return visit(tensor.data<int8_t>());
    case DType::kInt16:
      return visit(tensor.data<int16_t>());
    case DType::kInt32:
      return visit(tensor.data<int32_t>());
    case DType::kInt64:
      return visit(tensor.data<int64_t>());
    case DType::kFloat16:
      return visit(tensor.data<Float16>());
    case DType::kBFloat16:
      return visit(tensor.data<BFloat16>());
    case DType::kFloat32:
      return visit(tensor.data<float>());
    case DType::kFloat64:
      return visit(tensor.data<double>());
    case DType::kUInt16:
      return visit(tensor.data<uint16_t>());
    case DType::kUInt32:
      return visit(tensor.data<uint32_t>());
    case DType::kUInt64:
      return visit(tensor.data<uint64_t>());
    case DType::kComplex64:
      return visit(tensor.data<std::complex<float>>());
    case DType::kComplex128:
      break;
  }
  return visit(tensor.data<std::complex<double>>());
}

// As one of bool, int64_t, uint64_t, double, std::complex<double>; exact.
template <typename T>
auto Plain(T element) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return element.byte != 0;
  } else if constexpr (std::is_same_v<T, Float16> ||
                       std::is_same_v<T, BFloat16>) {
    return ToDouble(element);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<
        std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>(element);
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(element);
  } else {
    return std::complex<double>(element);
  }
}

void AppendJson(bool value, std::string* json) {
  json->append(value ? "true" : "false");
}
void AppendJson(int64_t value, std::string* json) {
  absl::StrAppend(json, value);
}
void AppendJson(uint64_t value, std::string* json) {
  absl::StrAppend(json, value);
}
void AppendJson(double value, std::string* json) {
  if (std::isnan(value)) {
    json->append("\"NaN\"");
  } else if (std::isinf(value)) {
    json->append(value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
  } else if (value == 0) {
    // A reader takes "-0" for an integer, which has no sign.
    json->append(std::signbit(value) ? "-0.0" : "0");
  } else {
    char text[64];
    // The shortest text that reads back as this double.
    json->append(text, std::to_chars(text, text + 64, value).ptr);
  }
}
void AppendJson(std::complex<double> value, std::string* json) {
  json->push_back('[');
  AppendJson(value.real(), json);
  json->push_back(',');
  AppendJson(value.imag(), json);
  json->push_back(']');
}

// Short, for people.
std::string Shown(bool value) { return value ? "true" : "false"; }
std::string Shown(int64_t value) { return absl::StrCat(value); }
std::string Shown(uint64_t value) { return absl::StrCat(value); }
std::string Shown(double value) { return absl::StrFormat("%.6g", value); }
std::string Shown(std::complex<double> value) {
  return absl::StrFormat("%.6g%+.6gi", value.real(), value.imag());
}

bool IsNan(double value) { return std::isnan(value); }
bool IsNan(std::complex<double> value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}
template <typename T>
bool IsNan(T) {
  return false;
}

}  // namespace

absl::Status AppendJsonValues(const Tensor& tensor, std::string* json) {
  RILL_ASSIGN_OR_RETURN(const Tensor rows, tensor.Contiguous());
  json->push_back('[');
  VisitElements(rows, [&](auto elements) {
    bool is_first = true;
    for (const auto& element : elements) {
      if (!is_first) json->push_back(',');
      is_first = false;
      AppendJson(Plain(element), json);
    }
  });
  json->push_back(']');
  return absl::OkStatus();
}

void AppendJsonNumber(double value, std::string* json) {
  AppendJson(value, json);
}

void AppendJsonString(absl::string_view text, std::string* json) {
  json->push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json->push_back('\\');
      json->push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(json, "\\u%04x", c);
    } else {
      json->push_back(c);
    }
  }
  json->push_back('"');
}

absl::StatusOr<Summary> Summarize(const Tensor& tensor) {
  Summaries summaries;
  RILL_RETURN_IF_ERROR(summaries.Add(tensor));
  return summaries.Get();
}

absl::Status Summaries::Add(const Tensor& tensor) {
  RILL_ASSIGN_OR_RETURN(const Tensor rows, tensor.Contiguous());
  VisitElements(rows, [this](auto elements) { AddSpan(elements); });
  return absl::OkStatus();
}

template <typename T>
void Summaries::AddSpan(absl::Span<const T> elements) {
  using P = decltype(Plain(elements[0]));
  if (elements.empty()) return;
  for (const T& element : elements.subspan(0, kShownFirst - shown_)) {
    absl::StrAppend(&first_, first_.empty() ? "" : " ", Shown(Plain(element)));
    ++shown_;
  }
  total_ += static_cast<int64_t>(elements.size());
  // No order, so no smallest and largest.
  if constexpr (std::is_same_v<P, std::complex<double>>) {
    for (const T& element : elements) nans_ += IsNan(Plain(element));
  } else {
    // Compared in the plain type: 64-bit integers beyond 2^53 stay exact.
    std::optional<P> min, max;
    for (const T& element : elements) {
      const P value = Plain(element);
      if (IsNan(value)) {
        ++nans_;
        continue;
      }
      if (!min || value < *min) min = value;
      if (!max || value > *max) max = value;
      // A sum of doubles is near enough for a mean that people read.
      sum_ += static_cast<double>(value);
      ++count_;
    }
    if (!min) return;
    if (!min_ || Number(*min) < *min_) min_ = *min;
    if (!max_ || Number(*max) > *max_) max_ = *max;
  }
}

Summary Summaries::Get() const {
  Summary summary;
  summary.nans = nans_;
  summary.first = first_;
  if (total_ > static_cast<int64_t>(shown_)) summary.first += " ...";
  if (!min_) return summary;
  const auto shown = [](const auto& value) { return Shown(value); };
  summary.min = std::visit(shown, *min_);
  summary.max = std::visit(shown, *max_);
  summary.mean = Shown(sum_ / static_cast<double>(count_));
  return summary;
}

}  // namespace rill::inspect

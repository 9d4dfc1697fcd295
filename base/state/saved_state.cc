// SPDX-License-Identifier: Apache-2.0
#include "rill/base/state/saved_state.h"

#include <algorithm>
#include <array>
#include <bit>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "rill/base/status_macros.h"

namespace rill {
namespace {

constexpr absl::string_view kMagic = "RILLSTAT";
constexpr uint32_t kForm = 1;
constexpr size_t kHeaderBytes = 12;
constexpr size_t kChecksumBytes = 4;
// Limits of what bytes from outside may ask for.
constexpr int kMaxDepth = 16;
constexpr uint64_t kMaxFields = 4096;

// In the order of SavedState::Value.
constexpr std::array<absl::string_view, 6> kKinds = {
    "int64",           "float64",           "a text",
    "a list of int64", "a list of float64", "parts"};

absl::string_view KindOf(size_t index) { return kKinds[index]; }

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
}

// Little-endian whatever the machine.
class Encoder {
 public:
  void Uint(uint64_t value, int num_bytes) {
    for (int i = 0; i < num_bytes; ++i) {
      bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
    }
  }
  void Text(absl::string_view text) {
    Uint(text.size(), 4);
    bytes.append(text.data(), text.size());
  }
  void Put(int64_t value) { Uint(static_cast<uint64_t>(value), 8); }
  void Put(double value) { Uint(std::bit_cast<uint64_t>(value), 8); }
  void Put(const std::string& value) { Text(value); }
  void Put(const SavedState& state) {
    Text(state.type());
    Put(state.version());
    Uint(state.fields().size(), 4);
    for (const SavedState::Field& field : state.fields()) {
      Text(field.name);
      Uint(field.value.index(), 1);
      std::visit([this](const auto& value) { Put(value); }, field.value);
    }
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    Uint(values.size(), 8);
    for (const T& value : values) Put(value);
  }

  std::string bytes;
};

// Past the end, and after anything that cannot be, all is zero and `is_good`
// false.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return is_good_ && rest_.empty(); }

  uint64_t Uint(size_t num_bytes) {
    const absl::string_view bytes = Bytes(num_bytes);
    uint64_t value = 0;
    for (size_t i = bytes.size(); i > 0; --i) {
      value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
    }
    return value;
  }
  absl::string_view Text() { return Bytes(Uint(4)); }

  void Take(int64_t* value) { *value = static_cast<int64_t>(Uint(8)); }
  void Take(double* value) { *value = std::bit_cast<double>(Uint(8)); }
  void Take(std::string* value) { *value = std::string(Text()); }
  void Take(SavedState* state) {
    const absl::string_view type = Text();
    int64_t version;
    Take(&version);
    *state = SavedState(type, version);
    const uint64_t count = Uint(4);
    is_good_ = is_good_ && count <= kMaxFields && ++depth_ <= kMaxDepth;
    for (uint64_t i = 0; is_good_ && i < count; ++i) {
      const absl::string_view name = Text();
      SavedState::Value value = OfKind(Uint(1));
      std::visit([this](auto& content) { Take(&content); }, value);
      // A name that comes twice would be lost.
      is_good_ = is_good_ && !name.empty();
      state->Set(name, std::move(value));
      is_good_ = is_good_ && state->fields().size() == i + 1;
    }
    --depth_;
  }
  template <typename T>
  void Take(std::vector<T>* values) {
    const uint64_t count = Uint(8);
    // No value takes fewer bytes, so a list takes no memory that it does not
    // fill.
    is_good_ = is_good_ && count <= rest_.size() / 8;
    for (uint64_t i = 0; is_good_ && i < count; ++i) {
      Take(&values->emplace_back());
    }
  }

 private:
  absl::string_view Bytes(uint64_t size) {
    is_good_ = is_good_ && size <= rest_.size();
    if (!is_good_) return {};
    const absl::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  // Empty; of the kind with this number.
  template <size_t kIndex = 0>
  SavedState::Value OfKind(uint64_t index) {
    if constexpr (kIndex < kKinds.size()) {
      if (index == kIndex) {
        return SavedState::Value(std::in_place_index<kIndex>);
      }
      return OfKind<kIndex + 1>(index);
    }
    is_good_ = false;
    return {};
  }

  absl::string_view rest_;
  bool is_good_ = true;
  int depth_ = 0;
};

}  // namespace

SavedState::SavedState() = default;
SavedState::SavedState(absl::string_view type, int64_t version)
    : type_(type), version_(version) {}
SavedState::SavedState(const SavedState&) = default;
SavedState& SavedState::operator=(const SavedState&) = default;
SavedState::SavedState(SavedState&&) noexcept = default;
SavedState& SavedState::operator=(SavedState&&) noexcept = default;
SavedState::~SavedState() = default;

void SavedState::Set(absl::string_view name, Value value) {
  for (Field& field : fields_) {
    if (field.name != name) continue;
    field.value = std::move(value);
    return;
  }
  fields_.push_back({std::string(name), std::move(value)});
}

void SavedState::SetPart(absl::string_view name, SavedState part) {
  std::vector<SavedState> parts;
  parts.push_back(std::move(part));
  Set(name, std::move(parts));
}

absl::Status SavedState::CheckType(absl::string_view type,
                                   int64_t max_version) const {
  if (type_ == type && version_ >= 0 && version_ <= max_version) {
    return absl::OkStatus();
  }
  return FailedPrecondition(type, "::LoadState: got the state of ", type_,
                            " version ", version_, ", want that of ", type,
                            " version <= ", max_version);
}

template <typename T>
absl::StatusOr<const T*> SavedState::Find(absl::string_view name) const {
  const auto field =
      std::find_if(fields_.begin(), fields_.end(),
                   [&](const Field& one) { return one.name == name; });
  if (field != fields_.end()) {
    if (const T* value = std::get_if<T>(&field->value)) return value;
  }
  return DoesNotFit(absl::StrCat(
      "\"", name, "\": got ",
      field == fields_.end() ? "none" : KindOf(field->value.index()), ", want ",
      KindOf(Value(T()).index())));
}

template absl::StatusOr<const int64_t*> SavedState::Find(
    absl::string_view) const;
template absl::StatusOr<const double*> SavedState::Find(
    absl::string_view) const;
template absl::StatusOr<const std::string*> SavedState::Find(
    absl::string_view) const;

absl::StatusOr<absl::Span<const int64_t>> SavedState::Ints(
    absl::string_view name, size_t width) const {
  RILL_ASSIGN_OR_RETURN(const auto* values, Find<std::vector<int64_t>>(name));
  if (values->size() % width == 0) return absl::MakeConstSpan(*values);
  return Damaged(absl::StrCat("\"", name, "\": got ", values->size(),
                              " numbers, want a multiple of ", width));
}

absl::StatusOr<absl::Span<const double>> SavedState::Doubles(
    absl::string_view name) const {
  RILL_ASSIGN_OR_RETURN(const auto* values, Find<std::vector<double>>(name));
  return absl::MakeConstSpan(*values);
}

absl::StatusOr<absl::Span<const SavedState>> SavedState::Parts(
    absl::string_view name) const {
  RILL_ASSIGN_OR_RETURN(const auto* parts, Find<std::vector<SavedState>>(name));
  return absl::MakeConstSpan(*parts);
}

absl::StatusOr<const SavedState*> SavedState::Part(absl::string_view name,
                                                   absl::string_view type,
                                                   int64_t max_version) const {
  RILL_ASSIGN_OR_RETURN(const absl::Span<const SavedState> parts, Parts(name));
  if (parts.size() != 1) {
    return DoesNotFit(
        absl::StrCat("\"", name, "\": got ", parts.size(), " parts, want 1"));
  }
  RILL_RETURN_IF_ERROR(parts[0].CheckType(type, max_version));
  return &parts[0];
}

absl::Status SavedState::Damaged(absl::string_view what) const {
  return DataLoss(type_, "::LoadState: ", what);
}

absl::Status SavedState::DoesNotFit(absl::string_view what) const {
  return FailedPrecondition(type_, "::LoadState: ", what);
}

std::string SavedState::Encode() const {
  Encoder encoder;
  encoder.bytes = std::string(kMagic);
  encoder.Uint(kForm, 4);
  encoder.Put(*this);
  encoder.Uint(Checksum(encoder.bytes), kChecksumBytes);
  return std::move(encoder.bytes);
}

bool SavedState::IsSavedState(absl::string_view bytes) {
  return absl::StartsWith(bytes, kMagic);
}

absl::StatusOr<SavedState> SavedState::Decode(absl::string_view bytes) {
  const auto damaged = [](const auto&... what) {
    return DataLoss("SavedState::Decode: ", what...);
  };
  if (bytes.size() < kHeaderBytes + kChecksumBytes || !IsSavedState(bytes)) {
    return damaged(
        "got ", bytes.size(), " bytes that are no saved state, want ",
        kHeaderBytes + kChecksumBytes, " or more that start with ", kMagic);
  }
  // The checksum comes before any value is believed.
  const absl::string_view content =
      bytes.substr(0, bytes.size() - kChecksumBytes);
  const uint64_t stored =
      Decoder(bytes.substr(content.size())).Uint(kChecksumBytes);
  if (stored != Checksum(content)) {
    return damaged(absl::StrFormat("checksum: got 0x%08x, want 0x%08x",
                                   Checksum(content), stored));
  }
  Decoder decoder(content.substr(kMagic.size()));
  if (const uint64_t form = decoder.Uint(4); form != kForm) {
    return FailedPrecondition("SavedState::Decode: form: got ", form, ", want ",
                              kForm);
  }
  SavedState state;
  decoder.Take(&state);
  if (decoder.is_at_end()) return state;
  return damaged("got bytes that end early or late, or a value of no kind");
}

}  // namespace rill

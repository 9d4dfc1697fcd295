// SPDX-License-Identifier: Apache-2.0
#include "rill/samplers/state_bytes.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/crc/crc32c.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace rill::samplers_internal {
namespace {

constexpr absl::string_view kMagic = "RILLSMPL";
// Magic, version, length of the name; checksum.
constexpr size_t kHeaderBytes = 16;
constexpr size_t kChecksumBytes = 4;

// A state moves between machines with its checkpoint.
// Little-endian whatever the machine.
void AppendUint(uint64_t value, int num_bytes, std::string* bytes) {
  for (int i = 0; i < num_bytes; ++i) {
    bytes->push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
}

uint64_t ReadUint(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

uint32_t Checksum(absl::string_view bytes) {
  return static_cast<uint32_t>(absl::ComputeCrc32c(bytes));
}

absl::Status DamagedState(absl::string_view sampler, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(sampler, "::LoadState: ", what));
}

}  // namespace

StateWriter::StateWriter(absl::string_view sampler, uint32_t version)
    : bytes_(kMagic) {
  AppendUint(version, 4, &bytes_);
  AppendUint(sampler.size(), 4, &bytes_);
  bytes_.append(sampler.data(), sampler.size());
}

void StateWriter::Int(int64_t value) {
  AppendUint(static_cast<uint64_t>(value), 8, &bytes_);
}

void StateWriter::Double(double value) {
  AppendUint(std::bit_cast<uint64_t>(value), 8, &bytes_);
}

std::string StateWriter::Finish() && {
  AppendUint(Checksum(bytes_), kChecksumBytes, &bytes_);
  return std::move(bytes_);
}

StateReader::StateReader(std::string sampler, uint32_t version,
                         absl::string_view rest)
    : sampler_(std::move(sampler)), version_(version), rest_(rest) {}

absl::StatusOr<StateReader> StateReader::Open(absl::string_view sampler,
                                              uint32_t max_version,
                                              absl::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kChecksumBytes ||
      bytes.substr(0, kMagic.size()) != kMagic) {
    return DamagedState(
        sampler, absl::StrCat("no sampler's state: got ", bytes.size(),
                              " bytes, want ", kHeaderBytes + kChecksumBytes,
                              " or more that start with ", kMagic));
  }
  const absl::string_view content =
      bytes.substr(0, bytes.size() - kChecksumBytes);
  // The checksum comes before any field is believed.
  const uint32_t stored =
      static_cast<uint32_t>(ReadUint(bytes.substr(content.size())));
  if (stored != Checksum(content)) {
    return DamagedState(sampler, absl::StrFormat("checksum: got 0x%08x, want "
                                                 "0x%08x",
                                                 Checksum(content), stored));
  }
  const auto version = static_cast<uint32_t>(ReadUint(content.substr(8, 4)));
  const uint64_t name_size = ReadUint(content.substr(12, 4));
  if (name_size > content.size() - kHeaderBytes) {
    return DamagedState(
        sampler, absl::StrCat("length of the name: got ", name_size,
                              ", want <= ", content.size() - kHeaderBytes));
  }
  const absl::string_view name = content.substr(kHeaderBytes, name_size);
  if (name != sampler || version > max_version) {
    return absl::FailedPreconditionError(absl::StrCat(
        sampler, "::LoadState: got the state of ", name, " version ", version,
        ", want that of ", sampler, " version <= ", max_version));
  }
  return StateReader(std::string(sampler), version,
                     content.substr(kHeaderBytes + name_size));
}

absl::StatusOr<int64_t> StateReader::Int() {
  if (rest_.size() < 8) {
    return Damaged(
        absl::StrCat("cut: got ", rest_.size(), " bytes for a number, want 8"));
  }
  const auto value = static_cast<int64_t>(ReadUint(rest_.substr(0, 8)));
  rest_.remove_prefix(8);
  return value;
}

absl::StatusOr<double> StateReader::Double() {
  absl::StatusOr<int64_t> bits = Int();
  if (!bits.ok()) return bits.status();
  return std::bit_cast<double>(*bits);
}

absl::Status StateReader::SkipList(int64_t ints) {
  const absl::StatusOr<int64_t> count = Int();
  if (!count.ok()) return count.status();
  // Bounded by the bytes that are left, so the product below does not overflow.
  const auto room = static_cast<int64_t>(rest_.size() / sizeof(int64_t)) / ints;
  if (*count < 0 || *count > room) {
    return Damaged(
        absl::StrCat("length: got ", *count, ", want [0, ", room, "]"));
  }
  rest_.remove_prefix(*count * ints * sizeof(int64_t));
  return absl::OkStatus();
}

absl::Status StateReader::Finish() const {
  if (rest_.empty()) return absl::OkStatus();
  return Damaged(
      absl::StrCat("got ", rest_.size(), " bytes behind the end, want 0"));
}

absl::Status StateReader::Damaged(absl::string_view what) const {
  return DamagedState(sampler_, what);
}

absl::Status StateReader::DoesNotFit(absl::string_view what) const {
  return absl::FailedPreconditionError(
      absl::StrCat(sampler_, "::LoadState: ", what));
}

void StateReader::SetChangedOptions(absl::Span<const std::string> names) {
  changed_.assign(names.begin(), names.end());
  // Names below are looked up with the unit's prefix, so this asks for any
  // option of the unit.
  const InPart unit(this, "unit");
  has_other_anchors_ = HasChanges();
}

StateReader::InPart::InPart(StateReader* reader, absl::string_view part)
    : reader_(reader), outer_size_(reader->part_.size()) {
  absl::StrAppend(&reader->part_, part, ".");
}

StateReader::InPart::~InPart() { reader_->part_.resize(outer_size_); }

bool StateReader::HasChanged(absl::string_view option) const {
  return std::find(changed_.begin(), changed_.end(),
                   absl::StrCat(part_, option)) != changed_.end();
}

bool StateReader::HasChanges() const {
  return std::any_of(changed_.begin(), changed_.end(),
                     [this](const std::string& name) {
                       return absl::StartsWith(name, part_);
                     });
}

}  // namespace rill::samplers_internal

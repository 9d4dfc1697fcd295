// SPDX-License-Identifier: Apache-2.0
#include "rill/flow/frames/frame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/crc/crc32c.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

constexpr absl::StatusCode kDataLoss = absl::StatusCode::kDataLoss;
// As docs/formats/frame.md has them.
constexpr size_t kChecksumAt = 12;
constexpr size_t kLengthAt = 16;
constexpr size_t kSchemaAt = 40;

absl::StatusOr<int64_t> Example(const TensorDict& batch) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> bytes,
                        EncodeFrame("header", batch));
  RILL_ASSIGN_OR_RETURN(
      const Frame frame,
      DecodeFrame(bytes,
                  {bytes->data(), static_cast<size_t>(bytes->size_bytes())}));
  return frame.batch.num_leaves();
}

template <typename T>
Tensor Values(const std::vector<T>& values, const Shape& shape) {
  return *Tensor::From<T>(values, shape);
}

std::string Encoded(absl::string_view header, const TensorDict& batch) {
  const auto bytes = EncodeFrame(header, batch);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return {reinterpret_cast<const char*>((*bytes)->data()),
          static_cast<size_t>((*bytes)->size_bytes())};
}

// In memory of the right alignment and just that size.
absl::StatusOr<Frame> Decoded(absl::string_view bytes) {
  RILL_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> copy,
                        Buffer::Allocate(static_cast<int64_t>(bytes.size())));
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  const std::byte* const data = copy->data();
  return DecodeFrame(std::move(copy), {data, bytes.size()});
}

template <typename T>
T Load(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}
template <typename T>
void Store(T value, size_t at, std::string* bytes) {
  std::memcpy(bytes->data() + at, &value, sizeof(value));
}

// Where the columns begin, but for padding.
size_t FrontBytes(const std::string& bytes) {
  return kSchemaAt + Load<uint64_t>(bytes, kLengthAt + 8) +
         Load<uint64_t>(bytes, kLengthAt + 16);
}

void PutChecksumRight(std::string* bytes) {
  const size_t end = FrontBytes(*bytes);
  if (end < kSchemaAt || end > bytes->size()) return;
  const auto sum = static_cast<uint32_t>(absl::ComputeCrc32c(
      absl::string_view(*bytes).substr(kLengthAt, end - kLengthAt)));
  Store(sum, kChecksumAt, bytes);
}

// A frame of this schema, with columns of `columns` bytes of zeros.
std::string WithSchema(absl::string_view schema, size_t columns = 0) {
  const auto round_up = [](size_t n) { return (n + 63) / 64 * 64; };
  std::string bytes(round_up(kSchemaAt + schema.size()) + round_up(columns),
                    '\0');
  std::memcpy(bytes.data(), "RILLFRAM", 8);
  Store(uint32_t{1}, 8, &bytes);
  Store(uint64_t{bytes.size()}, kLengthAt, &bytes);
  Store(uint64_t{schema.size()}, kLengthAt + 8, &bytes);
  std::memcpy(bytes.data() + kSchemaAt, schema.data(), schema.size());
  PutChecksumRight(&bytes);
  return bytes;
}

// Parts of a schema.
std::string Num(int64_t value) {
  std::string bytes(8, '\0');
  Store(value, 0, &bytes);
  return bytes;
}
std::string Txt(absl::string_view text) {
  return absl::StrCat(Num(static_cast<int64_t>(text.size())), text);
}
std::string Sizes(const std::vector<int64_t>& sizes) {
  std::string bytes(1, static_cast<char>(sizes.size()));
  for (const int64_t size : sizes) bytes += Num(size);
  return bytes;
}
std::string Dict(const std::vector<int64_t>& sizes, int64_t count,
                 absl::string_view entries) {
  return absl::StrCat(Sizes(sizes), absl::string_view("\0", 1), Num(count),
                      entries);
}
std::string Entry(absl::string_view key, char kind, absl::string_view content) {
  return absl::StrCat(Txt(key), std::string(1, kind), content);
}
std::string Leaf(absl::string_view key, absl::string_view dtype,
                 const std::vector<int64_t>& sizes) {
  return Entry(key, 0, Txt(dtype) + Sizes(sizes));
}

// An entry of each kind.
TensorDict Sample() {
  TensorDict dict({2});
  RILL_EXPECT_OK(dict.Set("obs", Values<float>({0, 1, 2, 3}, {2, 2})));
  RILL_EXPECT_OK(dict.Set("next/reward", Values<double>({5, 6}, {2, 1})));
  RILL_EXPECT_OK(dict.Set("a\\/b", Values<uint8_t>({9, 8}, {2})));
  RILL_EXPECT_OK(dict.Set("none", Values<float>({}, {2, 0})));
  RILL_EXPECT_OK(dict.Set("note", NonTensor{R"({"x":null})"}));
  RILL_EXPECT_OK(dict.Set(
      "names", *NonTensorStack::Create({2}, {"\"left\"", "\"right\""})));
  RILL_EXPECT_OK(dict.Set(
      "words", *RaggedTensor::FromRows({Values<int16_t>({1, 2}, {2}),
                                        Values<int16_t>({3, 4, 5}, {3})})));
  TensorDict one({1}), three({3});
  RILL_EXPECT_OK(one.Set("id", Values<int64_t>({7}, {1})));
  RILL_EXPECT_OK(three.Set("id", Values<int64_t>({1, 2, 3}, {3})));
  RILL_EXPECT_OK(dict.Set("episodes", *LazyStack::Create({one, three})));
  RILL_EXPECT_OK(dict.SetDimNames({"lane"}));
  return dict;
}

TEST(FrameTest, Example) { EXPECT_EQ(*Example(Sample()), 4); }

TEST(FrameTest, EveryKindOfEntryComesBack) {
  TensorDict sample = Sample();
  sample.Lock();
  RILL_ASSERT_OK_AND_ASSIGN(const Frame frame,
                            Decoded(Encoded("header", sample)));
  EXPECT_EQ(frame.header, "header");
  RILL_EXPECT_OK(frame.batch.CheckEqual(sample));
  EXPECT_EQ(frame.batch.Keys(), sample.Keys());
  EXPECT_THAT(frame.batch.dim_names(), ElementsAre("lane"));
  EXPECT_FALSE(frame.batch.is_locked());
}

TEST(FrameTest, HeadersAreAnyBytes) {
  const std::string header("\0\xff\n", 3);
  RILL_ASSERT_OK_AND_ASSIGN(const Frame frame,
                            Decoded(Encoded(header, TensorDict())));
  EXPECT_EQ(frame.header, header);
  EXPECT_TRUE(frame.batch.empty());
}

TEST(FrameTest, AllDtypesComeBack) {
  TensorDict dict({3});
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf, Tensor::Zeros(dtype, {3, 1}));
    if (dtype != DType::kBool) {
      std::memset(leaf.raw_data(), i + 1,
                  static_cast<size_t>(leaf.size_bytes()));
    }
    RILL_ASSERT_OK(dict.Set(DTypeName(dtype), leaf));
  }
  RILL_ASSERT_OK_AND_ASSIGN(const Frame frame, Decoded(Encoded("", dict)));
  RILL_EXPECT_OK(frame.batch.CheckEqual(dict));
}

TEST(FrameTest, TensorsAreReadOnlyViewsOfTheBytes) {
  RILL_ASSERT_OK_AND_ASSIGN(std::shared_ptr<Buffer> bytes,
                            EncodeFrame("", Sample()));
  const std::byte* const begin = bytes->data();
  const std::byte* const end = begin + bytes->size_bytes();
  RILL_ASSERT_OK_AND_ASSIGN(
      const Frame frame,
      DecodeFrame(bytes, {begin, static_cast<size_t>(end - begin)}));
  const auto expect_view = [&](const Tensor& tensor) {
    EXPECT_GE(tensor.raw_data(), begin);
    EXPECT_LE(tensor.raw_data() + tensor.size_bytes(), end);
    EXPECT_EQ((tensor.raw_data() - begin) % kFrameAlignment, 0);
    EXPECT_FALSE(tensor.is_writable());
  };
  frame.batch.ForEachLeaf(
      [&](absl::string_view, const Tensor& leaf) { expect_view(leaf); });
  expect_view(frame.batch.GetRagged("words")->values());
  expect_view(*frame.batch.GetLazyStack("episodes")->members()[1].Find("id"));
  // The tensors keep the bytes.
  const std::weak_ptr<Buffer> kept = bytes;
  bytes = nullptr;
  EXPECT_FALSE(kept.expired());
}

TEST(FrameTest, StridedLeavesArePacked) {
  const Tensor iota = Values<int32_t>({0, 1, 2, 3, 4, 5}, {2, 3});
  TensorDict dict({3});
  RILL_ASSERT_OK(dict.Set("turned", *iota.Permute({1, 0})));
  RILL_ASSERT_OK(dict.Set("repeated", *Values<int8_t>({4}, {1}).Expand({3})));
  RILL_ASSERT_OK_AND_ASSIGN(const Frame frame, Decoded(Encoded("", dict)));
  EXPECT_THAT(*frame.batch.Flat<int32_t>("turned"),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(*frame.batch.Flat<int8_t>("repeated"), ElementsAre(4, 4, 4));
}

// docs/formats/frame.md has these bytes.
TEST(FrameTest, BytesAreTheDocumentedOnes) {
  TensorDict dict({2});
  RILL_ASSERT_OK(dict.Set("x", Values<float>({1, 2}, {2})));
  const std::string bytes = Encoded("hi", dict);
  EXPECT_EQ(absl::BytesToHexString(bytes),
            absl::StrCat("52494c4c4652414d"  // RILLFRAM
                         "01000000"
                         "46cd8d03"
                         "c000000000000000"
                         "3400000000000000"
                         "0200000000000000",
                         "01"
                         "0200000000000000"
                         "00"
                         "0100000000000000",
                         "0100000000000000"
                         "78"
                         "00",
                         "0700000000000000"
                         "666c6f61743332",
                         "01"
                         "0200000000000000",
                         "6869",  // hi
                         std::string(2 * (128 - 94), '0'),
                         "0000803f"
                         "00000040",
                         std::string(2 * (64 - 8), '0')));
}

// A dictionary of any entries, some of them strided.
class RandomDicts {
 public:
  explicit RandomDicts(uint64_t round) : round_(round) {}

  TensorDict Make(const Shape& batch_shape, int depth) {
    TensorDict dict(batch_shape);
    const int64_t count = Int(5);
    for (int64_t i = 0; i < count; ++i) {
      AddEntry(absl::StrCat("k\\/", i), depth, &dict);
    }
    if (batch_shape.rank() > 0 && Int(2) == 0) {
      std::vector<std::string> names(static_cast<size_t>(batch_shape.rank()));
      names[0] = "first";
      RILL_EXPECT_OK(dict.SetDimNames(std::move(names)));
    }
    return dict;
  }
  Shape MakeShape(int max_rank) {
    Shape shape;
    for (int64_t rank = Int(max_rank + 1); rank > 0; --rank) {
      shape = shape.Concat({Int(4)});
    }
    return shape;
  }

 private:
  int64_t Int(int64_t bound) { return rng_.UniformInt(round_, draw_++, bound); }

  Tensor MakeTensor(const Shape& shape) {
    const auto dtype = static_cast<DType>(Int(kNumDTypes));
    // Every second element of a dimension more.
    Tensor wide = *Tensor::Empty(dtype, shape.Concat({2}));
    for (int64_t i = 0; i < wide.size_bytes(); ++i) {
      wide.raw_data()[i] =
          static_cast<std::byte>(Int(dtype == DType::kBool ? 2 : 256));
    }
    return Int(2) == 0 ? *wide.Select(shape.rank(), 1)
                       : *wide.Select(shape.rank(), 0)->Clone();
  }

  void AddEntry(const std::string& key, int depth, TensorDict* dict) {
    const Shape batch = dict->batch_shape();
    switch (Int(6)) {
      case 0:
        if (depth > 0) {
          RILL_EXPECT_OK(
              dict->Set(key, Make(batch.Concat(MakeShape(1)), depth - 1)));
        }
        return;
      case 1:
        RILL_EXPECT_OK(dict->Set(key, NonTensor{absl::StrCat(Int(9))}));
        return;
      case 2: {
        std::vector<std::string> texts;
        for (int64_t i = 0; i < batch.num_elements(); ++i) {
          texts.push_back(absl::StrCat("\"", Int(3), "\""));
        }
        RILL_EXPECT_OK(dict->Set(key, *NonTensorStack::Create(batch, texts)));
        return;
      }
      case 3: {
        if (batch.rank() != 1 || batch[0] == 0) return;
        std::vector<Tensor> rows;
        const int64_t rank = Int(3);
        for (int64_t i = 0; i < batch[0]; ++i) {
          Shape shape;
          for (int64_t d = 0; d < rank; ++d) shape = shape.Concat({Int(3)});
          rows.push_back(*Tensor::Zeros(DType::kFloat16, shape));
          std::fill_n(rows.back().data<uint16_t>(), shape.num_elements(), i);
        }
        RILL_EXPECT_OK(dict->Set(key, *RaggedTensor::FromRows(rows)));
        return;
      }
      case 4: {
        if (batch.rank() != 1 || batch[0] == 0 || depth == 0) return;
        std::vector<TensorDict> members;
        for (int64_t i = 0; i < batch[0]; ++i) {
          members.push_back(Make({}, depth - 1));
        }
        RILL_EXPECT_OK(dict->Set(key, *LazyStack::Create(std::move(members))));
        return;
      }
      default:
        RILL_EXPECT_OK(dict->Set(key, MakeTensor(batch.Concat(MakeShape(2)))));
    }
  }

  Rng rng_ = Rng(11);
  uint64_t round_;
  uint32_t draw_ = 0;
};

TEST(FrameTest, RandomDictionariesComeBackAndGiveTheSameBytes) {
  for (uint64_t round = 0; round < 300; ++round) {
    RandomDicts random(round);
    const TensorDict dict = random.Make(random.MakeShape(2), 3);
    const std::string bytes = Encoded("h", dict);
    RILL_ASSERT_OK_AND_ASSIGN(const int64_t size, FrameBytes("h", dict));
    EXPECT_EQ(static_cast<size_t>(size), bytes.size());
    RILL_ASSERT_OK_AND_ASSIGN(const Frame frame, Decoded(bytes));
    RILL_EXPECT_OK(frame.batch.CheckEqual(dict)) << dict;
    EXPECT_EQ(frame.batch.Keys(), dict.Keys());
    EXPECT_EQ(frame.batch.dim_names(), dict.dim_names());
    EXPECT_EQ(Encoded("h", frame.batch), bytes);
  }
}

// The pieces of columns are where the leaves are, and all are the frame.
TEST(FrameTest, PiecesAreTheFrameAndLargeColumnsStayWhereTheyAre) {
  TensorDict batch({4});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor odd,
                            Tensor::Zeros(DType::kUInt8, {4, 49}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor even,
                            Tensor::Zeros(DType::kInt64, {4, 32}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor strided, even.Slice(1, 0, 30));
  std::fill_n(odd.data<uint8_t>(), odd.num_elements(), uint8_t{7});
  std::fill_n(even.data<int64_t>(), even.num_elements(), -1);
  RILL_ASSERT_OK(batch.Set("small", Values<int64_t>({1, 2, 3, 4}, {4})));
  RILL_ASSERT_OK(batch.Set("odd", odd));
  RILL_ASSERT_OK(batch.Set("even", even));
  RILL_ASSERT_OK(batch.Set("strided", strided));
  RILL_ASSERT_OK_AND_ASSIGN(const FramePieces pieces,
                            EncodeFramePieces("header", batch, 196));
  ASSERT_EQ(pieces.size(), 5);
  EXPECT_EQ(pieces[1].bytes.data(), odd.raw_data());
  EXPECT_EQ(pieces[1].bytes.size(), 192);
  EXPECT_EQ(pieces[3].bytes.data(), even.raw_data());
  EXPECT_EQ(pieces[3].bytes.size(), 1024);
  for (const FramePiece& piece : pieces) {
    EXPECT_EQ(piece.bytes.size() % kFrameAlignment, 0);
  }
  RILL_ASSERT_OK_AND_ASSIGN(const auto frame, JoinFrame(pieces));
  EXPECT_EQ(absl::string_view(reinterpret_cast<const char*>(frame->data()),
                              static_cast<size_t>(frame->size_bytes())),
            Encoded("header", batch));
  RILL_ASSERT_OK_AND_ASSIGN(const FramePieces whole,
                            EncodeFramePieces("header", batch, 2000));
  ASSERT_EQ(whole.size(), 1);
  EXPECT_EQ(FrameBytes(whole), FrameBytes(pieces));
}

TEST(FrameTest, ABatchOfVeryManyLargeColumnsIsOnePiece) {
  TensorDict batch({1});
  for (int i = 0; i < kMaxFramePieces / 2; ++i) {
    RILL_ASSERT_OK_AND_ASSIGN(Tensor leaf,
                              Tensor::Zeros(DType::kUInt8, {1, 64}));
    RILL_ASSERT_OK(batch.Set(absl::StrCat(i), std::move(leaf)));
    RILL_ASSERT_OK_AND_ASSIGN(const FramePieces pieces,
                              EncodeFramePieces("", batch, 64));
    const int columns = i + 1;
    EXPECT_EQ(pieces.size(),
              2 * columns + 1 > kMaxFramePieces ? 1 : columns + 1);
  }
}

TEST(FrameTest, WhatWasInThePlaceBeforeIsGone) {
  const TensorDict dict = Sample();
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t size, FrameBytes("h", dict));
  RILL_ASSERT_OK_AND_ASSIGN(const auto place, Buffer::Allocate(size));
  std::memset(place->data(), 0xee, static_cast<size_t>(size));
  RILL_ASSERT_OK(
      EncodeFrame("h", dict, {place->data(), static_cast<size_t>(size)}));
  EXPECT_EQ(std::memcmp(place->data(), Encoded("h", dict).data(),
                        static_cast<size_t>(size)),
            0);
}

TEST(FrameTest, PlacesOfOtherSizeOrAlignmentAreRefused) {
  const TensorDict dict = Sample();
  RILL_ASSERT_OK_AND_ASSIGN(const int64_t size, FrameBytes("", dict));
  RILL_ASSERT_OK_AND_ASSIGN(const auto place, Buffer::Allocate(size + 64));
  const auto bytes = static_cast<size_t>(size);
  for (const absl::Span<std::byte> wrong :
       {absl::MakeSpan(place->data(), bytes - 1),
        absl::MakeSpan(place->data(), bytes + 1),
        absl::MakeSpan(place->data() + 8, bytes)}) {
    EXPECT_THAT(EncodeFrame("", dict, wrong),
                IsInvalidArgument("EncodeFrame: place"));
  }
  RILL_ASSERT_OK(EncodeFrame("", dict, {place->data(), bytes}));
  std::memmove(place->data() + 8, place->data(), bytes);
  EXPECT_THAT(DecodeFrame(place, {place->data() + 8, bytes}),
              IsInvalidArgument("begin 8 behind a multiple of 64"));
}

TEST(FrameTest, WhatCannotBeInAFrameIsRefusedByItsKey) {
  FakeBackend::Install({});
  {
    TensorDict dict({1});
    RILL_ASSERT_OK(dict.Set("n/x", Values<float>({1}, {1})));
    RILL_ASSERT_OK_AND_ASSIGN(const TensorDict there, dict.To(Device::Fake()));
    EXPECT_THAT(EncodeFrame("", there),
                IsInvalidArgument("EncodeFrame: \"n/x\": got a leaf on fake:0, "
                                  "want host memory; use To(Device::Cpu())"));
    EXPECT_THAT(FrameBytes("", there),
                IsInvalidArgument("FrameBytes: \"n/x\""));
  }
  TensorDict dict({0});
  RILL_ASSERT_OK_AND_ASSIGN(const LazyStack stack,
                            LazyStack::Create({TensorDict()}));
  RILL_ASSERT_OK(dict.Set("s", *stack.Slice(0, 0, 0)));
  EXPECT_THAT(EncodeFrame("", dict),
              IsInvalidArgument("\"s\": got a lazy stack without members"));

  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor huge, Values<double>({1}, {1}).Expand({int64_t{1} << 59}));
  TensorDict large;
  RILL_ASSERT_OK(large.Set("a", huge));
  RILL_ASSERT_OK(large.Set("b", huge));
  EXPECT_THAT(FrameBytes("", large), IsInvalidArgument("\"b\": bytes of all"));
}

TEST(FrameTest, DepthAndNumberOfEntriesAreLimitedOnBothSides) {
  TensorDict deep;
  for (int i = 1; i < 32; ++i) {
    TensorDict around;
    RILL_ASSERT_OK(around.Set("d", std::move(deep)));
    deep = std::move(around);
  }
  RILL_EXPECT_OK(Decoded(Encoded("", deep)));
  TensorDict deeper;
  RILL_ASSERT_OK(deeper.Set("d", deep));
  EXPECT_THAT(FrameBytes("", deeper), IsInvalidArgument("in one another"));
  std::string schema = Dict({}, 0, "");
  for (int i = 1; i < 33; ++i) schema = Dict({}, 1, Entry("d", 1, schema));
  EXPECT_THAT(Decoded(WithSchema(schema)), IsDataLoss("in one another"));

  TensorDict many({16384});
  RILL_ASSERT_OK_AND_ASSIGN(
      const LazyStack stack,
      LazyStack::Create(std::vector<TensorDict>(16384, TensorDict())));
  RILL_ASSERT_OK(many.Set("s", stack));
  EXPECT_THAT(FrameBytes("", many), IsInvalidArgument("more than 16384"));
  std::string members;
  for (int i = 0; i < 16384; ++i) members += Dict({}, 0, "");
  EXPECT_THAT(Decoded(WithSchema(Dict(
                  {16384}, 1,
                  Entry("s", 5, std::string(1, '\0') + Num(16384) + members)))),
              IsDataLoss("more than 16384"));
}

TEST(FrameTest, FramesThatWereCutAreRefused) {
  const std::string bytes = Encoded("header", Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Decoded(absl::string_view(bytes).substr(0, size)),
                IsDataLoss("DecodeFrame: "));
  }
  EXPECT_THAT(Decoded(bytes + std::string(64, '\0')),
              IsDataLoss("others behind"));
}

TEST(FrameTest, EveryChangedByteBeforeTheColumnsIsFound) {
  const std::string bytes = Encoded("header", Sample());
  for (size_t at = 0; at < FrontBytes(bytes); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      const absl::Status status = Decoded(changed).status();
      // Bytes 8 to 11 are the form.
      EXPECT_EQ(status.code(), at >= 8 && at < 12
                                   ? absl::StatusCode::kFailedPrecondition
                                   : kDataLoss)
          << at << ": " << status;
    }
  }
}

// Somebody who means harm puts the checksum right.
TEST(FrameTest, ChangesWithARightChecksumAreRefusedOrReadTheSameAgain) {
  const std::string bytes = Encoded("header", Sample());
  int accepted = 0;
  for (size_t at = kLengthAt; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x02, 0x10, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ change);
      PutChecksumRight(&changed);
      const absl::StatusOr<Frame> frame = Decoded(changed);
      if (!frame.ok()) {
        EXPECT_EQ(frame.status().code(), kDataLoss) << frame.status();
        continue;
      }
      ++accepted;
      RILL_ASSERT_OK_AND_ASSIGN(const Frame again,
                                Decoded(Encoded(frame->header, frame->batch)));
      RILL_EXPECT_OK(again.batch.CheckEqual(frame->batch));
    }
  }
  EXPECT_GT(accepted, 0);  // Keys, texts, the header, elements.
}

TEST(FrameTest, WhatIsWrongIsNamed) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  const struct {
    std::string bytes;
    std::string says;
  } kCases[] = {
      {"", "got 0 bytes that are no frame"},
      {std::string(64, 'x'), "no frame, want 40 or more that start with"},
      {WithSchema(""), "schema: batch shape: got 1 bytes, want at most the 0"},
      {WithSchema("\x09"), "batch shape: got 9, want one in [0, 9)"},
      {WithSchema(Dict({-1}, 0, "")), "batch shape: got -1, want >= 0"},
      {WithSchema(Dict({kMax, 2}, 0, "")), "does not fit in int64"},
      {WithSchema(Dict({}, -1, "")), "number of entries: got -1"},
      {WithSchema(Dict({}, kMax, "")), "key: got 8 bytes, want at most the 0"},
      {WithSchema(Dict({}, 0, "x")), "end: got 1 bytes of the schema"},
      {WithSchema(Dict({}, 0, ""), 1), "and 64 of the columns"},
      {WithSchema(Sizes({1, 1}) + "\1" + Txt("a") + Txt("a") + Num(0)),
       "TensorDict::SetDimNames"},
      {WithSchema(Dict({}, 1, Entry("", 2, Txt("1")))), "empty text"},
      {WithSchema(Dict({}, 1, Entry("a/b", 2, Txt("1")))),
       "key \"a/b\": got several components"},
      {WithSchema(Dict({}, 1, Entry("a\\b", 2, Txt("1")))), "broken escape"},
      {WithSchema(Dict({}, 2, Entry("a", 2, Txt("1")) + Leaf("a", "int8", {}))),
       "key \"a\": got it twice"},
      {WithSchema(Dict({}, 1, Entry("a", 6, ""))),
       "\"a\": kind: got 6, want one in [0, 6)"},
      {WithSchema(Dict({}, 1, Entry("a", 2, Num(kMax)))),
       "\"a\": value: got 9223372036854775807 bytes, want at most the 0"},
      {WithSchema(Dict({}, 1, Leaf("a", "float8", {}))), "\"a\": "},
      {WithSchema(Dict({}, 1, Leaf("a", "int8", {})), 0),
       "\"a\": column int8[] at byte 128: got 64 bytes, want at most the 0"},
      {WithSchema(Dict({}, 1, Leaf("a", "int64", {kMax}))),
       "got more than fit in int64 bytes"},
      {WithSchema(Dict({}, 1, Leaf("a", "int8", {kMax}))),
       "got more than fit in int64 bytes"},
      {WithSchema(Dict({}, 1, Leaf("a", "int64", {0, kMax}))),
       "do not fit in int64"},
      {WithSchema(Dict({3}, 1, Leaf("a", "int8", {2})), 2),
       "\"a\": TensorDict::Set: shape of \"a\": got [2]"},
      {WithSchema(Dict({2}, 1, Entry("d", 1, Dict({3}, 0, "")))),
       "batch shape of \"d\": got [3]"},
      {WithSchema(Dict({2}, 1, Entry("v", 3, Num(0))), 16),
       "\"v\": text of row 0: got number 0, want one in [0, 0)"},
      {WithSchema(Dict({2}, 1, Entry("v", 3, Num(kMax))), 16),
       "\"v\": text: got 8 bytes, want at most the 0"},
      {WithSchema(Dict({kMax}, 1, Entry("v", 3, Num(0))), 16),
       "\"v\": column int64["},
      {WithSchema(Dict({}, 1, Entry("r", 4, Txt("int8") + "\1" + Num(0)))),
       "\"r\": a ragged tensor: got batch shape []"},
      {WithSchema(Dict({1}, 1, Entry("r", 4, Txt("int8") + "\x09" + Num(0)))),
       "\"r\": rank of a row: got 9"},
      {WithSchema(Dict({kMax}, 1, Entry("r", 4, Txt("int8") + "\2" + Num(0)))),
       "\"r\": Shape::Create"},
      // Rows without dimensions have an element each, and take no shapes.
      {WithSchema(
           Dict({int64_t{1} << 59}, 1,
                Entry("r", 4, Txt("int8") + std::string(1, '\0') + Num(1))),
           1),
       "\"r\": RaggedTensor::Create: number of values: got 1"},
      {WithSchema(Dict({1}, 1, Entry("r", 4, Txt("int8") + "\1" + Num(1))), 65),
       "\"r\": RaggedTensor::Create: number of values: got 1, want 0"},
      {WithSchema(Dict({0}, 1, Entry("s", 5, std::string(1, '\0') + Num(0)))),
       "\"s\": LazyStack::Create"},
      {WithSchema(Dict({1}, 1, Entry("s", 5, "\1" + Num(1) + Dict({}, 0, "")))),
       "\"s\": LazyStack::Create"},
      {WithSchema(Dict({}, 1, Entry("d", 1, Dict({}, 1, Entry("e", 9, ""))))),
       "\"d/e\": kind: got 9"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(Decoded(one.bytes), IsDataLoss(one.says));
  }
}

}  // namespace
}  // namespace rill

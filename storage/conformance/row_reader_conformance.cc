// SPDX-License-Identifier: Apache-2.0
// Tests that read rows and change none.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/status_macros.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"
#include "rill/device/uploads/stream_uploads.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/spec.h"
#include "rill/storage/conformance/conformance_rows.h"
#include "rill/storage/conformance/storage_conformance.h"
#include "rill/storage/table_leaf.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/tensor_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_P(RowReaderConformanceTest, SeesEveryWrite) {
  auto subject = Make(8, 2);
  subject->Check("nothing");
  subject->Extend(1, 1, 3);
  subject->Check("a lane");
  subject->ExtendAll(6);
  subject->Check("around the ring");
  subject->WriteAt({0, 5, 0}, {ConformanceLeafNumber("action")});
  subject->Check("in place");
  subject->Clear();
  subject->Check("cleared");
  subject->ExtendAll(1);
  subject->Check("again");
}

TEST_P(RowReaderConformanceTest, ReadTakesSlotsInAnyOrderAndTwice) {
  auto subject = Make(9, 3);
  subject->ExtendAll(5);
  const std::vector<Slot> slots = {8, 0, 4, 4, 2, 8, 8};
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().Read(slots, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(subject->oracle().Rows(slots)));
}

TEST_P(RowReaderConformanceTest, ReadGivesOneContiguousArrayALeaf) {
  auto subject = Make(4);
  subject->ExtendAll(4);
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().Read({3, 1}, &rows));
  rows.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    EXPECT_TRUE(leaf.is_contiguous()) << key;
    EXPECT_EQ(leaf.device(), subject->reader().device()) << key;
  });
}

TEST_P(RowReaderConformanceTest, EnqueuedReadsGiveWhatReadGives) {
  auto subject = Make(9, 3);
  subject->ExtendAll(5);
  const RowReader& reader = subject->reader();
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(reader.device()));
  TensorDict rows;
  for (const std::vector<Slot>& slots :
       std::vector<std::vector<Slot>>{{8, 0, 4, 4}, {2, 8, 8, 1}, {}}) {
    RILL_ASSERT_OK_AND_ASSIGN(const Event event,
                              reader.EnqueueRead(slots, stream, &rows));
    RILL_ASSERT_OK(event.Synchronize());
    RILL_EXPECT_OK(rows.CheckEqual(subject->oracle().Rows(slots)));
  }
  EXPECT_THAT(reader.EnqueueRead({9}, stream, &rows), IsOutOfRange());
}

TEST_P(RowReaderConformanceTest, ReadLeavesGivesJustThose) {
  auto subject = Make(9, 3);
  subject->ExtendAll(5);
  const std::vector<Slot> slots = {8, 0, 4, 4, 2, 8};
  const std::vector<std::vector<std::string>> choices = {
      {"next/observation"}, {"pixels", "action"}, {"nothing"}, {}};
  TensorDict rows;
  for (const std::vector<std::string>& keys : choices) {
    for (int i = 0; i < 2; ++i) {
      RILL_ASSERT_OK(subject->reader().ReadLeaves(slots, keys, &rows));
      EXPECT_EQ(rows.num_leaves(), static_cast<int64_t>(keys.size()));
      EXPECT_EQ(rows.batch_shape(), Shape({6}));
      TensorDict want({6});
      for (const std::string& key : keys) {
        RILL_ASSERT_OK_AND_ASSIGN(const Tensor leaf,
                                  subject->oracle().Rows(slots).Get(key));
        RILL_ASSERT_OK(want.Set(key, leaf));
      }
      RILL_EXPECT_OK(rows.CheckEqual(want));
    }
  }
}

TEST_P(RowReaderConformanceTest, ReadLeavesReusesTensorsThatFit) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const std::vector<std::string> keys = {"next/observation", "action"};
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().ReadLeaves({0, 1, 2}, keys, &rows));
  const std::byte* const data = rows.Find("next/observation")->raw_data();
  RILL_ASSERT_OK(subject->reader().ReadLeaves({5, 4, 0}, keys, &rows));
  EXPECT_EQ(rows.Find("next/observation")->raw_data(), data);
  RILL_ASSERT_OK(subject->reader().Read({5, 4, 0}, &rows));
  RILL_EXPECT_OK(rows.CheckEqual(subject->oracle().Rows({5, 4, 0})));
}

TEST_P(RowReaderConformanceTest, ReadLeavesRefusesKeysThatAreNone) {
  auto subject = Make(4);
  subject->ExtendAll(2);
  TensorDict rows;
  EXPECT_THAT(
      subject->reader().ReadLeaves({0}, {"action", "velocity"}, &rows),
      StatusIs(absl::StatusCode::kNotFound,
               AllOf(HasSubstr("\"velocity\""), HasSubstr("action, "))));
  EXPECT_THAT(subject->reader().ReadLeaves({0}, {"action", "action"}, &rows),
              IsInvalidArgument("\"action\" twice"));
  EXPECT_THAT(subject->reader().ReadLeaves({3}, {"action"}, &rows),
              IsOutOfRange("Storage::ReadLeaves"));
}

TEST_P(RowReaderConformanceTest, ReadReusesTensorsThatFit) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().Read({0, 1, 2}, &rows));
  const Tensor* const kept = rows.Find("next/observation");
  const std::byte* const data = kept->raw_data();
  const std::vector<Slot> slots = {5, 4, 0};
  RILL_ASSERT_OK(subject->reader().Read(slots, &rows));
  EXPECT_EQ(rows.Find("next/observation")->raw_data(), data);
  RILL_EXPECT_OK(rows.CheckEqual(subject->oracle().Rows(slots)));
}

Tensor::Options MemoryOf(Device device) {
  return {device,
          device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice};
}

// Tensors like those of `like`, [lanes, ...], not initialised: each a column of
// one [lanes, time, ...].
TensorDict ColumnsLike(const TensorDict& like, Device device) {
  const Shape batch = {like.batch_shape()[0], 3};
  TensorDict columns(like.batch_shape());
  like.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Tensor all = *Tensor::Empty(
        leaf.dtype(), batch.Concat(leaf.shape().Suffix(1)), MemoryOf(device));
    RILL_EXPECT_OK(columns.Set(key, *all.Select(1, 1)));
  });
  return columns;
}

// The same in frames of one buffer: each a row of all leaves.
TensorDict FramesLike(const TensorDict& like, Device device) {
  const int64_t n = like.batch_shape()[0];
  const auto bytes_of = [n](const Tensor& leaf) {
    return (leaf.size_bytes() / n + 7) / 8 * 8;
  };
  int64_t frame = 0;
  like.ForEachLeaf(
      [&](absl::string_view, const Tensor& leaf) { frame += bytes_of(leaf); });
  const Tensor::Options memory = MemoryOf(device);
  const auto buffer =
      *Buffer::Allocate(n * frame, memory.device, memory.memory_kind);
  TensorDict rows(like.batch_shape());
  int64_t offset = 0;
  like.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    std::vector<int64_t> strides(leaf.strides_bytes().begin(),
                                 leaf.strides_bytes().end());
    strides[0] = frame;
    RILL_EXPECT_OK(rows.Set(key, *Tensor::View(buffer, leaf.dtype(),
                                               leaf.shape(), offset, strides)));
    offset += bytes_of(leaf);
  });
  return rows;
}

TEST_P(RowReaderConformanceTest, ReadWritesRowsAtAnyDistance) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const std::vector<Slot> slots = {5, 4, 0, 4};
  const TensorDict want = subject->oracle().Rows(slots);
  const Device device = subject->reader().device();
  for (const TensorDict& given :
       {ColumnsLike(want, device), FramesLike(want, device)}) {
    TensorDict out = given;
    RILL_ASSERT_OK(subject->reader().Read(slots, &out));
    RILL_EXPECT_OK(out.CheckEqual(want));
    given.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      EXPECT_EQ(out.Find(key)->raw_data(), leaf.raw_data()) << key;
    });
    TensorDict some = *given.Select({"action", "next/observation"});
    RILL_ASSERT_OK(subject->reader().ReadLeaves(
        {1, 2, 3, 0}, {"next/observation", "action"}, &some));
    EXPECT_EQ(some.Find("action")->raw_data(),
              given.Find("action")->raw_data());
    RILL_EXPECT_OK(
        some.CheckEqual(*subject->oracle()
                             .Rows({1, 2, 3, 0})
                             .Select({"action", "next/observation"})));
  }
}

// The leaves of `out`, [n], bound to be written, in the order of the rows'.
absl::StatusOr<BoundRows> BindRows(const TensorDictSpec& spec, Device device,
                                   TensorDict* out) {
  std::vector<BoundRows::Leaf> leaves;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    leaves.push_back(
        {leaf.key, leaf.spec.dtype, leaf.spec.shape, LeafUse::kWrite});
  }
  auto bound = BoundRows::Create("BindRows", std::move(leaves),
                                 {.memory = MemoryOf(device),
                                  .is_passed_in = true,
                                  .allow_strides = true});
  RILL_RETURN_IF_ERROR(bound.status());
  RILL_RETURN_IF_ERROR(bound->Bind(out));
  return bound;
}

std::vector<size_t> AllLeaves(const TensorDictSpec& spec) {
  std::vector<size_t> leaves(spec.leaves().size());
  std::iota(leaves.begin(), leaves.end(), 0);
  return leaves;
}

TEST_P(RowReaderConformanceTest, ReadIntoFillsLeavesThatAreBound) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const RowReader& reader = subject->reader();
  const TensorDictSpec spec = reader.spec();
  const std::vector<Slot> slots = {5, 4, 0, 4};
  const TensorDict want = subject->oracle().Rows(slots);
  for (TensorDict out : {ColumnsLike(want, reader.device()),
                         FramesLike(want, reader.device()), TensorDict({4})}) {
    RILL_ASSERT_OK_AND_ASSIGN(const BoundRows bound,
                              BindRows(spec, reader.device(), &out));
    RILL_ASSERT_OK(reader.ReadInto(slots, AllLeaves(spec), bound.leaves()));
    RILL_EXPECT_OK(out.CheckEqual(want));
    // Some of them, in another order.
    const std::vector<size_t> some = {2, 0};
    const std::vector<Slot> others = {1, 2, 3, 0};
    RILL_ASSERT_OK(reader.ReadInto(others, some, {{bound[2], bound[0]}}));
    TensorDict after = want;
    for (const size_t leaf : some) {
      const std::string& key = spec.leaves()[leaf].key;
      RILL_ASSERT_OK(after.Set(key, *subject->oracle().Rows(others).Get(key)));
    }
    RILL_EXPECT_OK(out.CheckEqual(after));
  }
  RILL_EXPECT_OK(reader.ReadInto(slots, {}, {}));
}

TEST_P(RowReaderConformanceTest, ListsThatAreEnqueuedTogetherAreReadAlone) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const RowReader& reader = subject->reader();
  const TensorDictSpec spec = reader.spec();
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(reader.device()));
  StreamUploads uploads(reader.device());
  RILL_ASSERT_OK(uploads.Begin(stream));
  const std::vector<Slot> slots = {5, 4, 0, 4}, others = {1, 2, 3, 0};
  const std::vector<size_t> all = AllLeaves(spec), some = {2, 0};
  TensorDict first({4}), second({4});
  RILL_ASSERT_OK_AND_ASSIGN(const BoundRows one,
                            BindRows(spec, reader.device(), &first));
  RILL_ASSERT_OK_AND_ASSIGN(const BoundRows two,
                            BindRows(spec, reader.device(), &second));
  const std::vector<BoundLeaf> places = {two[2], two[0]};
  int launches = 0;
  const auto launch = [&] {
    ++launches;
    return absl::OkStatus();
  };
  RILL_ASSERT_OK(reader.EnqueueReadsInto(
      {{slots, all, one.leaves()}, {others, some, places}}, &uploads, launch));
  EXPECT_EQ(launches, 1);
  RILL_ASSERT_OK(stream.Synchronize());
  RILL_EXPECT_OK(first.CheckEqual(subject->oracle().Rows(slots)));
  const TensorDict want = subject->oracle().Rows(others);
  for (const size_t leaf : some) {
    const std::string& key = spec.leaves()[leaf].key;
    RILL_ASSERT_OK_AND_ASSIGN(const Tensor got,
                              second.Get(key)->To(Device::Cpu()));
    TensorDict a({4}), b({4});
    RILL_ASSERT_OK(a.Set(key, got));
    RILL_ASSERT_OK(b.Set(key, *want.Get(key)));
    RILL_EXPECT_OK(a.CheckEqual(b));
  }
  RILL_EXPECT_OK(reader.EnqueueReadsInto({}, &uploads, launch));
  EXPECT_EQ(launches, 2);
  const std::vector<Slot> none = {0, 6, 1, 2};
  EXPECT_THAT(
      reader.EnqueueReadsInto(
          {{slots, all, one.leaves()}, {none, some, places}}, &uploads, launch),
      IsOutOfRange());
  RILL_EXPECT_OK(stream.Synchronize());
  uploads.End(nullptr);
}

// A table is rows where they lie, for kernels that are launched in its turn.
TEST_P(RowReaderConformanceTest, TablesHoldTheRowsOfTheirSlots) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const RowReader& reader = subject->reader();
  if (!reader.traits().shows_tables) GTEST_SKIP() << "it shows no tables";
  RILL_ASSERT_OK_AND_ASSIGN(const Stream stream,
                            Stream::Create(reader.device()));
  StreamUploads uploads(reader.device());
  RILL_ASSERT_OK(uploads.Begin(stream));
  const std::vector<Slot> slots = {5, 4, 0, 4};
  const TensorDict want = subject->oracle().Rows(slots);
  const TensorDictSpec spec = reader.spec();
  const auto& leaves = spec.leaves();
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    TableLeaf table;
    int launches = 0;
    RILL_ASSERT_OK(
        reader.EnqueueReadsInto({{.slots = slots,
                                  .leaves = absl::MakeConstSpan(&leaf, 1),
                                  .table = &table}},
                                &uploads, [&] {
                                  ++launches;
                                  return absl::OkStatus();
                                }));
    EXPECT_EQ(launches, 1);
    RILL_ASSERT_OK(stream.Synchronize());
    ASSERT_EQ(table.count, 4);
    std::vector<int64_t> rows(4);
    RILL_ASSERT_OK(CopyAsync(rows.data(), table.rows,
                             std::ssize(rows) * int64_t{sizeof(int64_t)},
                             stream));
    RILL_ASSERT_OK(stream.Synchronize());
    const std::string& key = leaves[leaf].key;
    for (size_t i = 0; i < slots.size(); ++i) {
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor row, table.table.Index(rows[i]));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor got, row.To(Device::Cpu()));
      RILL_ASSERT_OK_AND_ASSIGN(const Tensor expected,
                                want.Find(key)->Index(static_cast<int64_t>(i)));
      EXPECT_THAT(got, BitEqualTo(expected)) << key << " " << i;
    }
  }
  // An error of the launch is the call's.
  TableLeaf table;
  const size_t first = 0;
  EXPECT_THAT(reader.EnqueueReadsInto(
                  {{.slots = slots,
                    .leaves = absl::MakeConstSpan(&first, 1),
                    .table = &table}},
                  &uploads, [] { return absl::UnavailableError("no"); }),
              IsUnavailable());
  RILL_EXPECT_OK(stream.Synchronize());
  uploads.End(nullptr);
}

TEST_P(RowReaderConformanceTest, ReadIntoRefusesLeavesThatDoNotFit) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const RowReader& reader = subject->reader();
  const TensorDictSpec spec = reader.spec();
  TensorDict out({2});
  RILL_ASSERT_OK_AND_ASSIGN(const BoundRows bound,
                            BindRows(spec, reader.device(), &out));
  const std::string& first = spec.leaves()[0].key;
  const auto refuses = [&](std::vector<Slot> slots, std::vector<size_t> leaves,
                           std::vector<BoundLeaf> places,
                           const std::string& text) {
    EXPECT_THAT(reader.ReadInto(slots, leaves, places),
                IsInvalidArgument(text));
  };
  BoundLeaf leaf = bound[0];
  refuses({0, 1}, {0, 1}, {leaf}, "got 1, want one for each of 2 leaves");
  refuses({0, 1}, {99}, {leaf}, "number 99");
  refuses({0, 1, 2}, {0}, {leaf}, "\"" + first + "\": got 2 writable rows");
  leaf.is_writable = false;
  refuses({0, 1}, {0}, {leaf}, "read-only");
  leaf = bound[0];
  leaf.dtype = DType::kUInt16;
  refuses({0, 1}, {0}, {leaf}, "uint16");
  leaf = bound[0];
  leaf.width += 1;
  refuses({0, 1}, {0}, {leaf}, "bytes");
  leaf = bound[0];
  leaf.device = Device::Fake(7);
  refuses({0, 1}, {0}, {leaf}, "fake:7");
  leaf = bound[0];
  leaf.is_flat = false;
  leaf.strides[1] = 8;
  refuses({0, 1}, {0}, {leaf}, "in two dimensions");
  EXPECT_THAT(reader.ReadInto({0, 6}, {0}, {bound[0]}), IsOutOfRange());
}

TEST_P(RowReaderConformanceTest, ShownRowsAreThoseThatAreRead) {
  auto subject = Make(24, 2);
  subject->ExtendAll(15);
  const RowReader& reader = subject->reader();
  const std::vector<Slot> slots = SlotsFrom(0, 24);
  const TensorDict want = subject->oracle().Rows(slots);
  const TensorDictSpec rows_spec = reader.spec();
  const auto& leaves = rows_spec.leaves();
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const Tensor& rows = *want.Find(leaves[leaf].key);
    const auto width = static_cast<size_t>(rows.size_bytes()) / slots.size();
    size_t next = 0;
    const auto show = [&](size_t i, const std::byte* row) {
      EXPECT_EQ(i, next++);
      EXPECT_EQ(std::memcmp(row, rows.raw_data() + i * width, width), 0)
          << leaves[leaf].key;
      return absl::OkStatus();
    };
    RILL_ASSERT_OK_AND_ASSIGN(const bool is_shown,
                              reader.ShowRows(slots, leaf, show));
    EXPECT_EQ(next, is_shown ? slots.size() : 0);
    EXPECT_THAT(reader.ShowRows({}, leaf, show), IsOkAndHolds(is_shown));
    if (!is_shown) continue;
    EXPECT_THAT(reader.ShowRows({0, 24}, leaf, show).status(), IsOutOfRange());
    int calls = 0;
    EXPECT_THAT(reader
                    .ShowRows(slots, leaf,
                              [&](size_t, const std::byte*) {
                                ++calls;
                                return absl::AbortedError("enough");
                              })
                    .status(),
                StatusIs(absl::StatusCode::kAborted, "enough"));
    EXPECT_EQ(calls, 1);
  }
}

TEST_P(RowReaderConformanceTest, ReadReplacesTensorsWhoseRowsOverlap) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const std::vector<Slot> slots = {5, 4, 0};
  const TensorDict want = subject->oracle().Rows(slots);
  const Tensor& like = *want.Find("next/observation");
  for (const bool of_one_leaf : {true, false}) {
    TensorDict out = FramesLike(want, subject->reader().device());
    const Tensor& first = *out.Find("next/observation");
    std::vector<int64_t> strides(first.strides_bytes().begin(),
                                 first.strides_bytes().end());
    if (of_one_leaf) {
      strides[0] = 0;  // All rows in one place.
      RILL_ASSERT_OK_AND_ASSIGN(
          const Tensor all,
          Tensor::View(first.buffer(), like.dtype(), like.shape(), 0, strides));
      RILL_ASSERT_OK(out.Set("next/observation", all));
    } else {
      RILL_ASSERT_OK(out.Set("observation", first));
    }
    RILL_ASSERT_OK(subject->reader().Read(slots, &out));
    RILL_EXPECT_OK(out.CheckEqual(want));
  }
  // Without gaps, in one buffer and in two over the same bytes.
  TensorDict out;
  RILL_ASSERT_OK(subject->reader().Read(slots, &out));
  RILL_ASSERT_OK(out.Set("observation", *out.Find("next/observation")));
  RILL_ASSERT_OK(subject->reader().Read(slots, &out));
  RILL_EXPECT_OK(out.CheckEqual(want));
  const Tensor& lent = *out.Find("next/observation");
  const auto again =
      Buffer::Wrap(lent.raw_data(), lent.size_bytes(), lent.device(),
                   lent.buffer()->memory_kind(), lent.buffer());
  RILL_ASSERT_OK_AND_ASSIGN(
      const Tensor twin,
      Tensor::View(again, lent.dtype(), lent.shape(), 0, lent.strides_bytes()));
  RILL_ASSERT_OK(out.Set("observation", twin));
  RILL_ASSERT_OK(subject->reader().Read(slots, &out));
  RILL_EXPECT_OK(out.CheckEqual(want));
}

TEST_P(RowReaderConformanceTest, ReadMakesTensorsThatDoNotFitAnew) {
  auto subject = Make(6, 2);
  subject->ExtendAll(3);
  const std::vector<Slot> slots = {1, 2};
  const TensorDict want = subject->oracle().Rows(slots);
  std::vector<TensorDict> outs(5);
  outs[1] = subject->oracle().Rows({0});  // Another number of rows.
  outs[2] = subject->oracle().Rows({0, 1});
  RILL_ASSERT_OK(outs[2].Delete("action"));
  outs[3] = subject->oracle().Rows({0, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor extra,
                            Tensor::Zeros(DType::kFloat32, {2}));
  RILL_ASSERT_OK(outs[3].Set("next/extra", extra));
  outs[4] = subject->oracle().Rows({0, 1});
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wrong,
                            Tensor::Zeros(DType::kFloat64, {2, 3}));
  RILL_ASSERT_OK(outs[4].Set("observation", wrong));
  for (TensorDict& out : outs) {
    RILL_ASSERT_OK(subject->reader().Read(slots, &out));
    RILL_EXPECT_OK(out.CheckEqual(want));
  }
}

TEST_P(RowReaderConformanceTest, ReadOfNoSlotsGivesNoRows) {
  auto subject = Make(4);
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().Read({}, &rows));
  EXPECT_EQ(rows.batch_shape(), Shape({0}));
  subject->ExtendAll(1);
  RILL_ASSERT_OK(subject->reader().Read({}, &rows));
  EXPECT_EQ(rows.num_leaves(),
            static_cast<int64_t>(ConformanceSpec().leaves().size()));
}

TEST_P(RowReaderConformanceTest, RowsThatWereReadDoNotChange) {
  auto subject = Make(4);
  subject->ExtendAll(4);
  TensorDict rows;
  RILL_ASSERT_OK(subject->reader().Read({0, 1}, &rows));
  const TensorDict before = subject->oracle().Rows({0, 1});
  subject->ExtendAll(4);
  RILL_EXPECT_OK(rows.CheckEqual(before));
}

TEST_P(RowReaderConformanceTest, LeasesStayInOneLaneAndAmongLiveRows) {
  auto subject = Make(10, 2);
  subject->Extend(0, 1, 5);
  subject->Extend(1, 1, 3);
  const RowReader& reader = subject->reader();
  EXPECT_THAT(reader.Lease({4, 2}), IsOutOfRange("one lane"));
  for (const SlotRange range :
       {SlotRange{7, 2}, SlotRange{-1, 2}, SlotRange{9, 2}, SlotRange{0, -1},
        SlotRange{5, INT64_MAX}, SlotRange{INT64_MAX, 1}}) {
    EXPECT_THAT(reader.Lease(range), IsOutOfRange()) << range.first;
  }
}

TEST_P(RowReaderConformanceTest, DeadSlotsAreOutOfRangeAndOutIsUntouched) {
  auto subject = Make(8, 2);
  const TensorDict before = ConformanceRows({2}, {1000, 1000});
  TensorDict out = before;
  EXPECT_THAT(subject->reader().Read({0}, &out),
              IsOutOfRange("no row is stored"));
  subject->ExtendAll(3);
  for (const Slot slot : {Slot{-1}, Slot{3}, Slot{7}, Slot{8}, INT64_MIN}) {
    EXPECT_THAT(subject->reader().Read({0, slot}, &out),
                IsOutOfRange(std::to_string(slot)));
  }
  RILL_EXPECT_OK(out.CheckEqual(before));
  EXPECT_THAT(subject->reader().Read({0}, nullptr), IsInvalidArgument());
}

}  // namespace
}  // namespace rill

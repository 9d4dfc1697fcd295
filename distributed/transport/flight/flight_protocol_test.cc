// SPDX-License-Identifier: Apache-2.0
// The engine against programs that speak Flight without Rill, some of them
// wrongly.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "arrow/array/array_primitive.h"
#include "arrow/buffer.h"
#include "arrow/flight/client.h"
#include "arrow/flight/server.h"
#include "arrow/record_batch.h"
#include "arrow/status.h"
#include "arrow/type.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/flight/flight_transport.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

namespace flight = ::arrow::flight;

using ::testing::HasSubstr;

absl::Time Soon() { return Clock::System().Now() + absl::Minutes(1); }

std::shared_ptr<arrow::RecordBatch> Numbers(std::vector<int64_t> numbers) {
  const auto rows = static_cast<int64_t>(numbers.size());
  auto column = std::make_shared<arrow::Int64Array>(
      rows, arrow::Buffer::FromVector(std::move(numbers)));
  return arrow::RecordBatch::Make(
      arrow::schema({arrow::field("x", arrow::int64())}), rows,
      std::vector<std::shared_ptr<arrow::Array>>{column});
}

std::shared_ptr<arrow::Buffer> Text(std::string text) {
  return arrow::Buffer::FromString(std::move(text));
}

// A plain client of one of Rill's servers.
class PlainClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RILL_ASSERT_OK_AND_ASSIGN(transport_, FlightTransport::Create());
    RILL_ASSERT_OK_AND_ASSIGN(
        server_, transport_->Listen("", std::make_shared<HeldService>()));
    client_ = *flight::FlightClient::Connect(
        *flight::Location::Parse(server_->address()));
    Exchange(flight::FlightDescriptor::Path({"echo"}));
  }
  void TearDown() override {
    if (exchange_.writer != nullptr) (void)exchange_.writer->Close();
  }

  void Exchange(const flight::FlightDescriptor& descriptor) {
    if (exchange_.writer != nullptr) (void)exchange_.writer->Close();
    exchange_ = *client_->DoExchange({}, descriptor);
  }
  // The metadata of the next reply; the error where there is none.
  std::string Read() {
    chunk_ = {};
    const auto chunk = exchange_.reader->Next();
    if (!chunk.ok()) return chunk.status().ToString();
    chunk_ = *chunk;
    return chunk_.app_metadata == nullptr ? "end"
                                          : chunk_.app_metadata->ToString();
  }

  std::unique_ptr<FlightTransport> transport_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<flight::FlightClient> client_;
  flight::FlightClient::DoExchangeResult exchange_;
  flight::FlightStreamChunk chunk_;
};

TEST_F(PlainClientTest, SendsAndReceivesColumnsAndValues) {
  const auto batch = Numbers({1, 2, 3});
  ASSERT_TRUE(exchange_.writer->Begin(batch->schema()).ok());
  ASSERT_TRUE(exchange_.writer
                  ->WriteWithMetadata(
                      *batch, Text(R"({"values":{"n":1},"timeout_s":60})"))
                  .ok());
  EXPECT_EQ(Read(), R"({"values":{"n":1},"batch_shape":[3]})");
  ASSERT_NE(chunk_.data, nullptr);
  EXPECT_TRUE(chunk_.data->GetColumnByName("x")->Equals(batch->column(0)));
  ASSERT_TRUE(exchange_.writer->WriteMetadata(Text("{}")).ok());
  EXPECT_EQ(Read(), R"({"values":{}})");
  EXPECT_EQ(chunk_.data, nullptr);
}

TEST_F(PlainClientTest, ErrorsAreRepliesAndTheStreamGoesOn) {
  for (const char* text :
       {"{", "[]", R"({"values":1})", R"({"batch_shape":[-1]})", "{}\nno batch",
        R"({"error":{"code":"NOT_FOUND","message":""}})"}) {
    ASSERT_TRUE(exchange_.writer->WriteMetadata(Text(text)).ok());
    EXPECT_THAT(Read(), HasSubstr(R"({"error":{"code":"INVALID_ARGUMENT")"))
        << text;
  }
  const auto batch = Numbers({1, 2, 3});
  ASSERT_TRUE(exchange_.writer->Begin(batch->schema()).ok());
  for (const char* text :
       {R"({"batch_shape":[4]})", R"({"dim_names":["a","b"]})"}) {
    ASSERT_TRUE(exchange_.writer->WriteWithMetadata(*batch, Text(text)).ok());
    EXPECT_THAT(Read(), HasSubstr(R"({"error":{"code":"INVALID_ARGUMENT")"))
        << text;
  }
  ASSERT_TRUE(exchange_.writer->WriteRecordBatch(*batch).ok());
  EXPECT_THAT(Read(), HasSubstr("no metadata"));
  ASSERT_TRUE(exchange_.writer->WriteMetadata(Text("{}")).ok());
  EXPECT_EQ(Read(), R"({"values":{}})");
}

// Replies that are longer than what is on the way of a client that does not
// read.
class LongReplyService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo&, const Message&) override {
    absl::MutexLock lock(&mu_);
    ++calls_;
    Message reply;
    RILL_ASSIGN_OR_RETURN(Tensor leaf,
                          Tensor::Zeros(DType::kUInt8, {64 << 20}));
    RILL_RETURN_IF_ERROR(reply.batch.Set("x", std::move(leaf)));
    return reply;
  }
  // False after a minute.
  bool AwaitCalls(int64_t count) {
    absl::MutexLock lock(&mu_);
    const auto are_there = [&] {
      mu_.AssertReaderHeld();
      return calls_ >= count;
    };
    return mu_.AwaitWithTimeout(absl::Condition(&are_there), absl::Minutes(1));
  }

 private:
  absl::Mutex mu_;
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
};

class LongReplyTest : public PlainClientTest {
 protected:
  // Asks for three, and reads none.
  void SetUp() override {
    PlainClientTest::SetUp();
    RILL_ASSERT_OK_AND_ASSIGN(server_, transport_->Listen("", service_));
    client_ = *flight::FlightClient::Connect(
        *flight::Location::Parse(server_->address()));
    Exchange(flight::FlightDescriptor::Path({"long"}));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(exchange_.writer->WriteMetadata(Text("{}")).ok());
    }
  }

  const std::shared_ptr<LongReplyService> service_ =
      std::make_shared<LongReplyService>();
};

TEST_F(LongReplyTest, TheNextCallDoesNotWaitUntilItIsRead) {
  EXPECT_TRUE(service_->AwaitCalls(2));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Read(), R"({"values":{},"batch_shape":[]})");
    ASSERT_NE(chunk_.data, nullptr);
  }
}

TEST_F(LongReplyTest, AClientThatLeavesInOneEndsTheStream) {
  ASSERT_TRUE(service_->AwaitCalls(2));
  exchange_.reader->Cancel();
  RILL_EXPECT_OK(server_->Shutdown(Soon()));
}

TEST_F(PlainClientTest, ADescriptorThatIsNoMethodEndsTheStream) {
  Exchange(flight::FlightDescriptor::Command("echo"));
  EXPECT_THAT(Read(), HasSubstr("want a path of one part"));
  Exchange(flight::FlightDescriptor::Path({"a", "b"}));
  EXPECT_THAT(Read(), HasSubstr("want a path of one part"));
}

// A server that answers all requests with the same text and no batch.
class PlainServer final : public flight::FlightServerBase {
 public:
  explicit PlainServer(std::string text) : text_(std::move(text)) {}

  arrow::Status ListActions(const flight::ServerCallContext&,
                            std::vector<flight::ActionType>*) override {
    return arrow::Status::OK();
  }
  arrow::Status DoExchange(
      const flight::ServerCallContext&,
      std::unique_ptr<flight::FlightMessageReader> reader,
      std::unique_ptr<flight::FlightMessageWriter> writer) override {
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(const auto chunk, reader->Next());
      if (chunk.app_metadata == nullptr) return arrow::Status::OK();
      if (text_ == "leave") return arrow::Status::OK();
      ARROW_RETURN_NOT_OK(writer->WriteMetadata(Text(text_)));
      if (text_ == "{}") ARROW_RETURN_NOT_OK(writer->WriteMetadata(Text("{}")));
    }
  }

 private:
  const std::string text_;
};

class PlainServerTest : public ::testing::Test {
 protected:
  void Start(const char* text) {
    server_ = std::make_unique<PlainServer>(text);
    ASSERT_TRUE(server_
                    ->Init(flight::FlightServerOptions(
                        *flight::Location::ForGrpcTcp("127.0.0.1", 0)))
                    .ok());
    RILL_ASSERT_OK_AND_ASSIGN(transport_, FlightTransport::Create());
    RILL_ASSERT_OK_AND_ASSIGN(
        const auto connection,
        transport_->Connect(
            "grpc://127.0.0.1:" + std::to_string(server_->port()), Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(stream_, connection->Open("any", {}, Soon()));
  }
  void TearDown() override {
    stream_ = nullptr;
    if (server_ != nullptr) {
      EXPECT_TRUE(server_->Shutdown().ok());
      EXPECT_TRUE(server_->Wait().ok());
    }
  }

  std::unique_ptr<PlainServer> server_;
  std::unique_ptr<FlightTransport> transport_;
  std::unique_ptr<CallStream> stream_;
};

TEST_F(PlainServerTest, AReplyThatCannotBeReadIsAnErrorOfItsOwn) {
  Start("no JSON");
  for (int i = 0; i < 2; ++i) {
    RILL_ASSERT_OK(stream_->Send({}, Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream_->Receive(Soon()));
    EXPECT_THAT(reply.status, StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST_F(PlainServerTest, RepliesThatNobodyAskedForAreDropped) {
  Start("{}");
  RILL_ASSERT_OK(stream_->Send({}, Soon()));
  RILL_EXPECT_OK(stream_->Receive(Soon()).status());
  EXPECT_THAT(stream_->Receive(Soon()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(PlainServerTest, AServerThatEndsTheStreamIsUnavailable) {
  Start("leave");
  RILL_ASSERT_OK(stream_->Send({}, Soon()));
  EXPECT_THAT(stream_->Receive(Soon()),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("grpc://")));
  EXPECT_THAT(stream_->Send({}, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace rill

// SPDX-License-Identifier: Apache-2.0
#include "rill/distributed/transport/flight/flight_transport.h"

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/clock.h"
#include "rill/base/file.h"
#include "rill/base/process/child_process.h"
#include "rill/base/status_macros.h"
#include "rill/distributed/transport/call_stream.h"
#include "rill/distributed/transport/conformance/held_server.h"
#include "rill/distributed/transport/conformance/held_service.h"
#include "rill/distributed/transport/conformance/transport_conformance.h"
#include "rill/distributed/transport/message.h"
#include "rill/distributed/transport/transport.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SizeService final : public Service {
 public:
  absl::StatusOr<Message> Call(const CallInfo& /*info*/,
                               const Message& /*request*/) override {
    Message reply;
    reply.values.Set("size", int64_t{3});
    return reply;
  }
};

TransportSubject MakeFlight() {
  // Port 1 is nobody's.
  return {.transport = *FlightTransport::Create(),
          .address = "",
          .free_address = "grpc://127.0.0.1:1"};
}
INSTANTIATE_TEST_SUITE_P(Flight, TransportConformanceTest,
                         ::testing::Values(MakeFlight));

TransportSubject MakeFlightWithToken() {
  TransportSubject subject = MakeFlight();
  subject.transport = *FlightTransport::Create({.token = "~secret!"});
  return subject;
}
INSTANTIATE_TEST_SUITE_P(FlightWithToken, TransportConformanceTest,
                         ::testing::Values(MakeFlightWithToken));

TEST(FlightTransportTest, Example) {
  const auto service = std::make_shared<SizeService>();
  const absl::Time deadline = Soon();
  RILL_ASSERT_OK_AND_ASSIGN(auto transport, FlightTransport::Create());
  RILL_ASSERT_OK_AND_ASSIGN(auto server, transport->Listen("", service));
  RILL_ASSERT_OK_AND_ASSIGN(auto connection,
                            transport->Connect(server->address(), deadline));
  RILL_ASSERT_OK_AND_ASSIGN(Message reply,
                            connection->Call("size", {}, deadline));
  EXPECT_THAT(reply.values.Get<int64_t>("size"), IsOkAndHolds(3));
  EXPECT_THAT(server->address(), StartsWith("grpc://127.0.0.1:"));
}

TEST(FlightTransportTest, BatchesOfOtherColumnsFollowOneAnother) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto transport, FlightTransport::Create());
  const HeldServer held(*transport);
  const auto stream = held.Open("echo");
  for (int64_t i = 0; i < 12; ++i) {
    TensorDict batch({2});
    if (i % 4 != 0) {
      RILL_ASSERT_OK(batch.SetDimNames({"rows"}));
      RILL_ASSERT_OK_AND_ASSIGN(
          const Tensor leaf,
          Tensor::Zeros(DType::kBool, {2, 1 + i % 3, i % 4}));
      RILL_ASSERT_OK(batch.Set(absl::StrCat("in/", i % 2), leaf));
    }
    Message request = {.batch = batch};
    request.values.Set("number", i);
    RILL_ASSERT_OK(stream->Send(request, Soon()));
    RILL_ASSERT_OK_AND_ASSIGN(const Reply reply, stream->Receive(Soon()));
    RILL_ASSERT_OK(reply.status);
    RILL_EXPECT_OK(reply.message.batch.CheckEqual(batch));
    EXPECT_EQ(reply.message.batch.dim_names(), batch.dim_names());
    EXPECT_THAT(reply.message.values.Get<int64_t>("number"), IsOkAndHolds(i));
  }
}

TEST(FlightTransportTest, WhatArrivesMayBeWrittenTo) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto transport, FlightTransport::Create());
  const HeldServer held(*transport);
  TensorDict batch({2});
  RILL_ASSERT_OK(batch.Set("x", *Tensor::Zeros(DType::kInt64, {2, 3})));
  RILL_ASSERT_OK_AND_ASSIGN(
      const Message reply,
      held.connection->Call("echo", {.batch = batch}, Soon()));
  const Tensor& leaf = *reply.batch.Find("x");
  ASSERT_TRUE(leaf.is_writable());
  leaf.data<int64_t>()[5] = 7;
  EXPECT_EQ(batch.Find("x")->data<int64_t>()[5], 0);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
TEST(FlightTransportTest, MallocMapsNoBlocksOfAMessagesSize) {
  RILL_ASSERT_OK(FlightTransport::Create().status());
  const size_t mapped = mallinfo2().hblks;
  void* const volatile block = std::malloc(16 << 20);
  EXPECT_EQ(mallinfo2().hblks, mapped);
  std::free(block);
}
#endif

TEST(FlightTransportTest, MessagesThatArrowCannotCarryAreRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto transport, FlightTransport::Create());
  const HeldServer held(*transport);
  const auto stream = held.Open("echo", /*window=*/1);
  TensorDict batch({1});
  RILL_ASSERT_OK(batch.Set("a\xff", *Tensor::Zeros(DType::kInt8, {1})));
  EXPECT_THAT(stream->Send({.batch = batch}, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  // 3 GB of one element.
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor one, Tensor::Zeros(DType::kInt8, {1}));
  RILL_ASSERT_OK_AND_ASSIGN(const Tensor wide, one.Expand({3'000'000'000}));
  TensorDict large({3'000'000'000});
  RILL_ASSERT_OK(large.Set("x", wide));
  EXPECT_THAT(stream->Send({.batch = large}, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes")));
  RILL_ASSERT_OK(stream->Send({}, Soon()));
  RILL_EXPECT_OK(stream->Receive(Soon()).status());
}

TEST(FlightTransportTest, AddressesAreChecked) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto transport, FlightTransport::Create());
  for (const char* address :
       {"here", "grpc://", "grpc://127.0.0.1", "grpc://127.0.0.1:x",
        "grpc://127.0.0.1:65536", "grpc://127.0.0.1:-1", "http://h:80"}) {
    EXPECT_THAT(
        transport->Listen(address, std::make_shared<HeldService>()),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(address)));
    EXPECT_THAT(transport->Connect(address, Soon()),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(
      transport->Listen("grpc+tls://:0", std::make_shared<HeldService>()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("certificate")));
}

TEST(FlightTransportTest, WhyNobodyCanListenIsSaid) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto transport, FlightTransport::Create());
  const auto service = std::make_shared<HeldService>();
  RILL_ASSERT_OK_AND_ASSIGN(const auto server, transport->Listen("", service));
  EXPECT_THAT(
      transport->Listen(server->address(), service),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr(server->address()), HasSubstr("in use"))));
  EXPECT_THAT(transport->Listen("grpc://198.51.100.1:0", service),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("grpc://198.51.100.1:0")));
  EXPECT_THAT(transport->Listen("grpc://no.such.host.invalid:0", service),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("host")));
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto with_tls,
      FlightTransport::Create({.tls_certificate = "a", .tls_key = "b"}));
  EXPECT_THAT(
      with_tls->Listen("grpc+tls://:0", service),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tls_key")));
}

TEST(FlightTransportTest, OptionsAreChecked) {
  for (const char* token : {"a b", "a\n", "\xc3\xa4"}) {
    EXPECT_THAT(FlightTransport::Create({.token = token}),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(FlightTransport::Create({.tls_key = "x"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(
      FlightTransport::Create({.silence_timeout = absl::Microseconds(999)}),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FlightTransportTest, ATokenThatIsMissingOrWrongIsRefused) {
  RILL_ASSERT_OK_AND_ASSIGN(const auto right,
                            FlightTransport::Create({.token = "right"}));
  const HeldServer held(*right);
  const std::string address = held.server->address();
  for (const char* token : {"", "wrong", "righ", "rightt", "righu"}) {
    RILL_ASSERT_OK_AND_ASSIGN(const auto other,
                              FlightTransport::Create({.token = token}));
    EXPECT_THAT(
        other->Connect(address, Soon()),
        StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr(address)))
        << token;
  }
  EXPECT_EQ(held.service->begun(), 0);
}

struct Certificate {
  std::string pem, key;
};
absl::StatusOr<Certificate> MakeCertificate() {
  const std::string folder = ::testing::TempDir();
  const std::string key = absl::StrCat(folder, "/key.pem");
  const std::string pem = absl::StrCat(folder, "/certificate.pem");
  RILL_ASSIGN_OR_RETURN(
      const auto openssl,
      ChildProcess::Start(
          {.program = "openssl",
           .arguments = {"req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                         key, "-out", pem, "-days", "2", "-subj",
                         "/CN=localhost", "-addext",
                         "subjectAltName=IP:127.0.0.1"}}));
  openssl->WaitForEnd(absl::InfiniteFuture());
  if (const std::string end = openssl->Kill();
      end != "ended with exit status 0") {
    return absl::NotFoundError(end);
  }
  Certificate certificate;
  RILL_ASSIGN_OR_RETURN(certificate.pem, ReadFile(pem));
  RILL_ASSIGN_OR_RETURN(certificate.key, ReadFile(key));
  return certificate;
}

TEST(FlightTransportTest, TlsWithACertificateThatIsTrusted) {
  const auto certificate = MakeCertificate();
  if (!certificate.ok()) {
    GTEST_SKIP() << "openssl: " << certificate.status();
  }
  RILL_ASSERT_OK_AND_ASSIGN(
      const auto transport,
      FlightTransport::Create({.token = "token",
                               .tls_certificate = certificate->pem,
                               .tls_key = certificate->key,
                               .tls_roots = certificate->pem}));
  EXPECT_THAT(transport->Listen("", std::make_shared<HeldService>()),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const HeldServer held(*transport, "grpc+tls://:0");
  const std::string address = held.server->address();
  EXPECT_THAT(address, StartsWith("grpc+tls://127.0.0.1:"));
  RILL_EXPECT_OK(held.connection->Call("echo", {}, Soon()).status());
  // Nobody trusts it without the root.
  RILL_ASSERT_OK_AND_ASSIGN(const auto stranger,
                            FlightTransport::Create({.token = "token"}));
  EXPECT_THAT(stranger->Connect(address, Soon()),
              StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace rill

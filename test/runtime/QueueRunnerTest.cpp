#include "SessionTest.h"
#include "proto/queue_runner.pb.h"
#include "runtime/session/QueueRunner.h"

#include <algorithm>

namespace lathe {
namespace {

/// Queue q of four fed from src, which holds 0 ... count - 1, by put0 and put1.
class QueueRunners : public testing::Test {
protected:
  void create(int count, bool closeSource) {
    GraphBuilder b;
    b.add("q", "FIFOQueueV2", {}, DType::String, "").types("component_types", {DType::String}).set("capacity", int64_t(4));
    b.add("src", "FIFOQueueV2", {}, DType::String, "").types("component_types", {DType::String});
    b.placeholder("x").add("fill", "QueueEnqueueManyV2", {"src", "x"}, DType::String, "").types("Tcomponents", {DType::String});
    b.add("end", "QueueCloseV2", {"src"}, DType::String, "");
    for (std::string i : {"0", "1"}) {
      b.add("from" + i, "QueueDequeueV2", {"src"}, DType::String, "").types("component_types", {DType::String});
      b.add("put" + i, "QueueEnqueueV2", {"q", "from" + i}, DType::String, "").types("Tcomponents", {DType::String});
    }
    b.add("take", "QueueDequeueV2", {"q"}, DType::String, "").types("component_types", {DType::String});
    b.add("close", "QueueCloseV2", {"q"}, DType::String, "");
    b.add("cancel", "QueueCloseV2", {"q"}, DType::String, "").flag("cancel_pending_enqueues", true);
    ASSERT_TRUE(session.Create(b.graph).ok());
    std::vector<std::string> values;
    for (int i = 0; i < count; ++i)
      values.push_back(std::to_string(i));
    ASSERT_TRUE(session.Run({{"x:0", Tensor::fromStrings({count}, values)}}, {}, {"fill"}, nullptr).ok());
    if (closeSource) {
      ASSERT_TRUE(session.Run({}, {}, {"end"}, nullptr).ok());
    }
  }
  QueueRunnerDef def() {
    QueueRunnerDef d;
    d.queueName = "q";
    d.enqueueOps = {"put0", "put1"};
    d.closeOp = "close";
    d.cancelOp = "cancel";
    return d;
  }
  absl::Status take(std::string *value) {
    std::vector<Tensor> out;
    absl::Status ran = session.Run({}, {"take:0"}, {}, &out);
    if (ran.ok())
      *value = textOf(out[0]);
    return ran;
  }
  Session session;
};

TEST_F(QueueRunners, FillUntilTheInputEnds) {
  create(50, true);
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners({def()}, &session, &coordinator).ok());
  std::vector<std::string> seen;
  std::string value;
  absl::Status ran;
  while ((ran = take(&value)).ok())
    seen.push_back(value);
  EXPECT_EQ(ran.code(), absl::StatusCode::kOutOfRange) << ran;
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen.size(), 50u);
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_FALSE(coordinator.ShouldStop());
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok()) << coordinator.GetStatus();
  EXPECT_TRUE(coordinator.AllRunnersStopped());
}

TEST_F(QueueRunners, AStopWakesThreadsThatWaitForRoom) {
  create(50, true);
  Coordinator coordinator;
  EXPECT_EQ(coordinator.Join().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(StartQueueRunners({def()}, &session, &coordinator).ok());
  std::string value;
  ASSERT_TRUE(take(&value).ok());
  EXPECT_FALSE(coordinator.AllRunnersStopped());
  coordinator.RequestStop();
  coordinator.WaitForStop();
  EXPECT_TRUE(coordinator.Join().ok()) << coordinator.GetStatus();
  // none starts after a stop
  EXPECT_EQ(StartQueueRunners({def()}, &session, &coordinator).code(), absl::StatusCode::kCancelled);
}

TEST_F(QueueRunners, AnErrorStopsTheOthers) {
  create(3, false); // put0 waits for more input until the session closes
  Coordinator coordinator;
  QueueRunnerDef broken = def();
  broken.enqueueOps = {"none"};
  ASSERT_TRUE(StartQueueRunners({broken}, &session, &coordinator).ok());
  coordinator.WaitForStop();
  absl::Status joined = coordinator.Join();
  EXPECT_FALSE(joined.ok());
  EXPECT_NE(joined.message().find("none"), std::string::npos) << joined;
}

TEST_F(QueueRunners, WithoutACoordinator) {
  create(6, true);
  std::unique_ptr<QueueRunner> runner;
  EXPECT_EQ(QueueRunner::New({}, nullptr, &runner).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(QueueRunner::New(def(), nullptr, &runner).ok());
  ASSERT_TRUE(runner->Start(&session).ok());
  EXPECT_EQ(runner->Start(&session).code(), absl::StatusCode::kFailedPrecondition);
  std::string value;
  for (int i = 0; i < 6; ++i)
    EXPECT_TRUE(take(&value).ok());
  EXPECT_EQ(take(&value).code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(runner->Join().ok()) << runner->GetStatus();
  EXPECT_FALSE(runner->IsRunning());
}

TEST(QueueRunnerDefs, Parse) {
  tf::QueueRunnerDef message;
  message.set_queue_name("q");
  message.add_enqueue_op_name("a");
  message.add_enqueue_op_name("b");
  message.set_cancel_op_name("c");
  auto plain = ParseQueueRunnerDef(message.SerializeAsString());
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->enqueueOps, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(plain->closeOp, "");
  EXPECT_EQ(plain->cancelOp, "c");
  EXPECT_EQ(plain->queueClosedErrors, std::vector<absl::StatusCode>{absl::StatusCode::kOutOfRange});
  message.add_queue_closed_exception_types(1);
  EXPECT_EQ(ParseQueueRunnerDef(message.SerializeAsString())->queueClosedErrors, std::vector<absl::StatusCode>{absl::StatusCode::kCancelled});
  message.add_queue_closed_exception_types(99);
  EXPECT_FALSE(ParseQueueRunnerDef(message.SerializeAsString()).ok());
  EXPECT_FALSE(ParseQueueRunnerDef("\x0a\xff").ok());
}

} // namespace
} // namespace lathe

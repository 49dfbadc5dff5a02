// SPDX-License-Identifier: Apache-2.0
// A run that was stopped, or killed, and went on has the weights of one that was not.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>

#include "bary/io/run_folder.h"
#include "small_run.h"

namespace bary::same_bits {
namespace {

// Until `stop_at` steps are done (as Ctrl-C does it), in a loop and a model of its own, as a new process has them.
TrainResult part(const ModelConfig& m, const TrainConfig& t, const Data& data, bool resume, int64_t stop_at,
                 std::vector<StepReport>* reports = nullptr) {
  std::atomic<bool> stop{false};
  TrainHooks hooks;
  hooks.stop = &stop;
  hooks.step = [&](const StepReport& s) {
    if (reports) reports->push_back(s);
    if (s.step == stop_at) stop = true;
  };
  LanguageModel model(m, resume ? 999 : t.seed);  // what it starts with must not matter after a resume
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, hooks, nlohmann::json::object());
  if (resume) loop.resume();
  return loop.run();
}

class Resume : public testing::TestWithParam<double> {
 protected:
  Resume() : data(20000, 256) {
    model = small_block();
    model.dropout = GetParam();
  }
  Data data;
  ModelConfig model;
};

TEST_P(Resume, TwentyAndThirtyAreFifty) {
  Folder whole, halves;
  const TrainResult unbroken = part(model, fifty_steps(whole.path()), data, false, -1);
  EXPECT_FALSE(unbroken.interrupted);
  const TrainConfig t = fifty_steps(halves.path());
  const TrainResult first = part(model, t, data, false, 20);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.steps, 20);
  std::vector<StepReport> reports;
  const TrainResult second = part(model, t, data, true, -1, &reports);
  EXPECT_EQ(second.steps, 50);
  EXPECT_EQ(second.weights_sha256, unbroken.weights_sha256);
  EXPECT_EQ(bits(second.final_loss), bits(unbroken.final_loss));
  EXPECT_EQ(bits(second.val.loss_sum), bits(unbroken.val.loss_sum));
  // the learning rate goes on where it was (T25) and only new tokens count (T26)
  ASSERT_EQ(reports.size(), 30u);
  EXPECT_EQ(reports[0].step, 21);
  EXPECT_EQ(reports[0].learning_rate, learning_rate(t.full_schedule(), 20));
  EXPECT_EQ(second.tokens, 30 * 8 * 32);
  EXPECT_DOUBLE_EQ(reports.back().tokens_per_second, static_cast<double>(second.tokens) / second.seconds);
}

TEST_P(Resume, AtEveryStepOfAShortRun) {
  Folder whole, parts;
  TrainConfig t = fifty_steps(whole.path());
  t.max_iters = 5;
  const std::string unbroken = part(model, t, data, false, -1).weights_sha256;
  t.out_dir = parts.path();
  part(model, t, data, false, 1);
  for (int64_t step = 2; step < 5; ++step) part(model, t, data, true, step);
  EXPECT_EQ(part(model, t, data, true, -1).weights_sha256, unbroken);
}

INSTANTIATE_TEST_SUITE_P(Dropout, Resume, testing::Values(0.0, 0.2),
                         [](const auto& which) { return which.param > 0 ? std::string("On") : std::string("Off"); });

TEST(ResumePast, TheEndTrainsNothingMore) {
  Data data(20000, 256);
  Folder folder;
  TrainConfig t = fifty_steps(folder.path());
  t.max_iters = 3;
  const TrainResult first = part(small_block(), t, data, false, -1);
  const TrainResult again = part(small_block(), t, data, true, -1);
  EXPECT_EQ(again.steps, 3);
  EXPECT_EQ(again.tokens, 0);
  EXPECT_EQ(again.weights_sha256, first.weights_sha256);
}

// The other process: trains until it is killed, saving after every step and telling so through a pipe.
TEST(KillChild, DISABLED_TrainsUntilKilled) {
  const char* folder = std::getenv("BARY_KILL_FOLDER");
  const char* pipe = std::getenv("BARY_KILL_PIPE");
  ASSERT_TRUE(folder && pipe) << "runs as a child of KillNine only";
  const int fd = std::atoi(pipe);
  Data data(20000, 256);
  TrainConfig t = fifty_steps(folder);
  t.save_interval = 1;
  LanguageModel model(small_block(), t.seed);
  TrainHooks hooks;
  hooks.step = [&](const StepReport&) { ASSERT_EQ(::write(fd, "s", 1), 1); };
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, hooks, nlohmann::json::object());
  if (checkpoint_exists(t.out_dir + "/last")) loop.resume();
  loop.run();
}

// Starts the child and kills it (SIGKILL, no handler can run) after it spoke `steps` times; wherever it then is: in a
// step, in the middle of a save, between two files.
void train_and_kill(const std::string& folder, int steps) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, 0), 0);
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // only calls that are safe after a fork of a process with threads
    char exe[] = "/proc/self/exe", filter[] = "--gtest_filter=KillChild.*", also[] = "--gtest_also_run_disabled_tests";
    static char folder_text[4096], pipe_text[64];
    std::snprintf(folder_text, sizeof folder_text, "BARY_KILL_FOLDER=%s", folder.c_str());
    std::snprintf(pipe_text, sizeof pipe_text, "BARY_KILL_PIPE=%d", ends[1]);
    char* arguments[] = {exe, filter, also, nullptr};
    char* environment[] = {folder_text, pipe_text, nullptr};
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 1);
    ::execve(exe, arguments, environment);
    ::_exit(127);
  }
  ::close(ends[1]);
  char c;
  int heard = 0;
  while (heard < steps && ::read(ends[0], &c, 1) == 1) ++heard;
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::close(ends[0]);
  ASSERT_EQ(heard, steps) << "the child ended early";
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
}

TEST(KillNine, TwentyStepsKilledAndResumedAreFifty) {
  Data data(20000, 256);
  Folder whole, killed;
  const std::string unbroken = weights_after(small_block(), fifty_steps(whole.path()), data);
  for (int steps : {7, 3, 1, 9}) {
    train_and_kill(killed.path(), steps);
    if (HasFatalFailure()) return;
    LoadedModel loaded = load_model(killed.path() + "/last");  // whole and unchanged, or this throws
    EXPECT_LT(loaded.state["step"].get<int64_t>(), 50);
  }
  const TrainConfig t = fifty_steps(killed.path());
  LanguageModel model(small_block(), 999);
  const TextObjective objective(t, model, data.data);
  TrainLoop loop(t, objective, {}, nlohmann::json::object());
  loop.resume();
  EXPECT_EQ(loop.run().weights_sha256, unbroken);
  for (const auto& entry : std::filesystem::directory_iterator(killed.path()))  // what the killed left is cleared
    EXPECT_EQ(entry.path().filename().string().find(".tmp"), std::string::npos) << entry.path();
}

}  // namespace
}  // namespace bary::same_bits

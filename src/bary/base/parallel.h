// SPDX-License-Identifier: Apache-2.0
// One thread pool for the process, and one loop over fixed chunks (a second thread's loop waits for the first's). No
// result may depend on the number of threads: a body writes only what its own chunk owns, and sums across chunks are
// added in chunk order by the caller.
#pragma once
#include <cstdint>
#include <functional>

namespace bary {

int threads();            // workers, the caller included
void set_threads(int n);  // n >= 1; 0 = every core this process may use. Not while a loop runs.
int available_cores();

// body(begin, end) for [0,n) cut at multiples of `grain`. Called from inside a parallel body it runs in place, so a
// kernel that splits its rows may be used from both schedules. The first exception thrown by a body is rethrown here.
void parallel_for(int64_t n, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

// body(index, worker) for index in [0,n), claimed in increasing order one at a time; worker in [0, threads()) names the
// thread, for its scratch memory only.
void parallel_tasks(int64_t n, const std::function<void(int64_t index, int worker)>& body);

// While one lives, parallel_tasks called by its thread runs its tasks there, in order, so that somebody who looks into
// them sees one after the other. parallel_for, into whose bodies nobody looks, goes over the threads as ever.
class TasksInOrder {
 public:
  TasksInOrder();
  ~TasksInOrder();
  TasksInOrder(const TasksInOrder&) = delete;
  TasksInOrder& operator=(const TasksInOrder&) = delete;
};

bool inside_parallel();  // true in a body: nested loops run in place

// Denormals are flushed to zero in workers always and in the caller while a FlushDenormals lives: part of the bits, and
// a hundred times faster than the microcode that handles them.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace bary

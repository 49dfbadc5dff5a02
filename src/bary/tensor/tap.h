// SPDX-License-Identifier: Apache-2.0
// Taps: places in a model that somebody may look at or edit while it runs, by TransformerLens's names
// ("blocks.0.attn.hook_pattern"). A probe lives on the stack of whoever looks; without one a tap costs one pointer
// test. Probes nest: edits apply from the outermost to the innermost, then each look sees what they made of it. A probe
// belongs to its thread, and while it lives parallel_tasks keeps to that thread (base/parallel.h): so it acts on all
// windows of an evaluation and all prompts of a generation, in their order, with any number of threads.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bary/base/parallel.h"
#include "bary/tensor/tensor.h"

namespace bary {

class Probe {
 public:
  Probe();
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  using Look = std::function<void(const Tensor&)>;
  using Edit = std::function<Tensor(const Tensor&)>;
  void look(const std::string& name, Look f) { looks_[name] = std::move(f); }
  void edit(const std::string& name, Edit f) { edits_[name] = std::move(f); }

  // What all probes of this thread do at `name`, as one function; empty if nobody does anything. Good while they live.
  static Look looking(const std::string& name);
  static Edit editing(const std::string& name);
  static bool any();

 private:
  template <class F>
  static std::vector<const F*> outermost_first(const std::string& name, std::map<std::string, F> Probe::*of);

  std::map<std::string, Look> looks_;
  std::map<std::string, Edit> edits_;
  Probe* outer_;
  TasksInOrder in_order_;
};

// Shows x to whoever watches `name`; what an editor returns goes on in its place.
Tensor tap(const std::string& name, const Tensor& x);

}  // namespace bary

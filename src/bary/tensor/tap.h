// SPDX-License-Identifier: Apache-2.0
// Taps: places in a model that somebody may look at or edit while it runs, by TransformerLens's names
// ("blocks.0.attn.hook_pattern"). A probe lives on the stack of whoever looks; without one a tap costs one pointer
// test.
#pragma once
#include <functional>
#include <map>
#include <string>

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

  static const Look* looking(const std::string& name);  // null if nobody is
  static const Edit* editing(const std::string& name);
  static bool any();

 private:
  std::map<std::string, Look> looks_;
  std::map<std::string, Edit> edits_;
  Probe* outer_;
};

// Shows x to whoever watches `name`; what an editor returns goes on in its place.
Tensor tap(const std::string& name, const Tensor& x);

}  // namespace bary
